package canopy

import (
	"context"
	"errors"
	"fmt"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// CannotPay tells why no payment of this agent can be made now, whatever it is
// for: it is frozen, outside its hours, no policy judges it or another one is
// pinned, there is no key, no rail, a cap on the number of payments is full, its
// budget has ended, or the ledger takes nothing new (clock_skew, ledger_missing,
// ledger_read_only). It is empty where a payment is judged by
// itself. Nothing is reserved.
func (c *Client) CannotPay(ctx context.Context) ([]Reason, error) {
	var out []Reason
	deny := func(code, text string) {
		out = append(out, Reason{Status: payment.Denied, Code: code, Text: text})
	}
	v := c.cfg.Policy.Evaluate(payment.Payment{Agent: c.cfg.Agent}, c.cfg.Now(), policy.History{})
	for _, r := range v.Reasons {
		if r.Code == policy.CodeFrozen || r.Code == policy.CodeNoPolicy || r.Code == policy.CodeOutsideHours && !r.Shadow {
			out = append(out, r)
		}
	}
	frozen, why, err := c.frozen(ctx)
	if err != nil {
		return nil, fmt.Errorf("canopy: reading the ledger: %w", err)
	}
	if frozen {
		deny(policy.CodeFrozen, "Payments are frozen: "+why)
	}
	if why, err = c.notPinned(ctx); err != nil {
		return nil, fmt.Errorf("canopy: reading the ledger: %w", err)
	} else if why != "" {
		deny(ledger.CodePolicyNotPinned, why)
	}
	if c.cfg.Treasury.Signer == nil {
		deny("no_signer", "This client has no key to pay with")
	}
	if len(c.rails) == 0 {
		deny("no_rail", "This client has no rail to pay by")
	}
	caps := binding(v.Limits)
	uses, err := c.cfg.Store.Use(ctx, caps, c.cfg.Now())
	if err != nil {
		return nil, fmt.Errorf("canopy: reading the ledger: %w", err)
	}
	for _, r := range (policy.Verdict{Status: payment.Allowed, Limits: caps}).Apply(uses).Reasons {
		if r.Code == policy.CodeCountExceeded { // whatever the next one costs
			out = append(out, r)
		}
	}
	switch v, err := c.underBudget(ctx, policy.Verdict{Status: payment.Allowed}, c.cfg.Now()); {
	case errors.Is(err, ErrBudgetEnded):
		deny(ledger.CodeBudgetEnded, err.Error())
	case err != nil:
		return nil, fmt.Errorf("canopy: budget: %w", err)
	case v.Code() == ledger.CodeBudgetEnded:
		out = append(out, v.Reasons...)
	}
	p, ok := c.cfg.Store.(ledger.Prober)
	if !ok {
		return out, nil
	}
	switch err := p.Ready(ctx, c.cfg.Now()); {
	case errors.Is(err, ErrClockSkew):
		deny("clock_skew", err.Error())
	case errors.Is(err, ledger.ErrMissing):
		deny("ledger_missing", err.Error())
	case errors.Is(err, ledger.ErrReadOnly):
		deny("ledger_read_only", err.Error())
	case err != nil:
		return nil, fmt.Errorf("canopy: reading the ledger: %w", err)
	}
	return out, nil
}

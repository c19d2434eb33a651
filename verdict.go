package canopy

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// verdict is what the policy says of p, by what the ledger knows was paid
// before; the caps are left to the ledger. It sets the run of p.
//
// What was paid is read before the payment is reserved, and not in the same
// commit. That errs on the safe side. A payee becomes known by an authorization,
// so that of two first payments at once neither sees the other: both ask, or the
// equal one joins. It is forgotten only by a release, and a price changes only
// by another payment: a payment that is judged by what was true a moment ago is
// judged as if it had come then.
func (c *Client) verdict(ctx context.Context, p *payment.Payment, now time.Time) (policy.Verdict, error) {
	w, err := c.work(ctx)
	if err != nil {
		return policy.Verdict{}, fmt.Errorf("canopy: budget: %w", err)
	}
	p.Run = w.run
	past, err := ledger.PastOf(ctx, c.cfg.Store, c.cfg.Policy, p)
	if err != nil {
		return policy.Verdict{}, fmt.Errorf("canopy: reading what was paid before: %w", err)
	}
	return c.cfg.Policy.Evaluate(*p, now, policy.History{Past: past}), nil
}

// checkPolicy tells what the policy wants and the ledger cannot tell, and warns
// of a policy that blocks nothing.
func (c *Client) checkPolicy() error {
	if _, asks := c.cfg.Policy.AsksPast(c.cfg.Agent); asks {
		if _, ok := c.cfg.Store.(ledger.PastStore); !ok {
			return fmt.Errorf("canopy: Config.Store does not tell what was paid before, and the policy of %s asks for it: see new_payee and price_jump", c.cfg.Agent)
		}
	}
	if c.cfg.Policy.Shadow(c.cfg.Agent) {
		c.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn,
			"the policy of this agent is in shadow: what it would deny or ask is recorded, and paid",
			slog.String("agent", c.cfg.Agent), slog.String("policy", c.cfg.Policy.Name()))
	}
	return nil
}

// notPinned says that another policy is pinned, or nothing.
func (c *Client) notPinned(ctx context.Context) (string, error) {
	p, ok := c.cfg.Store.(ledger.Pinner)
	if !ok {
		return "", nil
	}
	pin, err := p.Pinned(ctx)
	if hash := c.cfg.Policy.Hash(); err == nil && pin.Denies(hash) {
		return pin.Text(hash), nil
	}
	return "", err
}

package canopy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Preview judges a direct transfer as Pay would now, and reserves, signs and
// stores nothing. The three outcomes are values, with the reasons that Pay would
// give; an error means that it could not be judged, or that Pay would fail with
// the same one, as where nothing could send what is not denied.
//
// Where an equal payment would answer a Pay without a key, the Result has its
// PaymentID. What a key stands for is not looked up.
func (c *Client) Preview(ctx context.Context, t Transfer) (Result, error) {
	o, err := c.transferOffer(ctx, &t)
	if err != nil {
		return Result{}, err
	}
	own, unsent := c.submits(o.offer.Rail, o.offer.Asset.Chain)
	if err := c.judgeTransfer(ctx, &o, t); err != nil {
		return Result{}, err
	}
	if r, denied := c.unpayable(o); denied {
		r.DryRun = true
		return r, nil
	}
	funded, err := c.funded(ctx, o)
	if err != nil {
		return Result{}, err
	}
	funded, gas := c.gassed(ctx, funded, own)
	p := preview{c: c, terms: o.terms, verdict: funded.verdict, gas: gas, now: c.cfg.Now()}
	if err := p.judge(ctx, t.Key); err != nil {
		return Result{}, fmt.Errorf("canopy: preview: %w", err)
	}
	if unsent != nil && p.verdict.Status != payment.Denied {
		return Result{}, unsent
	}
	r := Result{Status: p.verdict.Status, DryRun: true, Warning: p.warning}
	r.of(o.terms)
	if gas != nil {
		r.Gas = gas.Bound
	}
	if e := p.earlier; e != nil {
		r.PaymentID, r.ApprovalID = e.ID, e.ApprovalID
	}
	r.setReasons(p.verdict.Reasons)
	return r, nil
}

// preview is what the ledger would say of a transfer now, in the order of
// Store.Reserve.
type preview struct {
	c       *Client
	terms   payment.Terms
	verdict policy.Verdict
	gas     *ledger.Gas
	now     time.Time

	earlier *ledger.Entry // that would answer it
	warning string
}

// longestAsked is how long before its authorization a payment is looked for: it
// may have waited for a person, under an earlier policy too.
const longestAsked = 7 * 24 * time.Hour

func (p *preview) judge(ctx context.Context, key string) error {
	p.verdict.Reasons = slices.Clip(p.verdict.Reasons)
	frozen, why, err := p.c.frozen(ctx)
	if err != nil {
		return fmt.Errorf("reading the ledger: %w", err)
	}
	if frozen {
		p.deny("frozen", "Payments are frozen: "+why, time.Time{})
	}
	if why, err = p.c.notPinned(ctx); err != nil {
		return fmt.Errorf("reading the ledger: %w", err)
	} else if why != "" {
		p.deny(ledger.CodePolicyNotPinned, why, time.Time{})
	}
	if key == "" && !frozen {
		if err := p.answer(ctx); err != nil {
			return fmt.Errorf("reading the ledger: %w", err)
		}
	}
	uses, err := p.c.cfg.Store.Use(ctx, p.verdict.Limits, p.now)
	if err != nil {
		return fmt.Errorf("reading the ledger: %w", err)
	}
	if p.verdict, err = p.c.underBudget(ctx, p.verdict.Apply(uses), p.now); err != nil {
		return fmt.Errorf("budget: %w", err)
	}
	if p.verdict.Status == payment.PendingApproval && p.earlier == nil {
		if err := p.maxPending(ctx); err != nil {
			return fmt.Errorf("reading the ledger: %w", err)
		}
	}
	if p.gas != nil && p.verdict.Status != payment.Denied {
		if err := p.gasPerDay(ctx); err != nil {
			return fmt.Errorf("reading the ledger: %w", err)
		}
	}
	if e := p.earlier; e != nil && e.State == ledger.Approved && p.verdict.Status == payment.PendingApproval {
		p.verdict.Status = payment.Allowed // by the person who said so
	}
	return nil
}

func (p *preview) deny(code, text string, until time.Time) {
	v := &p.verdict
	v.Status = payment.Denied
	v.Reasons = append(v.Reasons, Reason{Status: payment.Denied, Code: code, Text: text, Cost: v.Cost, Until: until})
}

// answer finds the equal transfer without a key that would answer this one, or
// that makes it a duplicate.
func (p *preview) answer(ctx context.Context) error {
	var doubt, approved, pending, last *ledger.Entry
	look := func(q ledger.Query) error {
		print := transferPrint(p.terms)
		q.Agent = p.c.cfg.Agent
		for e, err := range p.c.cfg.Store.Entries(ctx, q) {
			switch {
			case err != nil:
				return err
			case e.Fingerprint != print || !e.Terms.IsTransfer():
				continue
			case (e.State == ledger.InDoubt || e.State == ledger.NeedsOperator) && p.now.Before(e.SafeAfter()):
				doubt = newer(doubt, &e)
			case e.State == ledger.PendingApproval || e.State == ledger.Approved && e.TermsHash == p.terms.Hash():
				a, err := p.c.cfg.Store.Approvals().Approval(ctx, e.ApprovalID, p.now)
				if err != nil {
					return err
				}
				switch {
				case !p.now.Before(a.ExpiresAt):
				case e.State == ledger.Approved:
					approved = newer(approved, &e)
				default:
					pending = newer(pending, &e)
				}
			}
			if !e.AuthorizedAt.IsZero() && !e.State.Freed() && (last == nil || e.AuthorizedAt.After(last.AuthorizedAt)) {
				last = &e
			}
		}
		return nil
	}
	err := look(ledger.Query{States: []ledger.State{
		ledger.PendingApproval, ledger.Approved, ledger.Authorized, ledger.InDoubt, ledger.NeedsOperator,
	}})
	window := p.verdict.DuplicateWindow
	if err == nil && window > 0 {
		err = look(ledger.Query{
			States: []ledger.State{ledger.Claimed, ledger.Settled},
			Since:  p.now.Add(-window - max(p.verdict.ApprovalTTL, longestAsked)),
		})
	}
	switch {
	case err != nil:
		return err
	case doubt != nil:
		p.earlier = doubt
		p.warning = fmt.Sprintf("payment %s of the same is not resolved: until then the same bytes are submitted again, and nothing else is paid", doubt.ID)
	case approved != nil:
		p.earlier = approved
	case pending != nil && p.verdict.Status != payment.Denied:
		p.earlier, p.verdict.Status = pending, payment.PendingApproval
	case last != nil && window > 0:
		if until := last.AuthorizedAt.Add(window); !p.now.After(until) {
			p.deny(ledger.CodeDuplicate, fmt.Sprintf("Duplicate of payment %s, made %s ago: give a key to pay again",
				last.ID, p.now.Sub(last.AuthorizedAt).Round(time.Second)), until)
		}
	}
	return nil
}

func newer(a, b *ledger.Entry) *ledger.Entry {
	if a == nil || b.CreatedAt.After(a.CreatedAt) {
		return b
	}
	return a
}

// maxPending denies where as many wait for people as may.
func (p *preview) maxPending(ctx context.Context) error {
	most := p.verdict.MaxPending
	if most <= 0 {
		return nil
	}
	waiting, err := p.c.cfg.Store.Approvals().List(ctx, p.c.cfg.Agent, true, p.now)
	if n := len(waiting); err == nil && n >= most {
		p.deny(ledger.CodeTooManyPending, fmt.Sprintf("%d payments wait for approval, max_pending is %d", n, most), time.Time{})
	}
	return err
}

// gasPerDay denies where the day has too little left of the chain's coin.
func (p *preview) gasPerDay(ctx context.Context) error {
	chain, after := p.terms.Asset.Chain, p.now.Add(-24*time.Hour)
	since := p.now.Add(-48*time.Hour - max(p.verdict.ApprovalTTL, longestAsked))
	var used Units
	for e, err := range p.c.cfg.Store.Entries(ctx, ledger.Query{Since: since}) {
		if err != nil {
			return err
		}
		until, open, counts := e.GasUntil()
		if !counts || !open && !until.After(after) || e.Slot.Chain != chain || e.Slot.From != p.c.Address() {
			continue
		}
		var ok bool
		if used, ok = used.Add(e.Gas); !ok {
			used = p.gas.PerDay
			break
		}
	}
	if sum, ok := used.Add(p.gas.Bound); !ok || sum.Cmp(p.gas.PerDay) > 0 {
		p.deny(ledger.CodeGasPerDay, fmt.Sprintf("Gas cap exceeded: %s + %s > %s / 24h of the coin of %s",
			used.Coin(), p.gas.Bound.Coin(), p.gas.PerDay.Coin(), chain.Name()), time.Time{})
	}
	return nil
}

// previewLedger lowers r by what the ledger would say of any payment now.
func (c *Client) previewLedger(ctx context.Context, r *Result, terms payment.Terms) error {
	if err := terms.Check(c.Address()); err != nil {
		r.deny("bad_terms", badTerms(err))
	}
	frozen, why, err := c.frozen(ctx)
	if err != nil {
		return fmt.Errorf("canopy: preview: reading the ledger: %w", err)
	}
	if frozen {
		r.deny("frozen", "Payments are frozen: "+why)
	}
	if why, err = c.notPinned(ctx); err != nil {
		return fmt.Errorf("canopy: preview: reading the ledger: %w", err)
	} else if why != "" {
		r.deny(ledger.CodePolicyNotPinned, why)
	}
	if c.cfg.Treasury.Signer == nil {
		r.deny("no_signer", "this client has no key to pay with")
	}
	return nil
}

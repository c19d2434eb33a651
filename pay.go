package canopy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// recordTime bounds a ledger step, which goes on when the caller has left.
const recordTime = 30 * time.Second

// buy is the one ordered way of every payment for a request: choose, reserve in
// one durable commit, and only then sign, check and send.
func (c *Client) buy(ctx context.Context, p *purchase, offers []offered) (*http.Response, error) {
	o, _, err := c.choose(ctx, p, offers)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("canopy: cancelled before anything was signed: %w", err)
	}
	e, err := c.reserve(ctx, p, o)
	var joined *ledger.JoinedError
	if errors.As(err, &joined) {
		return c.join(ctx, p, e, joined)
	}
	if errors.Is(err, ledger.ErrTaken) && o.offer.Mark != [32]byte{} {
		return nil, &DeniedError{denial("challenge_used", "the seller's challenge was paid before, and its memo or nonce is taken: ask again"), err}
	}
	if err != nil {
		return nil, fmt.Errorf("canopy: nothing was signed: %w", err)
	}
	switch e.State {
	case ledger.Authorized:
		return c.pay(ctx, p, o.rail, e)
	case ledger.PendingApproval:
		c.notify(ctx, e)
		return nil, &PendingError{c.pendingResult(ctx, e)}
	}
	r := resultOf(e)
	r.Status = Denied
	r.setReasons(e.Reasons)
	c.log(ctx, levelInfo, "payment denied", &e, slog.String("code", r.Code))
	return nil, &DeniedError{Result: r}
}

// reserve is the first durable commit. What a chain can free is freed before
// the first payment, and before a denial that it could turn.
func (c *Client) reserve(ctx context.Context, p *purchase, o offered) (ledger.Entry, error) {
	r := ledger.Request{
		Payment: o.payment, Verdict: o.verdict, Payer: c.Address(),
		Key: p.opts.key, Fingerprint: p.print, Began: p.began,
		Offer: o.offer, Validity: o.terms.Validity, Slot: slotFor(o.offer, c.Address()),
	}
	if p.opts.ask {
		r.Ask = "The caller asks for approval"
	}
	return c.commit(ctx, r)
}

// commit reserves r.
func (c *Client) commit(ctx context.Context, r ledger.Request) (ledger.Entry, error) {
	r.Watched, r.Lanes = c.watched(r.Slot), c.cfg.Lanes
	c.catchUp(ctx)
	e, err := c.reserveNow(ctx, r)
	if err == nil && c.mayFree(ctx, e) && c.reconcileBriefly(ctx).moved() {
		return c.reserveNow(ctx, r)
	}
	return e, err
}

// reserveNow goes on when the caller leaves, so that what it stored is always
// known.
func (c *Client) reserveNow(ctx context.Context, r ledger.Request) (ledger.Entry, error) {
	w, err := c.work(ctx)
	if err != nil {
		return ledger.Entry{}, fmt.Errorf("budget: %w", err)
	}
	r.Budget, r.Within = w.budget, w.within
	r.Now = c.cfg.Now()
	r.Payment.ID = payment.NewID(r.Now)
	detached, cancel := clock.WithTimeout(context.WithoutCancel(ctx), c.cfg.Clock, recordTime)
	defer cancel()
	e, _, err := c.cfg.Store.Reserve(detached, r)
	return e, err
}

// slotFor is the slot that an authorization of this offer uses; where the offer
// does not name what makes it unique, the store fills it in.
func slotFor(o payment.Offer, from Address) payment.Slot {
	s := payment.Slot{Kind: o.Slot}
	switch o.Slot {
	case payment.SlotEVM:
		s.Chain, s.Token, s.From, s.NonceID = o.Asset.Chain, o.Asset.Address, from, o.Mark
	case payment.SlotLane:
		s.Chain, s.From = o.Asset.Chain, from
	case payment.SlotExpiring:
		s.Chain, s.From, s.NonceID = o.Asset.Chain, from, o.Mark
	}
	return s
}

// pay signs what was committed, checks what was signed, and sends it.
func (c *Client) pay(ctx context.Context, p *purchase, rail Rail, e ledger.Entry) (*http.Response, error) {
	auth, err := c.authorize(ctx, rail, e)
	if err != nil {
		return nil, c.stop(ctx, e, SignedNotSent, err)
	}
	if len(auth.Raw) > 0 {
		if e, err = c.push(ctx, e, auth); err != nil {
			return nil, err
		}
	}
	return c.present(ctx, p, rail, e, auth)
}

// Errors that stop a payment after its commit.
var (
	errFrozen      = errors.New("payments were frozen before it was sent")
	errTermsDiffer = errors.New("the signed bytes do not carry out the approved terms in the payer's name")
	errTooLate     = errors.New("less than 10 s of its validity were left after signing: raise max_validity or use a faster signer")
)

// authorize builds and signs e's authorization and proves that it carries out
// e's terms and nothing else. Where it does not, or is signed by somebody else,
// the agent is frozen.
func (c *Client) authorize(ctx context.Context, rail Rail, e ledger.Entry) (payment.Authorization, error) {
	none := payment.Authorization{}
	if err := c.mayGoOn(ctx); err != nil {
		return none, err
	}
	signer := c.cfg.Treasury.Signer
	grant := e.Grant()
	grant.Recover = !payment.IsLocal(signer)
	auth, err := rail.Authorize(ctx, grant, signer)
	switch late := e.SignBefore.Sub(c.cfg.Now()) < minValidity; {
	case errors.Is(err, payment.ErrForeignSignature):
		return none, c.distrust(ctx, e, err)
	case err != nil && late:
		return none, fmt.Errorf("signing: %w: %w", errTooLate, err)
	case err != nil:
		return none, fmt.Errorf("signing: %w", err)
	}
	terms, err := rail.Decode(auth, grant)
	if err == nil && terms.Hash() != e.TermsHash {
		err = errors.New("the terms differ")
	}
	if err != nil {
		return none, c.distrust(ctx, e, err)
	}
	if e.SignBefore.Sub(c.cfg.Now()) < minValidity {
		return none, errTooLate
	}
	return auth, nil
}

// distrust freezes the agent after signed bytes that were not those of e.
func (c *Client) distrust(ctx context.Context, e ledger.Entry, cause error) error {
	f, ok := c.cfg.Store.(ledger.Freezer)
	if !ok {
		return fmt.Errorf("%w: %w", errTermsDiffer, cause)
	}
	detached, cancel := clock.WithTimeout(context.WithoutCancel(ctx), c.cfg.Clock, recordTime)
	defer cancel()
	why := fmt.Sprintf("payment %s: %v", e.ID, errTermsDiffer)
	if err := f.Freeze(detached, c.cfg.Agent, "canopy", why); err != nil {
		return fmt.Errorf("%w, and the agent could not be frozen (%v): %w", errTermsDiffer, err, cause)
	}
	return fmt.Errorf("%w; the agent is frozen: %w", errTermsDiffer, cause)
}

// mayGoOn is asked before a signature and before every sending: has the caller
// left, was the agent frozen.
func (c *Client) mayGoOn(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	frozen, why, err := c.frozen(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("reading whether payments are frozen: %w", err)
	case frozen:
		return fmt.Errorf("%w: %s", errFrozen, why)
	}
	return nil
}

// stop records that e was stopped after its commit, and returns the error that
// tells the caller. The hold stays.
func (c *Client) stop(ctx context.Context, e ledger.Entry, phase Phase, cause error) error {
	e, warning := c.record(ctx, e, ledger.Change{To: doubt(e), Note: noteOf(cause)})
	r := resultOf(e)
	r.Warning = warning
	return &InDoubtError{Result: r, Phase: phase, SafeAfter: e.SafeAfter(), Err: cause}
}

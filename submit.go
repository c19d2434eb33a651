package canopy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// carryOut signs a direct transfer that was committed, checks what was signed,
// and submits it.
func (c *Client) carryOut(ctx context.Context, e ledger.Entry) (Result, error) {
	own, err := c.resubmits(e)
	if err != nil {
		return c.submitted(ctx, e, 0, payment.Receipt{}, err)
	}
	auth, err := c.authorize(ctx, c.rails[e.Terms.Rail], e)
	if err != nil {
		return c.submitted(ctx, e, 0, payment.Receipt{}, err)
	}
	if own != nil {
		return c.carry(ctx, e, auth, own)
	}
	return c.submit(ctx, e, auth)
}

// submit hands e's authorization over and records what comes of it.
func (c *Client) submit(ctx context.Context, e ledger.Entry, auth payment.Authorization) (Result, error) {
	e, err := c.promise(ctx, e, auth)
	if err != nil {
		return c.submitted(ctx, e, 0, payment.Receipt{}, err)
	}
	sends, receipt, err := c.handOver(ctx, e, auth)
	return c.submitted(ctx, e, sends, receipt, err)
}

// push broadcasts the transaction of a payment for a request, before its hash is
// shown to the seller. Where no word came that it is on the chain, the payment is
// in doubt, and nothing is shown.
func (c *Client) push(ctx context.Context, e ledger.Entry, auth payment.Authorization) (ledger.Entry, error) {
	e, err := c.promise(ctx, e, auth)
	if err != nil {
		return e, c.giveUp(ctx, e, 0, payment.Receipt{}, err)
	}
	if c.transferer(e.Terms.Rail) == nil {
		return e, c.giveUp(ctx, e, 0, payment.Receipt{}, fmt.Errorf("the rail %s cannot broadcast its transaction", e.Terms.Rail))
	}
	sends, receipt, err := c.handOver(ctx, e, auth)
	if !claimed(receipt, e.Sends+sends-1) {
		return e, c.giveUp(ctx, e, sends, receipt, err)
	}
	e, _ = c.record(ctx, e, ledger.Change{To: ledger.Claimed, Receipt: recordable(e, receipt), Sent: sends})
	return e, nil
}

// promise records the hash of a transaction before it is broadcast: a commit
// without which it is not.
func (c *Client) promise(ctx context.Context, e ledger.Entry, auth payment.Authorization) (ledger.Entry, error) {
	if auth.TxHash == "" || e.Receipt.TxHash == auth.TxHash {
		return e, nil
	}
	detached, cancel := clock.WithTimeout(context.WithoutCancel(ctx), c.cfg.Clock, recordTime)
	defer cancel()
	receipt := e.Receipt
	receipt.TxHash = auth.TxHash
	next, err := c.cfg.Store.Advance(detached, ledger.Change{
		ID: e.ID, Version: e.Version, To: e.State, By: ledger.ByClient, Now: c.cfg.Now(), Receipt: &receipt,
	})
	if err != nil {
		return e, fmt.Errorf("recording the hash of its transaction: %w", err)
	}
	return next, nil
}

// handOver submits e's authorization, and again the same bytes, at most twice,
// where no word came back or the settlement is pending; nothing else is ever
// signed for this payment. It returns how often it was sent, and the last word.
func (c *Client) handOver(ctx context.Context, e ledger.Entry, auth payment.Authorization) (sends int, receipt payment.Receipt, err error) {
	tr := c.transferer(e.Terms.Rail)
	for sends = 1; ; sends++ {
		if err := c.mayGoOn(ctx); err != nil {
			return sends - 1, payment.Receipt{}, err
		}
		err = safely(func() (err error) { receipt, err = tr.Submit(ctx, auth); return err })
		receipt, err = redact(receipt, auth), redactError(err, auth)
		again := err != nil || receipt.Claim == payment.ClaimPending || receipt.Claim == payment.ClaimNone
		if !again || sends > maxResends || claimed(receipt, e.Sends+sends-1) {
			return sends, receipt, err
		}
		wait := time.Duration(sends) * 250 * time.Millisecond
		if receipt.Claim == payment.ClaimPending {
			wait = time.Duration(sends) * time.Second
		}
		if e.SignBefore.Sub(c.cfg.Now())-wait < minValidity {
			return sends, receipt, errors.Join(err, errTooOld)
		}
		if gone := clock.Sleep(ctx, c.cfg.Clock, wait); gone != nil {
			return sends, receipt, gone
		}
	}
}

var errTooOld = errors.New("its validity ends before it could be submitted again")

// submitted records how far e came, and returns what the caller gets: the paid
// Result, or an *InDoubtError.
func (c *Client) submitted(ctx context.Context, e ledger.Entry, sends int, receipt payment.Receipt, cause error) (Result, error) {
	ch := ledger.Change{To: doubt(e), Sent: sends, Note: noteOf(cause)}
	if receipt != (payment.Receipt{}) {
		ch.Receipt = recordable(e, receipt)
	}
	if claimed(receipt, e.Sends+sends-1) {
		ch.To = ledger.Claimed
	}
	e, warning := c.record(ctx, e, ch)
	r := resultOf(e)
	r.Warning = warning
	if e.State.Paid() {
		return r, nil
	}
	phase := SentUnknown
	switch {
	case e.Sends == 0:
		phase = SignedNotSent
	case receipt.Claim == payment.ClaimRefused:
		phase = RefusedAfter
	}
	return r, &InDoubtError{Result: r, Phase: phase, Code: receipt.Code, Message: receipt.Message, SafeAfter: e.SafeAfter(), Err: cause}
}

// standing is what a call gets that an earlier transfer answers. Where the call
// could make a payment of its own, by r, it does so once the chain has released
// the one that stood in its way.
func (c *Client) standing(ctx context.Context, e ledger.Entry, r *ledger.Request) (Result, error) {
	if e.State == ledger.Authorized {
		var err error
		if e, err = c.landed(ctx, e); err != nil {
			return resultOf(e), err
		}
	}
	switch e.State {
	case ledger.PendingApproval, ledger.Approved:
		return c.pendingResult(ctx, e), nil
	case ledger.Rejected, ledger.ApprovalExpired:
		return c.refusedResult(ctx, e)
	case ledger.Claimed, ledger.Settled:
		return resultOf(e), nil
	case ledger.Authorized:
		return resultOf(e), &InFlightError{resultOf(e)}
	case ledger.InDoubt, ledger.NeedsOperator:
		return c.doubtful(ctx, e, r)
	case ledger.ExpiredUnused, ledger.Cancelled:
		out := resultOf(e)
		out.deny(e.State.String(), "It never moved money and never will: pay anew")
		return out, nil
	}
	out := resultOf(e)
	out.Status = Denied
	out.setReasons(e.Reasons)
	return out, nil
}

// doubtful asks for e again with the same bytes while they are valid; where
// they are dead it asks the chain.
func (c *Client) doubtful(ctx context.Context, e ledger.Entry, r *ledger.Request) (Result, error) {
	cause := errors.New("an operator has to decide: its slot moved something else than agreed")
	if e.State == ledger.InDoubt {
		if cause = c.reusable(e); cause == nil {
			_, cause = c.resubmits(e)
		}
		if cause == nil {
			return c.carryOut(ctx, e)
		}
		if c.watched(e.Slot) && !c.cfg.Now().Before(e.ValidBefore) && c.reconcileBriefly(ctx).moved() {
			now, err := c.cfg.Store.Entry(ctx, e.ID)
			switch {
			case err != nil:
				return Result{}, fmt.Errorf("canopy: reading the ledger: %w", err)
			case now.State.Freed() && r != nil && r.Only == "":
				return c.transfer(ctx, *r)
			case now.State != ledger.InDoubt:
				return c.standing(ctx, now, nil)
			}
		}
	}
	out := resultOf(e)
	return out, &InDoubtError{Result: out, Phase: SentUnknown, Code: e.Receipt.Code, SafeAfter: e.SafeAfter(), Err: cause}
}

// refusedResult is the answer of a person, or the lack of one.
func (c *Client) refusedResult(ctx context.Context, e ledger.Entry) (Result, error) {
	a, err := c.ApprovalStatus(ctx, e.ApprovalID)
	if err != nil {
		return Result{}, err
	}
	var denied *DeniedError
	if errors.As(c.verdictOf(a, resultOf(e)), &denied) {
		return denied.Result, nil
	}
	return resultOf(e), nil
}

// landed waits until e, which is on its way in another call or process, has an
// outcome, or ctx ends, and at most until nobody can submit it any more.
func (c *Client) landed(ctx context.Context, e ledger.Entry) (ledger.Entry, error) {
	recoverer, _ := c.cfg.Store.(ledger.Recoverer)
	for pause := 20 * time.Millisecond; c.cfg.Now().Before(e.ValidBefore.Add(recordTime)); pause = min(2*pause, 500*time.Millisecond) {
		if err := clock.Sleep(ctx, c.cfg.Clock, pause); err != nil {
			return e, fmt.Errorf("%w: %w", &InFlightError{resultOf(e)}, err)
		}
		if recoverer != nil {
			if _, err := recoverer.Recover(ctx); err != nil {
				return e, fmt.Errorf("canopy: reading the ledger: %w", err)
			}
		}
		next, err := c.cfg.Store.Entry(ctx, e.ID)
		if err != nil {
			return e, fmt.Errorf("canopy: reading the ledger: %w", err)
		}
		if e = next; e.State != ledger.Authorized {
			break
		}
	}
	return e, nil
}

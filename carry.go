package canopy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

const (
	maxBumps  = 2                // of one call; the ledger bounds those of a payment
	carryWait = 15 * time.Second // for a transaction to be mined, before one that pays more takes its place
)

// codeReverted is the code of a transaction that is in a block and failed: its
// authorization was used by another, or could not move the money.
const codeReverted = "reverted"

// Errors of a transaction that is on its way.
var (
	errNotMined = errors.New("no node shows its transaction in a block yet")
	errEnding   = errors.New("its validity ends before another transaction could be mined")
)

// carrying is one payment that is being carried.
type carrying struct {
	c    *Client
	own  *carriage
	auth payment.Authorization

	e      ledger.Entry
	hashes []string // of its transactions, as far as this call and the record know
	sends  int
}

// carry hands e's authorization over by transactions of the account's own, each
// permitted by a commit, read back and recorded by its hash before it leaves. All
// of them carry the same authorization, which moves money once.
func (c *Client) carry(ctx context.Context, e ledger.Entry, auth payment.Authorization, own *carriage) (Result, error) {
	w := &carrying{c: c, own: own, auth: auth, e: e}
	if h := e.Receipt.TxHash; h != "" {
		w.hashes = append(w.hashes, h)
	}
	receipt, err := w.run(ctx)
	return c.submitted(ctx, w.e, w.sends, receipt, redactError(err, auth))
}

// run goes on with the newest transaction, or makes the first, and at most
// maxBumps more in its place.
func (w *carrying) run(ctx context.Context) (payment.Receipt, error) {
	for bump := 0; ; bump++ {
		if receipt, found := w.mined(ctx); found {
			return receipt, nil
		}
		if len(w.e.Carries) == 0 || bump > 0 {
			if w.used(ctx) {
				receipt := w.sent()
				receipt.Claim = payment.ClaimUsed
				return receipt, nil
			}
			if err := w.permit(ctx); err != nil {
				return w.sent(), err
			}
		}
		sending, err := w.send(ctx)
		if err != nil {
			return w.sent(), err
		}
		if receipt, found, err := w.await(ctx); found || err != nil {
			return receipt, errors.Join(err, sending)
		}
		if bump == maxBumps {
			return w.sent(), errors.Join(errNotMined, sending)
		}
		if w.left() < minValidity {
			return w.sent(), errors.Join(errNotMined, errEnding, sending)
		}
	}
}

// sent is a receipt that claims nothing, of the newest transaction.
func (w *carrying) sent() payment.Receipt { return payment.Receipt{TxHash: w.e.Receipt.TxHash} }

func (w *carrying) left() time.Duration { return w.e.SignBefore.Sub(w.c.cfg.Now()) }

// permit commits one transaction more.
func (w *carrying) permit(ctx context.Context) error {
	if err := w.c.mayGoOn(ctx); err != nil {
		return err
	}
	bounded, cancel := clock.WithTimeout(ctx, w.c.cfg.Clock, probeTime)
	q, err := w.own.quote(bounded, w.e.Payer)
	cancel()
	if err != nil {
		return fmt.Errorf("asking what a transaction costs: %w", err)
	}
	next, err := w.own.next(q, w.e.Gas, w.e.Carries)
	if err != nil {
		return err
	}
	return w.advance(ctx, "permitting a transaction", ledger.Change{Carry: &next})
}

// advance records a fact about the payment as it stands.
func (w *carrying) advance(ctx context.Context, what string, ch ledger.Change) error {
	detached, cancel := clock.WithTimeout(context.WithoutCancel(ctx), w.c.cfg.Clock, recordTime)
	defer cancel()
	ch.ID, ch.Version, ch.To, ch.By, ch.Now = w.e.ID, w.e.Version, w.e.State, ledger.ByClient, w.c.cfg.Now()
	next, err := w.c.cfg.Store.Advance(detached, ch)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	w.e = next
	return nil
}

// send signs the newest transaction, holds it to what was permitted, records its
// hash and hands it over. With a sending error it may have been taken; with
// another one nothing was handed over.
func (w *carrying) send(ctx context.Context) (sending, err error) {
	if err := w.c.mayGoOn(ctx); err != nil {
		return nil, err
	}
	g := w.e.CarryGrant(w.auth)
	var raw []byte
	var hash string
	err = safely(func() (err error) { raw, hash, err = w.own.Carry(ctx, g, w.c.cfg.Treasury.Signer); return err })
	switch {
	case errors.Is(err, payment.ErrForeignSignature):
		return nil, w.c.distrust(ctx, w.e, err)
	case err != nil:
		return nil, fmt.Errorf("signing its transaction: %w", err)
	}
	if err := safely(func() error { return w.own.ReadCarry(raw, g) }); err != nil {
		return nil, w.c.distrust(ctx, w.e, err)
	}
	signed := payment.Authorization{Raw: raw, TxHash: hash, Slot: w.auth.Slot, ValidBefore: w.auth.ValidBefore}
	if w.e, err = w.c.promise(ctx, w.e, signed); err != nil {
		return nil, err
	}
	if !slices.Contains(w.hashes, hash) {
		w.hashes = append(w.hashes, hash)
	}
	if err := w.c.mayGoOn(ctx); err != nil {
		return nil, err
	}
	if w.left() <= 0 {
		return nil, errTooOld
	}
	w.sends++
	sending = safely(func() error { _, err := w.own.chain.Broadcast(ctx, raw); return err })
	return redactError(sending, signed), nil
}

// mined asks what became of the transactions that are known.
func (w *carrying) mined(ctx context.Context) (payment.Receipt, bool) {
	failed := payment.Receipt{}
	for _, hash := range slices.Backward(w.hashes) {
		var found, ok bool
		var block payment.Block
		err := safely(func() (err error) { found, ok, block, err = w.own.chain.Receipt(ctx, hash); return err })
		switch {
		case err != nil || !found:
		case ok:
			return payment.Receipt{Claim: payment.ClaimPaid, TxHash: hash, Block: block.Time}, true
		default:
			failed = payment.Receipt{Claim: payment.ClaimRefused, TxHash: hash, Code: codeReverted, Block: block.Time}
		}
	}
	return failed, failed != payment.Receipt{}
}

// used reports whether the chain's newest block has the authorization used up: one
// transaction more would cost gas and move nothing. It is no evidence, and false
// where that cannot be told.
func (w *carrying) used(ctx context.Context) bool {
	keeper, ok := w.own.chain.(Timekeeper)
	rec, can := w.own.chain.(Reconciler)
	if len(w.e.Carries) == 0 || !ok || !can {
		return false
	}
	used := false
	err := safely(func() error {
		at, err := keeper.Latest(ctx)
		if err != nil {
			return err
		}
		is, err := rec.Used(ctx, []payment.Slot{w.e.Slot}, at)
		used = len(is) == 1 && is[0]
		return err
	})
	return err == nil && used
}

// await waits until one of the transactions is mined, for carryWait or as long as
// the authorization is valid. The error is that of ctx.
func (w *carrying) await(ctx context.Context) (payment.Receipt, bool, error) {
	end := w.c.cfg.Now().Add(min(carryWait, max(w.left(), 0)))
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		if receipt, found := w.mined(ctx); found {
			return receipt, true, nil
		}
		left := end.Sub(w.c.cfg.Now())
		if left <= 0 {
			return payment.Receipt{}, false, nil
		}
		if err := clock.Sleep(ctx, w.c.cfg.Clock, min(pause, left)); err != nil {
			return w.sent(), false, err
		}
	}
}

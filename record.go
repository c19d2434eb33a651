package canopy

import (
	"context"
	"errors"
	"log/slog"

	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// doubt is the state of e when nothing new is proved: a claim is not taken back.
func doubt(e ledger.Entry) ledger.State {
	if e.State == ledger.Authorized {
		return ledger.InDoubt
	}
	return e.State
}

// record is the second durable commit. It is written under a context of its
// own; a record that fails is a warning, since the answer is there, and the
// ledger knows the payment as authorized.
//
// Where somebody else moved the payment meanwhile, such as reconciliation or an
// equal call, what stands stays and the facts are added to it.
func (c *Client) record(ctx context.Context, e ledger.Entry, ch ledger.Change) (ledger.Entry, string) {
	if !ledger.Legal(e.State, ch.To, ledger.ByClient) {
		return e, "" // final already, by the chain's word
	}
	if ch.To == ledger.Claimed && ch.Delivered && e.Slot.Kind == payment.SlotProof {
		ch.To = ledger.Settled // nothing more becomes of it
	}
	ch.ID, ch.Version, ch.By, ch.Now = e.ID, e.Version, ledger.ByClient, c.cfg.Now()
	detached, cancel := clock.WithTimeout(context.WithoutCancel(ctx), c.cfg.Clock, recordTime)
	defer cancel()
	next, err := c.cfg.Store.Advance(detached, ch)
	for errors.Is(err, ledger.ErrStale) && detached.Err() == nil {
		cur, rerr := c.cfg.Store.Entry(detached, e.ID)
		if rerr != nil {
			break
		}
		e = cur
		if !ledger.Legal(cur.State, ch.To, ledger.ByClient) {
			ch.To = cur.State
		}
		if !ledger.Legal(cur.State, ch.To, ledger.ByClient) {
			return cur, "" // final meanwhile
		}
		ch.Version = cur.Version
		next, err = c.cfg.Store.Advance(detached, ch)
	}
	if err != nil {
		c.log(ctx, levelError, "payment outcome not recorded", &e, slog.String("error", err.Error()))
		return e, "the outcome could not be recorded: " + err.Error()
	}
	c.log(ctx, levelInfo, "payment ", &next, slog.Int("http", ch.HTTP))
	return next, ""
}

// noteOf bounds what goes into the record.
func noteOf(err error) string {
	if err == nil {
		return ""
	}
	return plaintext.Clean(err.Error(), 300)
}

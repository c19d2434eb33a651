package canopy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

const (
	// maxBehind is how far a chain's final block may be behind our clock where
	// the looking begins: after an older one come uses of before this ledger.
	maxBehind = time.Hour

	// beforeUs is for how long after the first look a use may be of before this
	// ledger: as long as an authorization is valid, and clocks may differ.
	beforeUs = 10*time.Minute + 30*time.Second

	// maxContested is how many uses of one account are asked about in vain in
	// one round: of those that all nodes show, and of the others.
	maxContested = 16
)

// looked is how far the uses of one account were looked at.
type looked struct {
	next  uint64    // the first block that was not
	known bool      // false where none was
	since time.Time // our clock at the first look; zero where a ledger does not know it
	due   due       // what is behind the cursor and nobody was told of
	been  uint64    // the first block that no round looked at

	contested []error // of this round: uses before next that were not confirmed. The cursor stays before them
	byAll     int     // how many of them all nodes show
	unasked   int     // how many more there are
}

// problems are what became of a look that ended with err.
func (l *looked) problems(err error) error {
	all := l.contested
	if l.unasked > 0 {
		all = append(all, fmt.Errorf("%d more uses of our key are not confirmed, and were not asked about", l.unasked))
	}
	return errors.Join(append(all, err)...)
}

func cursorName(k account) string {
	return "uses/" + string(k.asset.Chain) + "/" + k.asset.Address.Lower() + "/" + k.payer.Lower()
}

// sinceName is the cursor that stands at the instant of the first look, in
// seconds.
func sinceName(k account) string { return "since/" + cursorName(k) }

func (r *round) lookedAt(ctx context.Context, k account) (looked, error) {
	c, ok := r.c.cfg.Store.(ledger.Cursors)
	if !ok {
		return looked{}, nil
	}
	at, known, err := c.Cursor(ctx, cursorName(k))
	if err != nil || !known {
		return looked{}, err
	}
	out := looked{next: at + 1, known: true}
	since, known, err := c.Cursor(ctx, sinceName(k))
	if err != nil {
		return out, err
	}
	if known {
		out.since = time.Unix(int64(since), 0)
	}
	out.been = out.next
	if out.due, err = r.dueOf(ctx, k); err == nil && !r.quiet && out.due.is() {
		out.next = min(out.next, out.due.told+1)
	}
	return out, err
}

// firstLook begins to look after block at: what was before this ledger looked
// is not its business.
func (r *round) firstLook(ctx context.Context, k account, at payment.Block) error {
	c, ok := r.c.cfg.Store.(ledger.Cursors)
	if !ok {
		return nil
	}
	now := r.c.cfg.Now()
	if behind := now.Sub(at.Time); behind > maxBehind {
		return fmt.Errorf("the final block is %s behind this machine: from where on the key's uses by others count is not known yet", behind.Round(time.Second))
	}
	if err := c.MoveCursor(ctx, sinceName(k), uint64(max(now.Unix(), 0))); err != nil {
		return err
	}
	return c.MoveCursor(ctx, cursorName(k), at.Number)
}

// foreign looks for uses that this ledger never signed, in the blocks up to
// to that were not looked at. It acts on them, and only then records how far it
// looked: not beyond one that only some nodes show. Such a one holds up no other:
// those that all nodes show come first.
func (r *round) foreign(ctx context.Context, rec Reconciler, k account, from *looked, uses []payment.Settlement, to payment.Block) error {
	finder, ok := r.c.cfg.Store.(ledger.SlotFinder)
	if !ok {
		return nil
	}
	var slots []payment.Slot
	var candidates []payment.Settlement
	for _, byAll := range []bool{true, false} {
		for _, s := range uses {
			if s.ByAll == byAll && s.Block >= from.next && s.Block <= to.Number {
				slots, candidates = append(slots, s.Slot), append(candidates, s)
			}
		}
	}
	ids, err := finder.FindSlots(ctx, slots)
	if err != nil {
		return err
	}
	last := to.Number
	if len(from.contested) > 0 {
		last = 0
	}
	var told []payment.Settlement
	for i, id := range ids {
		s := candidates[i]
		after, err := r.afterRelease(ctx, id, s)
		if err != nil {
			return err
		}
		if id != "" && !after {
			continue
		}
		if known, err := r.known(ctx, s); err != nil || known {
			if err != nil {
				return err
			}
			continue
		}
		acted, err := r.actedOn(ctx, s)
		if err != nil {
			return err
		}
		if acted {
			r.tell(s)
			told = append(told, s)
			if after {
				if _, err := r.late(ctx, id, s); err != nil {
					return err
				}
			}
		}
		if acted || s.Block < from.been {
			continue // or another round told of it
		}
		if sure, err := r.confirms(ctx, rec, from, s); err != nil {
			return err
		} else if !sure {
			last = min(last, s.Block-1)
			continue
		}
		if after {
			err = r.resurrected(ctx, id, s)
		} else {
			err = r.stranger(ctx, k, s, early(s, *from, to))
		}
		if err != nil {
			return err
		}
		told = append(told, s)
	}
	for _, s := range told {
		switch {
		case r.quiet:
			err = r.owe(ctx, k, from, s)
		case s.Block > last:
			err = r.remember(ctx, s)
		}
		if err != nil {
			return err
		}
	}
	c, ok := r.c.cfg.Store.(ledger.Cursors)
	if !ok || last < from.next {
		return nil
	}
	if !r.quiet && from.due.is() {
		if err := c.MoveCursor(ctx, toldName(k), last); err != nil {
			return err
		}
	}
	return c.MoveCursor(ctx, cursorName(k), last)
}

// confirms reports whether all nodes show s, and remembers it where they do not.
// It asks so often in vain, and then no more.
func (r *round) confirms(ctx context.Context, rec Reconciler, from *looked, s payment.Settlement) (bool, error) {
	vain := len(from.contested) - from.byAll
	if s.ByAll {
		vain = from.byAll
	}
	if vain == maxContested {
		from.unasked++
		return false, nil
	}
	ok, err := rec.Confirm(ctx, s)
	if err == nil && ok {
		return true, nil
	}
	from.contested = append(from.contested, fmt.Errorf("one node shows a use of our key by %s, and others do not: %w", s.TxHash, orDisagree(err)))
	if s.ByAll {
		from.byAll++
	}
	return false, ctx.Err()
}

// afterRelease reports whether s used the slot of a payment of ours whose hold
// was released: its money moved, and counts nowhere.
func (r *round) afterRelease(ctx context.Context, id payment.ID, s payment.Settlement) (bool, error) {
	if id == "" || s.Canceled {
		return false, nil
	}
	e, err := r.c.cfg.Store.Entry(ctx, id)
	if s.Failed && e.State == ledger.Cancelled {
		return false, err // its failure cancelled the payment, and counts its fee
	}
	return err == nil && e.State.Freed(), err
}

// resurrected acts on a use after the release: whoever said that it could not
// be was wrong, and no release of theirs is to be trusted.
func (r *round) resurrected(ctx context.Context, id payment.ID, s payment.Settlement) error {
	r.tell(s)
	late, err := r.late(ctx, id, s)
	if err != nil {
		return err
	}
	if r.acted[useOf{s.Slot, s.TxHash}] {
		return nil
	}
	if err := r.freezeAll(ctx, fmt.Sprintf("payment %s: %s, and %s moved its money all the same", id, late.how(), s.TxHash)); err != nil {
		return fmt.Errorf("freezing: %w", err)
	}
	r.acted[useOf{s.Slot, s.TxHash}] = true
	return nil
}

// early reports whether s, which is not after block to, may have been signed
// before the first look.
func early(s payment.Settlement, from looked, to payment.Block) bool {
	at := s.Time
	if at.IsZero() {
		at = to.Time
	}
	return !from.since.IsZero() && at.Before(from.since.Add(beforeUs))
}

// stranger acts on one use of our key that is not ours.
func (r *round) stranger(ctx context.Context, k account, s payment.Settlement, early bool) error {
	r.tell(s)
	if r.acted[useOf{s.Slot, s.TxHash}] {
		return nil
	}
	why := fmt.Sprintf("the key of %s authorized %s on %s outside this ledger", k.payer, s.TxHash, k.asset.Chain.Name())
	if early || r.c.cfg.ForeignUse == WarnOnForeignUse {
		r.c.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "foreign use of the key", slog.String("what", why), slog.Bool("early", early))
		return nil
	}
	if err := r.freezeAll(ctx, why); err != nil {
		return fmt.Errorf("freezing: %w", err)
	}
	r.acted[useOf{s.Slot, s.TxHash}] = true
	return nil
}

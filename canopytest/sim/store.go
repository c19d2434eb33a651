package main

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// store is a process's handle on the shared ledger. It hands over before and
// after each call, and fails as disks do: before a write took effect, or after.
// A handle whose write failed writes nothing more, as a real store does not
// until it is opened again.
type store struct {
	w       *world
	p       *proc
	base    *ledger.Memory
	latched bool
}

var (
	_ ledger.Store   = (*store)(nil)
	_ ledger.Freezer = (*store)(nil)

	_ ledger.Recoverer  = (*store)(nil)
	_ ledger.Cursors    = (*store)(nil)
	_ ledger.SlotFinder = (*store)(nil)
)

var errDisk = errors.New("sim: input/output error")

// write is one durable step: f takes effect at one instant, or not at all.
func (s *store) write(ctx context.Context, what string, f func() error) error {
	w, t := s.w, taskOf(ctx)
	w.yield(t, what)
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.latched {
		return ledger.ErrReadOnly
	}
	fault := w.chance(w.setup.rate(500))
	if fault && w.chance(2) {
		w.note("%s: the disk fails before %s", t, what)
		s.latched = true
		return errDisk
	}
	err := f()
	if fault {
		w.note("%s: the disk fails after %s", t, what)
		s.latched = true
		return errDisk
	}
	w.yield(t, what+" done")
	return err
}

// read hands over, and fails now and then.
func (s *store) read(ctx context.Context, what string) error {
	w, t := s.w, taskOf(ctx)
	w.yield(t, what)
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.chance(w.setup.rate(2000)) {
		w.note("%s: the disk fails to read (%s)", t, what)
		return errDisk
	}
	return nil
}

func (s *store) Reserve(ctx context.Context, r ledger.Request) (e ledger.Entry, uses []policy.Use, err error) {
	failed := s.write(ctx, "reserve", func() error {
		e, uses, err = s.base.Reserve(context.Background(), r)
		s.p.booted = true
		s.w.oracle.reserved(taskOf(ctx), &r, e, err)
		return err
	})
	if failed != nil && failed != err {
		return ledger.Entry{}, nil, failed
	}
	return e, uses, err
}

func (s *store) Advance(ctx context.Context, c ledger.Change) (e ledger.Entry, err error) {
	failed := s.write(ctx, "advance to "+c.To.String(), func() error {
		e, err = s.base.Advance(context.Background(), c)
		s.w.oracle.advanced(taskOf(ctx), &c, e, err)
		return err
	})
	if failed != nil && failed != err {
		return ledger.Entry{}, failed
	}
	return e, err
}

func (s *store) Entry(ctx context.Context, id payment.ID) (ledger.Entry, error) {
	if err := s.read(ctx, "entry"); err != nil {
		return ledger.Entry{}, err
	}
	return s.base.Entry(context.Background(), id)
}

func (s *store) Entries(ctx context.Context, q ledger.Query) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		if err := s.read(ctx, "entries"); err != nil {
			yield(ledger.Entry{}, err)
			return
		}
		s.base.Entries(context.Background(), q)(yield)
	}
}

func (s *store) Events(ctx context.Context, id payment.ID) ([]ledger.Event, error) {
	return s.base.Events(ctx, id)
}

func (s *store) Use(ctx context.Context, limits []policy.Limit, now time.Time) ([]policy.Use, error) {
	if err := s.read(ctx, "use"); err != nil {
		return nil, err
	}
	return s.base.Use(context.Background(), limits, now)
}

func (s *store) Close() error { return nil }

func (s *store) Approvals() ledger.Approvals { return desk{s} }

// desk is the approvals of a store.
type desk struct{ s *store }

func (d desk) Approval(ctx context.Context, id payment.ApprovalID, now time.Time) (ledger.Approval, error) {
	if err := d.s.read(ctx, "approval"); err != nil {
		return ledger.Approval{}, err
	}
	return d.s.base.Approvals().Approval(context.Background(), id, now)
}

func (d desk) List(ctx context.Context, agent string, pending bool, now time.Time) ([]ledger.Approval, error) {
	return d.s.base.Approvals().List(ctx, agent, pending, now)
}

func (d desk) Decide(ctx context.Context, x ledger.Decision) (ledger.Approval, error) {
	return d.s.base.Approvals().Decide(ctx, x)
}

func (s *store) Freeze(ctx context.Context, agent, by, reason string) error {
	return s.write(ctx, "freeze", func() error {
		s.w.note("%s: %s is frozen by its client", taskOf(ctx), agent)
		s.w.frozen(agent, true)
		if agent == "" {
			s.w.oracle.alarm()
		}
		return s.base.Freeze(context.Background(), agent, by, reason)
	})
}

func (s *store) Unfreeze(ctx context.Context, agent, by, reason string) error {
	return s.base.Unfreeze(ctx, agent, by, reason)
}

func (s *store) Frozen(ctx context.Context, agent string) (bool, string, error) {
	if err := s.read(ctx, "frozen"); err != nil {
		return false, "", err
	}
	frozen, why, err := s.base.Frozen(context.Background(), agent)
	if t := taskOf(ctx); t != nil {
		t.unfrozen = err == nil && !frozen
	}
	return frozen, why, err
}

func (s *store) Freezes(ctx context.Context) (map[string]string, error) { return s.base.Freezes(ctx) }

func (s *store) Recover(ctx context.Context) (n int, err error) {
	failed := s.write(ctx, "recover", func() error {
		n, err = s.base.Recover(context.Background())
		s.w.oracle.recover(err)
		return err
	})
	return n, failed
}

func (s *store) FindSlots(ctx context.Context, slots []payment.Slot) ([]payment.ID, error) {
	if err := s.read(ctx, "find slots"); err != nil {
		return nil, err
	}
	return s.base.FindSlots(context.Background(), slots)
}

func (s *store) Cursor(ctx context.Context, name string) (uint64, bool, error) {
	if err := s.read(ctx, "cursor"); err != nil {
		return 0, false, err
	}
	return s.base.Cursor(context.Background(), name)
}

func (s *store) MoveCursor(ctx context.Context, name string, at uint64) error {
	return s.write(ctx, "move cursor", func() error {
		for _, c := range s.w.chains {
			if since := time.Unix(int64(at), 0); strings.HasPrefix(name, "since/uses/"+string(c.asset.Chain)+"/") && since.After(c.looked) {
				c.looked = since
			}
		}
		return s.base.MoveCursor(context.Background(), name, at)
	})
}

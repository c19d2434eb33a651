package ledger

import (
	"context"
	"crypto/rand"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Memory is a Store that is forgotten with the process. It is made by
// NewMemory.
type Memory struct {
	clock *Clock
	owner string
	alive func(owner string) bool // as in Env
	*book
}

// book is what a Memory keeps.
type book struct {
	mu     sync.Mutex
	closed bool
	tx     memoryTx

	scratch Scratch
	request Request // the one that is being reserved
}

var (
	_ Store    = (*Memory)(nil)
	_ Freezer  = (*Memory)(nil)
	_ Acker    = (*Memory)(nil)
	_ Verifier = (*Memory)(nil)
)

// Options are those of NewMemory. The zero value is that of a real clock.
type Options struct {
	Now func() time.Time // the store's own clock; time.Now where nil

	// Elapsed is the time that has passed since any fixed instant, by which a
	// jump of Now is seen. It goes on while the machine sleeps. nil is the time
	// since the machine's boot where Now is nil too, and else no jump is seen.
	Elapsed func() time.Duration

	// Boot names the instant that Elapsed counts from: handles of a ledger
	// that give the same name see a jump together, one that was opened after
	// it among them. Where it is empty each sees only what it lives through.
	// It is not read where Elapsed is nil.
	Boot string
}

// NewMemory returns an empty ledger in memory. Its payments have one owner, the
// process.
func NewMemory(o Options) *Memory {
	m := &Memory{clock: NewClock(o), owner: rand.Text(), book: &book{}}
	m.tx.init()
	return m
}

// begin locks m for one step; the caller unlocks.
func (m *Memory) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return ErrClosed
	}
	return nil
}

func (m *Memory) env() Env {
	return Env{Clock: m.clock, Owner: m.owner, Scratch: &m.scratch, Alive: m.alive}
}

// Reserve is that of Store.
func (m *Memory) Reserve(ctx context.Context, r Request) (Entry, []policy.Use, error) {
	if err := m.begin(ctx); err != nil {
		return Entry{}, nil, err
	}
	m.request = r
	e, uses, err := ReserveTx(&m.tx, &m.request, m.env())
	m.request = Request{}
	m.mu.Unlock()
	if e == nil {
		return Entry{}, nil, err
	}
	return Committed(e), uses, err
}

// Advance is that of Store.
func (m *Memory) Advance(ctx context.Context, c Change) (Entry, error) {
	if err := m.begin(ctx); err != nil {
		return Entry{}, err
	}
	e, err := AdvanceTx(&m.tx, &c, m.env())
	m.mu.Unlock()
	if err != nil {
		return Entry{}, err
	}
	return Committed(e), nil
}

// Entry is that of Store.
func (m *Memory) Entry(ctx context.Context, id payment.ID) (Entry, error) {
	if err := m.begin(ctx); err != nil {
		return Entry{}, err
	}
	e, err := m.tx.Entry(id)
	m.mu.Unlock()
	if err != nil {
		return Entry{}, err
	}
	return Committed(e), nil
}

// Entries is that of Store. It yields what was there when the iteration began.
func (m *Memory) Entries(ctx context.Context, q Query) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := m.begin(ctx); err != nil {
			yield(Entry{}, err)
			return
		}
		found, err := m.tx.query(q)
		m.mu.Unlock()
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for _, e := range found {
			if err := ctx.Err(); err != nil {
				yield(Entry{}, err)
				return
			}
			if !yield(Committed(e), nil) {
				return
			}
		}
	}
}

// Events is that of Store. A payment that is not there has none: ErrNotFound.
func (m *Memory) Events(ctx context.Context, id payment.ID) ([]Event, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	r, ok := m.tx.entries[id]
	if !ok {
		return nil, ErrNotFound
	}
	return r.events(), nil
}

// Use is that of Store.
func (m *Memory) Use(ctx context.Context, limits []policy.Limit, now time.Time) ([]policy.Use, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return UseTx(&m.tx, limits, now)
}

// Approvals is that of Store.
func (m *Memory) Approvals() Approvals { return memoryApprovals{m} }

// Close is that of Store. What was recorded is gone.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.tx = memoryTx{}
	return nil
}

// Freeze is that of Freezer.
func (m *Memory) Freeze(ctx context.Context, agent, by, reason string) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.tx.freezes[agent] = reason
	return nil
}

// Unfreeze is that of Freezer.
func (m *Memory) Unfreeze(ctx context.Context, agent, by, reason string) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	delete(m.tx.freezes, agent)
	return nil
}

// Frozen is that of Freezer.
func (m *Memory) Frozen(ctx context.Context, agent string) (bool, string, error) {
	if err := m.begin(ctx); err != nil {
		return false, "", err
	}
	defer m.mu.Unlock()
	return m.tx.Frozen(agent)
}

// Freezes is that of Freezer.
func (m *Memory) Freezes(ctx context.Context) (map[string]string, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	out := make(map[string]string, len(m.tx.freezes))
	for agent, reason := range m.tx.freezes {
		out[agent] = reason
	}
	return out, nil
}

// Ack is that of Acker.
func (m *Memory) Ack(ctx context.Context, by, reason string) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	return AckTx(&m.tx, m.env())
}

// Verify is that of Verifier.
func (m *Memory) Verify(ctx context.Context) (Report, error) {
	if err := m.begin(ctx); err != nil {
		return Report{}, err
	}
	defer m.mu.Unlock()
	v := NewVerification(m.tx.seen, m.tx.marks)
	for _, pool := range m.tx.lanes {
		for _, l := range pool {
			v.Lane(l)
		}
	}
	for _, id := range m.tx.budgets.order {
		v.Budget(m.tx.budgets.all[id])
	}
	for _, r := range m.tx.order {
		v.Payment(r.e, r.events())
	}
	for _, a := range m.tx.approvals {
		v.Approval(a)
	}
	for key, n := range m.tx.counters {
		v.Counter(key, *n)
	}
	return v.Report(), nil
}

type memoryApprovals struct{ m *Memory }

// Approval is that of Approvals.
func (s memoryApprovals) Approval(ctx context.Context, id payment.ApprovalID, now time.Time) (Approval, error) {
	if err := s.m.begin(ctx); err != nil {
		return Approval{}, err
	}
	defer s.m.mu.Unlock()
	a, err := s.m.tx.Approval(id)
	if err != nil {
		return Approval{}, err
	}
	return ApprovalAt(a, latest(now, s.m.tx.seen.At)), nil
}

// List is that of Approvals.
func (s memoryApprovals) List(ctx context.Context, agent string, pending bool, now time.Time) ([]Approval, error) {
	if err := s.m.begin(ctx); err != nil {
		return nil, err
	}
	defer s.m.mu.Unlock()
	now = latest(now, s.m.tx.seen.At)
	var out []Approval
	for _, id := range slices.Backward(s.m.tx.asked) {
		a := s.m.tx.approvals[id]
		if agent != "" && a.Agent != agent {
			continue
		}
		if c := ApprovalAt(a, now); !pending || c.Status == ApprovalPending {
			out = append(out, c)
		}
	}
	return out, nil
}

// Decide is that of Approvals.
func (s memoryApprovals) Decide(ctx context.Context, d Decision) (Approval, error) {
	if err := s.m.begin(ctx); err != nil {
		return Approval{}, err
	}
	defer s.m.mu.Unlock()
	a, err := DecideTx(&s.m.tx, d, s.m.env())
	if a == nil {
		return Approval{}, err
	}
	return ApprovalAt(a, s.m.tx.seen.At), err
}

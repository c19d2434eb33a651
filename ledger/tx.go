package ledger

import (
	"errors"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Tx is one atomic step of a store: what ReserveTx, AdvanceTx, DecideTx,
// UseTx, RecoverTx and AckTx read and write. Those functions hold every rule of
// the ledger, so that all stores decide alike; a store brings a Tx, runs them
// in it, commits durably, and hands out what they returned through Committed.
//
// Steps are serial: between the first read and the commit nobody else writes
// (a mutex, BEGIN IMMEDIATE, or locked rows). A Tx is used by one goroutine.
// What it reads includes what was written through it before.
//
// Several steps may share one commit. The functions read first and write last,
// and each of their errors (ErrKeyConflict, a *JoinedError, ErrStale, ErrDecided
// and so on) leaves the Tx fit for the next step; what was written before such
// an error (an expired approval, a recovered payment, aged counters) is right
// by itself and must be committed. So no savepoint is needed, and Marks,
// counters, Seen, Frozen and Owners may be read once, kept in memory and
// written once for a whole batch. Only when a method of the Tx itself fails,
// other than by ErrTaken or ErrNotFound, is the step worthless: the store
// rolls back the step (by a savepoint, its memory included) or the whole batch.
//
// Entries and approvals that go in or come out are never changed afterwards by
// either side: whoever wants to change one copies it first. An event and its
// Data are good for the call that they go in by.
// Instants are UTC and whole microseconds. Text of any content may come in
// (keys, hosts, agents, IDs) and is only ever a parameter.
type Tx interface {
	ClockTx
	EntryTx
	ApprovalTx
	CountTx
	LaneTx
	GasTx
	BudgetTx
}

// ClockTx is the ledger's time and its switches.
type ClockTx interface {
	// Seen is what SetSeen stored last, or the zero Seen.
	Seen() (Seen, error)
	SetSeen(Seen) error

	// Frozen tells whether the agent's payments are stopped, by a freeze of
	// its own or of everybody, and why.
	Frozen(agent string) (frozen bool, reason string, err error)

	// PinnedPolicy is the policy that a Pinner pinned last, or zero.
	PinnedPolicy() (payment.Hash, error)
}

// Seen is how far the ledger's time has come.
type Seen struct {
	At     time.Time // no earlier instant is stamped
	Acks   int64     // how often an operator acknowledged a clock
	Anchor Anchor    // what the clocks of this boot are held against; stored whole
}

// EntryTx reads and writes payments.
type EntryTx interface {
	// Entry is one payment, or ErrNotFound. Index: the primary key.
	Entry(id payment.ID) (*Entry, error)

	// Keyed is the payment that the key stands for, or nil: the one that holds
	// it, else the one that ShareKey named last, unless that is Freed. Index:
	// unique on (agent, key) where Entry.HoldsKey.
	Keyed(agent, key string) (*Entry, error)

	// ShareKey makes the key stand for a payment of the agent that does not
	// hold it. It is kept as long as the payment is. Index: (agent, key).
	ShareKey(agent, key string, id payment.ID) error

	// Unresolved are the agent's payments with this fingerprint that may
	// answer an equal call at now: Entry.AnswersUntil is after now. Usually
	// there is none. Newest first. Index: (agent, fingerprint, answers until)
	// where there is such an instant; delivered payments are not in it, so it
	// stays small however often the same thing was bought.
	Unresolved(agent string, fingerprint payment.Hash, now time.Time) ([]*Entry, error)

	// LastTransfer is the agent's direct transfer (Terms.IsTransfer) with this
	// fingerprint that was authorized last and is not Freed, or nil. Index:
	// (agent, fingerprint, authorized at) of authorized transfers.
	LastTransfer(agent string, fingerprint payment.Hash) (*Entry, error)

	// SlotHolder is the payment that holds the live slot of this key
	// (Slot.String), or nil. Index: unique on the slot where Entry.HoldsSlot.
	SlotHolder(slot string) (*Entry, error)

	// SlotEver is the payment that holds the slot of this key or, where none
	// does, the one that held it last, whatever became of it; nil where there
	// never was any. Index: the slots of payments that hold none any more.
	SlotEver(slot string) (*Entry, error)

	// Owners are the owners of payments in Authorized, each once, and Owned
	// are one owner's. Index: owner, where the state is Authorized.
	Owners() ([]string, error)
	Owned(owner string) ([]*Entry, error)

	// Insert stores a new payment with its first event. It fails with
	// ErrTaken, and changes nothing, where the ID, the held key or the live
	// slot is there already.
	Insert(e *Entry, ev *Event) error

	// Update replaces the payment of e.ID and appends ev, whose Seq is
	// e.Version. It fails like Insert where a key or a slot is taken.
	Update(e *Entry, ev *Event) error
}

// ErrTaken says that an ID, a key or a live slot belongs to another payment.
var ErrTaken = errors.New("ledger: the ID, the key or the slot belongs to another payment")

// ApprovalTx reads and writes approvals.
type ApprovalTx interface {
	// Approval is one, as stored, or ErrNotFound.
	Approval(id payment.ApprovalID) (*Approval, error)

	// Pending counts the agent's approvals that are stored as pending and
	// expire after now. Index: (agent, expiry) of pending ones.
	Pending(agent string, now time.Time) (int, error)

	// PutApproval stores a new approval or replaces the one of its ID.
	PutApproval(a *Approval) error

	// Approver is the person of that name, revoked or not, or ErrNotFound.
	// Index: the folded name.
	Approver(name string) (*Approver, error)
}

// CountTx is what caps are checked by: running counters, and the entries that
// they are made of. See Mark for how they stay exact.
type CountTx interface {
	// Marks are all that PutMark stored, one for each window: a few.
	Marks() ([]Mark, error)
	PutMark(Mark) error

	// DropMark forgets the mark of a window and every counter in it.
	DropMark(policy.Window) error

	// Counter is one counter, and false where there is none. Losing a counter
	// is harmless at any time: it is made again from the entries.
	Counter(CounterKey) (Counter, bool, error)

	// PutCounter stores a counter. One whose Count is 0 may be left out.
	PutCounter(CounterKey, Counter) error

	// Due are the closed entries after a point, at most limit of them, in the
	// order of their points. An entry is closed if CountedUntil says that it
	// counts and is not open; its Point is (until, ID). Index: (until, ID)
	// over closed entries.
	Due(after Point, limit int) ([]Spent, error)

	// Tally adds up the entries in s that count and are open or after the
	// point. It runs only when a counter is new, and for Held with a recent
	// point, so it may read all that it adds up, but nothing else: a host or
	// payee never paid must cost one look. Indexes: (until, ID) as above; the
	// open ones; (agent, host, until), (shared, host, until), and payees.
	Tally(s policy.Scope, after Point, now time.Time) (Tally, error)

	// Oldest is the smallest until of the closed entries in s after the
	// point, and the zero time where there is none. It runs for refusals and
	// reports only.
	Oldest(s policy.Scope, after Point) (time.Time, error)
}

// Point orders closed entries: by the instant until which they count, then by
// ID. The zero Point is before every entry.
type Point struct {
	Until time.Time
	ID    payment.ID
}

// After reports whether p is after q.
func (p Point) After(q Point) bool {
	if p.Until.Equal(q.Until) {
		return p.ID > q.ID
	}
	return p.Until.After(q.Until)
}

// Mark is how far the counters of one window have aged. Every counter of the
// window is exactly the sum over the entries of its scope that count and are
// open or after At. In every window an entry stops to count at a threshold
// that only rises with time (now - Length, or the start of the calendar
// period), so ageing moves At forward and takes away what it passes: one walk
// for all scopes.
type Mark struct {
	Window policy.Window // as CounterKey has it

	At    Point
	Next  time.Time // no closed entry after At is until an instant before Next
	End   time.Time // of the calendar period that At is the start of; else zero
	Kinds uint16    // bit k set: counters of scope kind k may exist
}

// CounterKey names a counter. Scope and Window are normalised by NewCounterKey
// so that equal ones are ==.
type CounterKey struct {
	Scope  policy.Scope
	Window policy.Window
}

// NewCounterKey returns the key of the counter of s in w.
func NewCounterKey(s policy.Scope, w policy.Window) CounterKey {
	normalScope(&s)
	normalWindow(&w)
	return CounterKey{s, w}
}

func normalScope(s *policy.Scope) {
	if s.Kind == policy.ScopeOrg {
		*s = policy.Scope{Kind: policy.ScopeOrg}
		return
	}
	if s.Kind == policy.ScopeBudget {
		*s = policy.Scope{Kind: s.Kind, Name: s.Name}
		return
	}
	if s.Shared {
		s.Agent = ""
	}
	if s.Kind < policy.ScopeCategory {
		s.Name = ""
	}
	if s.Kind != policy.ScopeHost {
		s.Host = ""
	}
	if s.Kind != policy.ScopePayee {
		s.Payee = payment.Address{}
	}
}

func normalWindow(w *policy.Window) {
	switch w.Kind {
	case policy.Rolling:
		w.Zone = ""
	case policy.Day, policy.Week, policy.Month:
		w.Length = 0
		if w.Zone == "" {
			w.Zone = "UTC"
		}
	default:
		*w = policy.Window{Kind: w.Kind}
	}
}

// Counter is the sum and the number of the entries that a key counts.
type Counter struct {
	USD   payment.USD
	Count int64
}

// Spent is what ageing needs of a closed entry.
type Spent struct {
	At    Point
	Facts policy.Facts
	Cost  payment.USD // Entry.Spent
}

// Tally is what Tx.Tally adds up.
type Tally struct {
	Counter
	Held payment.USD // the part whose State is Live and that is open or until now or later
}

// Env is the handle that a step is made by.
type Env struct {
	Clock *Clock // of the store; one for all steps of a handle
	Owner string // what this handle writes into Entry.Owner

	// Scratch is memory that steps use again; nil allocates. Steps that share
	// one are never concurrent.
	Scratch *Scratch

	// Alive tells whether the process of an owner still runs. It is not asked
	// about Owner. nil means that no other owner is alive.
	Alive func(owner string) bool
}

// Scratch is memory for the steps of one handle. The zero value is ready.
type Scratch struct {
	count counting
	event Event
	bytes []byte // event.Data is in them
}

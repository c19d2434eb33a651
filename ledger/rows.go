package ledger

import (
	"slices"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// row is one payment. e is replaced, never changed.
type row struct {
	e      *Entry
	first  Event
	later  []Event
	payees []payment.Address

	payee [1]payment.Address // what payees is in, where it is one
	place [2]uint32          // in the sets that the row is in
	n     uint32             // in the order of first commits
}

// events are copies of r's, oldest first.
func (r *row) events() []Event {
	out := append(append(make([]Event, 0, 1+len(r.later)), r.first), r.later...)
	for i := range out {
		out[i].Data = slices.Clone(out[i].Data)
	}
	return out
}

// shelf is room for rows and for what events keep, cut from pieces that hold
// many: a Memory forgets neither.
type shelf struct {
	rows []row
	data []byte
}

const (
	shelfRows = 32
	shelfData = 16 << 10
)

// row is a new one.
func (s *shelf) row(e *Entry, ev *Event) *row {
	if len(s.rows) == 0 {
		s.rows = make([]row, shelfRows)
	}
	r := &s.rows[0]
	s.rows = s.rows[1:]
	r.e, r.first = e, s.keep(ev)
	r.payees = payeesOf(r.payee[:0], e.Terms.Recipients)
	return r
}

// keep is ev with Data of its own.
func (s *shelf) keep(ev *Event) Event {
	kept := *ev
	n := len(ev.Data)
	if n > cap(s.data)-len(s.data) {
		s.data = make([]byte, 0, max(n, shelfData))
	}
	start := len(s.data)
	s.data = append(s.data, ev.Data...)
	kept.Data = s.data[start : start+n : start+n]
	return kept
}

// facts are those of r.e.
func (r *row) facts() policy.Facts {
	return policy.Facts{Agent: r.e.Agent, Shared: r.e.Shared, Host: r.e.Host, Payees: r.payees, Run: r.e.Run, Budgets: r.e.Budgets}
}

// rowSet is some rows in no order. Its zero value is that of inOwned.
type rowSet struct {
	kind int
	rows []*row
}

// The kinds of sets: a row is in one of each at most.
const (
	inOwned = iota
	inOpen
)

func (s *rowSet) add(r *row) {
	r.place[s.kind] = uint32(len(s.rows))
	s.rows = append(s.rows, r)
}

// remove takes out r, which is in s.
func (s *rowSet) remove(r *row) {
	end := len(s.rows) - 1
	i, last := r.place[s.kind], s.rows[end]
	s.rows[i], s.rows[end] = last, nil
	last.place[s.kind] = i
	s.rows = s.rows[:end]
}

// ownedRows are the payments in Authorized of one owner.
type ownedRows struct {
	owner string
	rowSet
}

// owner is the set of an owner, made where there is none.
func (t *memoryTx) owner(name string) *rowSet {
	for _, o := range t.owned {
		if o.owner == name {
			return &o.rowSet
		}
	}
	o := &ownedRows{owner: name}
	t.owned = append(t.owned, o)
	return &o.rowSet
}

// Owners is that of EntryTx. What it returned before is overwritten.
func (t *memoryTx) Owners() ([]string, error) {
	t.names = t.names[:0]
	for _, o := range t.owned {
		if len(o.rows) > 0 {
			t.names = append(t.names, o.owner)
		}
	}
	return t.names, nil
}

// Owned is that of EntryTx.
func (t *memoryTx) Owned(owner string) ([]*Entry, error) {
	var out []*Entry
	for _, r := range t.owner(owner).rows {
		out = append(out, r.e)
	}
	return out, nil
}

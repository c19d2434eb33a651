package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// memoryTx is Memory's Tx, over maps. Its methods cannot fail half-way.
type memoryTx struct {
	seen    Seen
	freezes map[string]string
	pins    []Pin // oldest first

	entries   map[payment.ID]*row
	order     []*row // by first commit
	shelf     shelf
	keys      map[keyName]*row
	shared    map[keyName]*row
	equal     map[callName][]*row   // those with an AnswersUntil
	transfers map[callName][]*row   // authorized direct transfers
	slots     map[string]*row       // live ones
	ended     map[string]payment.ID // slots that were live, by the payment that had them last
	cursors   map[string]uint64
	lanes     map[account][]Lane
	gas       map[account]map[*row]struct{} // those with a GasUntil
	owned     []*ownedRows
	names     []string // what Owners returned

	approvals map[payment.ApprovalID]*Approval
	asked     []payment.ApprovalID
	pending   map[string]map[payment.ApprovalID]*Approval
	approvers map[string]*Approver // by FoldApprover
	budgets   budgetBook

	deliveries map[string]map[payment.ApprovalID]*delivery // by channel

	marks    []Mark
	counters map[CounterKey]*Counter
	recent   recentCounters
	open     rowSet
	closed   queue
	due      []Spent                     // what Due returned
	hosts    map[string]*[]*row          // authorized payments
	payees   map[payment.Address]*[]*row // and by each of their recipients
	places   map[Place]*[]*row           // where they are remembered, in the order of their authorization
	works    map[work]*[]*row            // and by their run and each of their budgets
}

type keyName struct{ agent, key string }

// work is a run or a budget.
type work struct {
	kind policy.ScopeKind
	name string
}

// account is one on one chain.
type account struct {
	chain payment.ChainID
	from  payment.Address
}

type callName struct {
	agent       string
	fingerprint payment.Hash
}

func (t *memoryTx) init() {
	t.freezes = map[string]string{}
	t.entries = map[payment.ID]*row{}
	t.keys = map[keyName]*row{}
	t.shared = map[keyName]*row{}
	t.equal = map[callName][]*row{}
	t.transfers = map[callName][]*row{}
	t.slots = map[string]*row{}
	t.ended = map[string]payment.ID{}
	t.cursors = map[string]uint64{}
	t.lanes = map[account][]Lane{}
	t.gas = map[account]map[*row]struct{}{}
	t.approvals = map[payment.ApprovalID]*Approval{}
	t.pending = map[string]map[payment.ApprovalID]*Approval{}
	t.approvers = map[string]*Approver{}
	t.deliveries = map[string]map[payment.ApprovalID]*delivery{}
	t.counters = map[CounterKey]*Counter{}
	t.open.kind = inOpen
	t.hosts = map[string]*[]*row{}
	t.payees = map[payment.Address]*[]*row{}
	t.places = map[Place]*[]*row{}
	t.works = map[work]*[]*row{}
	t.budgets.init()
}

// Seen is that of ClockTx.
func (t *memoryTx) Seen() (Seen, error) { return t.seen, nil }

// SetSeen is that of ClockTx.
func (t *memoryTx) SetSeen(s Seen) error {
	t.seen = s
	return nil
}

// Frozen is that of ClockTx.
func (t *memoryTx) Frozen(agent string) (bool, string, error) {
	if len(t.freezes) == 0 {
		return false, "", nil
	}
	reason, ok := t.freezes[""]
	if !ok {
		reason, ok = t.freezes[agent]
	}
	return ok, reason, nil
}

// Entry is that of EntryTx.
func (t *memoryTx) Entry(id payment.ID) (*Entry, error) {
	if r, ok := t.entries[id]; ok {
		return r.e, nil
	}
	return nil, ErrNotFound
}

// Keyed is that of EntryTx.
func (t *memoryTx) Keyed(agent, key string) (*Entry, error) {
	if r, ok := t.keys[keyName{agent, key}]; ok {
		return r.e, nil
	}
	if r, ok := t.shared[keyName{agent, key}]; ok && !r.e.State.Freed() {
		return r.e, nil
	}
	return nil, nil
}

// ShareKey is that of EntryTx.
func (t *memoryTx) ShareKey(agent, key string, id payment.ID) error {
	r, ok := t.entries[id]
	if !ok {
		return ErrNotFound
	}
	t.shared[keyName{agent, key}] = r
	return nil
}

// Unresolved is that of EntryTx.
func (t *memoryTx) Unresolved(agent string, fingerprint payment.Hash, now time.Time) ([]*Entry, error) {
	var out []*Entry
	for _, r := range slices.Backward(t.equal[callName{agent, fingerprint}]) {
		if until, ok := r.e.AnswersUntil(); ok && until.After(now) {
			out = append(out, r.e)
		}
	}
	return out, nil
}

// LastTransfer is that of EntryTx.
func (t *memoryTx) LastTransfer(agent string, fingerprint payment.Hash) (*Entry, error) {
	for _, r := range slices.Backward(t.transfers[callName{agent, fingerprint}]) {
		if !r.e.State.Freed() {
			return r.e, nil
		}
	}
	return nil, nil
}

// SlotHolder is that of EntryTx.
func (t *memoryTx) SlotHolder(slot string) (*Entry, error) {
	if r, ok := t.slots[slot]; ok {
		return r.e, nil
	}
	return nil, nil
}

// SlotEver is that of EntryTx.
func (t *memoryTx) SlotEver(slot string) (*Entry, error) {
	if r, ok := t.slots[slot]; ok {
		return r.e, nil
	}
	if id, ok := t.ended[slot]; ok {
		return t.entries[id].e, nil
	}
	return nil, nil
}

// Lanes is that of LaneTx.
func (t *memoryTx) Lanes(chain payment.ChainID, from payment.Address) ([]Lane, error) {
	return slices.Clone(t.lanes[account{chain, from}]), nil
}

// PutLane is that of LaneTx.
func (t *memoryTx) PutLane(l Lane) error {
	k := account{l.Chain, l.From}
	if i := slices.IndexFunc(t.lanes[k], func(o Lane) bool { return o.Key == l.Key }); i >= 0 {
		t.lanes[k][i] = l
	} else {
		t.lanes[k] = append(t.lanes[k], l)
	}
	return nil
}

// DropLane is that of LaneTx.
func (t *memoryTx) DropLane(l Lane) error {
	k := account{l.Chain, l.From}
	t.lanes[k] = slices.DeleteFunc(t.lanes[k], func(o Lane) bool { return o.Key == l.Key })
	return nil
}

// GasUsers is that of GasTx.
func (t *memoryTx) GasUsers(chain payment.ChainID, from payment.Address, after time.Time) ([]*Entry, error) {
	var out []*Entry
	for r := range t.gas[account{chain, from}] {
		if until, open, _ := r.e.GasUntil(); open || until.After(after) {
			out = append(out, r.e)
		}
	}
	return out, nil
}

// gases puts r among those that count for a day's gas, or takes it out.
func (t *memoryTx) gases(r *row) {
	k := account{r.e.Slot.Chain, r.e.Slot.From}
	if _, _, counts := r.e.GasUntil(); !counts {
		delete(t.gas[k], r)
		return
	}
	if t.gas[k] == nil {
		t.gas[k] = map[*row]struct{}{}
	}
	t.gas[k][r] = struct{}{}
}

// Insert is that of EntryTx.
func (t *memoryTx) Insert(e *Entry, ev *Event) error {
	if _, ok := t.entries[e.ID]; ok || t.taken(e, nil) {
		return ErrTaken
	}
	r := t.shelf.row(e, ev)
	r.n = uint32(len(t.order))
	t.entries[e.ID] = r
	t.order = append(t.order, r)
	t.index(r, nil, e)
	return nil
}

// Update is that of EntryTx.
func (t *memoryTx) Update(e *Entry, ev *Event) error {
	r, ok := t.entries[e.ID]
	if !ok {
		return ErrNotFound
	}
	if t.taken(e, r) {
		return ErrTaken
	}
	was := r.e
	r.e = e
	r.later = append(r.later, t.shelf.keep(ev))
	t.index(r, was, e)
	return nil
}

// taken reports whether another row than own has e's key or slot.
func (t *memoryTx) taken(e *Entry, own *row) bool {
	if e.HoldsKey() {
		if r := t.keys[keyName{e.Agent, e.Key}]; r != nil && r != own {
			return true
		}
	}
	if e.HoldsSlot() {
		if r := t.slots[e.SlotKey()]; r != nil && r != own {
			return true
		}
	}
	return false
}

var noEntry Entry

// index moves r from where was put it to where is belongs.
func (t *memoryTx) index(r *row, was, is *Entry) {
	if was == nil {
		was = &noEntry
	}
	if was.HoldsKey() {
		delete(t.keys, keyName{was.Agent, was.Key})
	}
	if is.HoldsKey() {
		t.keys[keyName{is.Agent, is.Key}] = r
	}
	switch held := was.HoldsSlot(); {
	case held && !is.HoldsSlot():
		delete(t.slots, was.SlotKey())
		t.ended[was.SlotKey()] = is.ID
	case !held && is.HoldsSlot():
		t.slots[is.SlotKey()] = r
	}
	call := callName{is.Agent, is.Fingerprint}
	_, before := was.AnswersUntil()
	_, after := is.AnswersUntil()
	switch {
	case after && !before:
		rows := t.equal[call]
		i, _ := slices.BinarySearchFunc(rows, r.n, func(o *row, n uint32) int { return cmp.Compare(o.n, n) })
		t.equal[call] = slices.Insert(rows, i, r)
	case before && !after:
		t.remove(call, r)
	}
	if was.State == Authorized {
		t.owner(was.Owner).remove(r)
	}
	if is.State == Authorized {
		t.owner(is.Owner).add(r)
	}
	if was.AuthorizedAt.IsZero() && !is.AuthorizedAt.IsZero() {
		t.file(r, call)
		t.remember(r)
	}
	if !is.Gas.IsZero() {
		t.gases(r)
	}
	t.span(r, spanOf(was), spanOf(is))
}

func (t *memoryTx) remove(call callName, r *row) {
	rows := t.equal[call]
	if rows = slices.DeleteFunc(rows, func(o *row) bool { return o == r }); len(rows) == 0 {
		delete(t.equal, call)
		return
	}
	t.equal[call] = rows
}

// file puts an authorized payment under its call, host and payees.
func (t *memoryTx) file(r *row, call callName) {
	if r.e.Terms.IsTransfer() {
		t.transfers[call] = append(t.transfers[call], r)
	}
	file(t.hosts, r.e.Host, r)
	if r.e.Run != "" {
		file(t.works, work{policy.ScopeRun, r.e.Run}, r)
	}
	for _, id := range r.e.Budgets {
		file(t.works, work{policy.ScopeBudget, string(id)}, r)
	}
	for i, p := range r.payees {
		if !contains(r.payees[:i], p) {
			file(t.payees, p, r)
		}
	}
}

func file[K comparable](m map[K]*[]*row, key K, r *row) {
	rows := m[key]
	if rows == nil {
		rows = new([]*row)
		m[key] = rows
	}
	*rows = append(*rows, r)
}

// span moves r between the open and the closed ones.
func (t *memoryTx) span(r *row, was, is span) {
	if was == is {
		return
	}
	if was.open {
		t.open.remove(r)
	} else if was.counts {
		t.closed.remove(was.at)
	}
	if is.open {
		t.open.add(r)
	} else if is.counts {
		t.closed.add(is.at, r)
	}
}

// query is the entries that match q, in q's order.
func (t *memoryTx) query(q Query) ([]*Entry, error) {
	var out []*Entry
	skip := 0
	if q.After != "" {
		r, ok := t.entries[q.After]
		if !ok {
			return nil, ErrNotFound
		}
		if skip = int(r.n) + 1; !q.Oldest {
			skip = len(t.order) - int(r.n)
		}
	}
	match := func(e *Entry) bool {
		return (q.Agent == "" || e.Agent == q.Agent) && (q.Host == "" || e.Host == q.Host) &&
			(len(q.States) == 0 || slices.Contains(q.States, e.State)) &&
			(q.Since.IsZero() || !e.CreatedAt.Before(q.Since)) && (q.Until.IsZero() || e.CreatedAt.Before(q.Until))
	}
	for i := skip; i < len(t.order); i++ {
		at := i
		if !q.Oldest {
			at = len(t.order) - 1 - i
		}
		if e := t.order[at].e; match(e) {
			if out = append(out, e); q.Limit > 0 && len(out) == q.Limit {
				break
			}
		}
	}
	return out, nil
}

// Approval is that of ApprovalTx.
func (t *memoryTx) Approval(id payment.ApprovalID) (*Approval, error) {
	if a, ok := t.approvals[id]; ok {
		return a, nil
	}
	return nil, ErrNotFound
}

// Pending is that of ApprovalTx.
func (t *memoryTx) Pending(agent string, now time.Time) (int, error) {
	n := 0
	for _, a := range t.pending[agent] {
		if a.ExpiresAt.After(now) {
			n++
		}
	}
	return n, nil
}

// PutApproval is that of ApprovalTx.
func (t *memoryTx) PutApproval(a *Approval) error {
	if _, ok := t.approvals[a.ID]; !ok {
		t.asked = append(t.asked, a.ID)
	}
	t.approvals[a.ID] = a
	if t.pending[a.Agent] == nil {
		t.pending[a.Agent] = map[payment.ApprovalID]*Approval{}
	}
	if delete(t.pending[a.Agent], a.ID); a.Status == ApprovalPending {
		t.pending[a.Agent][a.ID] = a
	}
	return nil
}

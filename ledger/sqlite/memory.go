package sqlite

import (
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Bounds of what a memory keeps from one batch to the next.
const (
	maxRows     = 4096
	maxCounters = 4096
)

// memory is what the committer knows of the file without asking: read once,
// changed by its own steps, written once a batch. It holds until another
// connection commits, or a batch is rolled back. Parts not read yet are nil.
type memory struct {
	meta     *meta
	freezes  map[string]string
	pinned   *payment.Hash
	owners   map[string]bool // owners of authorized payments, at least
	marks    map[policy.Window]*markRow
	counters map[ledger.CounterKey]*counterRow
	rows     map[payment.ID]*paymentRow
	budgets  map[payment.BudgetID]*ledger.Budget
	spending map[spendingKey]spent // what is to be added to the table

	dirtyMeta     bool
	dirtyAnchor   bool
	dirtyMarks    []*markRow
	dirtyCounters []ledger.CounterKey
}

// meta is the one row of the table meta.
type meta struct {
	ledger  string
	seen    ledger.Seen
	events  int64
	serial  int64
	marked  int64
	checked int64
}

type markRow struct {
	ledger.Mark
	dirty bool
}

type counterRow struct {
	ledger.Counter
	there bool // it exists, as far as the steps know
	dirty bool
}

type paymentRow struct {
	n int64
	e *ledger.Entry
}

func newMemory() *memory {
	return &memory{
		counters: map[ledger.CounterKey]*counterRow{},
		rows:     map[payment.ID]*paymentRow{},
		budgets:  map[payment.BudgetID]*ledger.Budget{},
	}
}

// trim forgets what may grow without bound. Nothing in it is dirty then.
func (m *memory) trim() {
	if len(m.rows) > maxRows {
		clear(m.rows)
	}
	if len(m.budgets) > maxRows {
		clear(m.budgets)
	}
	if len(m.counters) > maxCounters {
		clear(m.counters)
	}
}

// flush writes what the steps changed.
func (t *tx) flush() error {
	m := t.mem
	for _, k := range m.dirtyCounters {
		if err := t.writeCounter(k, m.counters[k]); err != nil {
			return err
		}
	}
	m.dirtyCounters = m.dirtyCounters[:0]
	for _, r := range m.dirtyMarks {
		if r.dirty {
			if err := t.writeMark(r); err != nil {
				return err
			}
		}
	}
	m.dirtyMarks = m.dirtyMarks[:0]
	if err := t.writeSpending(); err != nil {
		return err
	}
	if !m.dirtyMeta {
		return nil
	}
	m.dirtyMeta = false
	v := m.meta
	if m.dirtyAnchor {
		m.dirtyAnchor = false
		if _, _, err := t.c.exec(`UPDATE meta SET anchor = ?`, encodeAnchor(v.ledger, &v.seen.Anchor)); err != nil {
			return err
		}
	}
	_, _, err := t.c.exec(`UPDATE meta SET seen = ?, acks = ?, events = ?, serial = ?, marked = ?`,
		v.seen.At.UnixMicro(), v.seen.Acks, v.events, v.serial, v.marked)
	return err
}

// readMeta returns the row of meta, to be changed in place by a step that sets
// dirtyMeta.
func (t *tx) readMeta() (*meta, error) {
	if t.mem.meta != nil {
		return t.mem.meta, nil
	}
	var v meta
	var created, sum, seen int64
	var anchor []byte
	ok, err := t.c.first(`SELECT ledger, created, sum, seen, acks, events, serial, marked, checked, anchor FROM meta`, nil,
		&v.ledger, &created, &sum, &seen, &v.seen.Acks, &v.events, &v.serial, &v.marked, &v.checked, &anchor)
	if err != nil {
		return nil, err
	}
	if !ok || sum != metaSum(v.ledger, created) {
		return nil, t.c.fail(fmt.Errorf("the table meta: %w", ErrDamaged))
	}
	v.seen.At = fromMicro(seen)
	if err := decodeAnchor(anchor, v.ledger, &v.seen.Anchor); err != nil {
		return nil, t.c.fail(fmt.Errorf("the table meta: %w", err))
	}
	t.mem.meta = &v
	return &v, nil
}

func metaSum(ledger string, created int64) int64 {
	w := &writer{}
	w.string(ledger)
	w.int(created)
	return int64(crc32.Checksum(w.b, castagnoli))
}

// encodeAnchor is a as the row of meta keeps it: no bytes where there is none.
func encodeAnchor(id string, a *ledger.Anchor) []byte {
	if a.Boot == "" {
		return []byte{}
	}
	w := &writer{}
	w.string(a.Boot)
	w.int(int64(a.Elapsed))
	w.time(a.Wall)
	return w.seal(func(w *writer) { w.string(id) })
}

func decodeAnchor(b []byte, id string, a *ledger.Anchor) error {
	if len(b) == 0 {
		return nil
	}
	r := unseal(b, func(w *writer) { w.string(id) })
	a.Boot = r.string()
	a.Elapsed = time.Duration(r.int())
	a.Wall = r.time()
	return r.end()
}

// Seen implements ledger.ClockTx.
func (t *tx) Seen() (ledger.Seen, error) {
	m, err := t.readMeta()
	if err != nil {
		return ledger.Seen{}, err
	}
	return m.seen, nil
}

// SetSeen implements ledger.ClockTx.
func (t *tx) SetSeen(s ledger.Seen) error {
	m, err := t.readMeta()
	if err != nil {
		return err
	}
	if m.seen != s {
		t.mem.dirtyMeta, t.mem.dirtyAnchor = true, t.mem.dirtyAnchor || m.seen.Anchor != s.Anchor
		m.seen = s
	}
	return nil
}

// Frozen implements ledger.ClockTx.
func (t *tx) Frozen(agent string) (bool, string, error) {
	all, err := t.readFreezes()
	if err != nil {
		return false, "", err
	}
	if reason, ok := all[""]; ok {
		return true, reason, nil
	}
	reason, ok := all[agent]
	return ok, reason, nil
}

func (t *tx) readFreezes() (map[string]string, error) {
	if t.mem.freezes != nil {
		return t.mem.freezes, nil
	}
	all := map[string]string{}
	err := t.c.query(`SELECT agent, reason FROM freezes`, nil, func(row []driver.Value) error {
		var agent, reason string
		err := scan(row, &agent, &reason)
		all[agent] = reason
		return err
	})
	if err != nil {
		return nil, err
	}
	t.mem.freezes = all
	return all, nil
}

// windowKey is a window as a key of the tables marks and counters.
func windowKey(w policy.Window) []byte {
	b := append(make([]byte, 0, 12+len(w.Zone)), byte(w.Kind))
	b = binary.BigEndian.AppendUint64(b, uint64(w.Length))
	return append(b, w.Zone...)
}

func parseWindow(b []byte) (policy.Window, error) {
	if len(b) < 9 {
		return policy.Window{}, ErrDamaged
	}
	return policy.Window{
		Kind:   policy.WindowKind(b[0]),
		Length: time.Duration(binary.BigEndian.Uint64(b[1:])),
		Zone:   string(b[9:]),
	}, nil
}

// scopeKey is a scope as a key of the table counters: different for different
// scopes, whatever their texts hold.
func scopeKey(s policy.Scope) []byte {
	w := &writer{make([]byte, 0, 32+len(s.Agent)+len(s.Host))}
	w.uint(uint64(s.Kind))
	w.bool(s.Shared)
	w.string(s.Agent)
	w.string(s.Host)
	switch {
	case s.Kind == policy.ScopePayee:
		w.fixed(s.Payee[:])
	case s.Kind > policy.ScopePayee:
		w.string(s.Name)
	}
	return w.b
}

func parseScope(b []byte) (policy.Scope, error) {
	r := &reader{b: b}
	s := policy.Scope{Kind: policy.ScopeKind(r.uint()), Shared: r.bool(), Agent: r.string(), Host: r.string()}
	switch {
	case s.Kind == policy.ScopePayee:
		r.fixed(s.Payee[:])
	case s.Kind > policy.ScopePayee:
		s.Name = r.string()
	}
	return s, r.end()
}

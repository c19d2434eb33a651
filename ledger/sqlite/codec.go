package sqlite

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// A version stands first in every body. Another one is another layout.
const (
	approvalVersion = 2
	entryVersion    = 4

	// Older approvals are read and never written: those of version 1 know of no
	// approvers, and have the one vote that decided beside them.
	firstApproval = 1

	// Older entries are read and never written. Those of version 1 have their
	// cost in the column, and know neither of variants nor of the fee that was
	// paid; those of version 2 know nothing of gas, and
	// those of version 3 nothing of runs and budgets.
	firstEntry  = 1
	secondEntry = 2
	thirdEntry  = 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal appends a sum over the body and over the columns beside it, which beside
// writes: a disk that changed a byte is noticed by whoever reads the row. It is
// no defence against people; the chain of events is.
func (w *writer) seal(beside func(*writer)) []byte {
	sum := crc32.Checksum(w.b, castagnoli)
	c := &writer{make([]byte, 0, 160)}
	beside(c)
	sum = crc32.Update(sum, castagnoli, c.b)
	return binary.BigEndian.AppendUint32(w.b, sum)
}

// unseal returns the body without its sum, which must be right.
func unseal(b []byte, beside func(*writer)) *reader {
	r := &reader{b: b}
	if len(b) < 4 {
		r.fail()
		return r
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	c := &writer{make([]byte, 0, 160)}
	beside(c)
	if crc32.Update(crc32.Checksum(body, castagnoli), castagnoli, c.b) != sum {
		r.fail()
		return r
	}
	r.b = body
	return r
}

// writer appends fields to a body: lengths and integers as varints, text and
// bytes with their length, instants as microseconds.
type writer struct{ b []byte }

func (w *writer) uint(n uint64)   { w.b = binary.AppendUvarint(w.b, n) }
func (w *writer) int(n int64)     { w.b = binary.AppendVarint(w.b, n) }
func (w *writer) fixed(b []byte)  { w.b = append(w.b, b...) }
func (w *writer) bytes(b []byte)  { w.uint(uint64(len(b))); w.b = append(w.b, b...) }
func (w *writer) string(s string) { w.uint(uint64(len(s))); w.b = append(w.b, s...) }

func (w *writer) bool(v bool) {
	if v {
		w.b = append(w.b, 1)
	} else {
		w.b = append(w.b, 0)
	}
}

func (w *writer) time(t time.Time) {
	w.bool(!t.IsZero())
	if !t.IsZero() {
		w.int(t.UnixMicro())
	}
}

func (w *writer) units(u payment.Units) {
	b := u.Bytes()
	i := 0
	for i < len(b) && b[i] == 0 {
		i++
	}
	w.bytes(b[i:])
}

// hash writes a zero hash as one byte, for those that are often absent.
func (w *writer) hash(h payment.Hash) {
	w.bool(!h.IsZero())
	if !h.IsZero() {
		w.fixed(h[:])
	}
}

// reader takes them apart. After the first error everything is zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail() {
	if r.err == nil {
		r.err = fmt.Errorf("sqlite: a stored record is not as it was written: %w", ErrDamaged)
	}
	r.b = nil
}

func (r *reader) uint() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) int() int64 {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) fixed(dst []byte) { copy(dst, r.take(uint64(len(dst)))) }
func (r *reader) string() string   { return string(r.take(r.uint())) }

func (r *reader) bytes() []byte {
	if b := r.take(r.uint()); len(b) > 0 {
		return append([]byte(nil), b...)
	}
	return nil
}

func (r *reader) bool() bool {
	b := r.take(1)
	if len(b) == 1 && b[0] > 1 {
		r.fail()
	}
	return len(b) == 1 && b[0] == 1
}

func (r *reader) time() time.Time {
	if !r.bool() {
		return time.Time{}
	}
	return fromMicro(r.int())
}

func (r *reader) units() payment.Units {
	b := r.take(r.uint())
	if len(b) > 32 {
		r.fail()
		return payment.Units{}
	}
	var full [32]byte
	copy(full[32-len(b):], b)
	return payment.UnitsFromBytes(full)
}

func (r *reader) hash() (h payment.Hash) {
	if r.bool() {
		r.fixed(h[:])
	}
	return h
}

// count is the length of a list whose items take at least size bytes each.
func (r *reader) count(size int) int {
	n := r.uint()
	if n > uint64(len(r.b)/size) {
		r.fail()
		return 0
	}
	return int(n)
}

// end reports what went wrong, a rest that nobody read among it.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail()
	}
	return r.err
}

func fromMicro(n int64) time.Time { return time.UnixMicro(n).UTC() }

func (w *writer) terms(t *payment.Terms) {
	w.string(t.Rail)
	w.string(t.Scheme)
	w.string(string(t.Asset.Chain))
	w.fixed(t.Asset.Address[:])
	w.string(t.Asset.Symbol)
	w.uint(uint64(t.Asset.Decimals))
	w.string(t.Asset.Name)
	w.string(t.Asset.Version)
	w.bool(t.Asset.NoAuthorization)
	w.uint(uint64(len(t.Recipients)))
	for _, p := range t.Recipients {
		w.fixed(p.Address[:])
		w.units(p.Amount)
	}
	w.units(t.Amount)
	w.int(int64(t.FeeBound))
	w.string(t.Method)
	w.string(t.Origin)
	w.string(t.Target)
	w.hash(payment.Hash(t.BodyDigest))
	w.int(int64(t.Validity))
}

func (r *reader) terms(t *payment.Terms) {
	t.Rail = r.string()
	t.Scheme = r.string()
	t.Asset.Chain = payment.ChainID(r.string())
	r.fixed(t.Asset.Address[:])
	t.Asset.Symbol = r.string()
	t.Asset.Decimals = uint8(r.uint())
	t.Asset.Name = r.string()
	t.Asset.Version = r.string()
	t.Asset.NoAuthorization = r.bool()
	if n := r.count(21); n > 0 {
		t.Recipients = make([]payment.Recipient, n)
	}
	for i := range t.Recipients {
		r.fixed(t.Recipients[i].Address[:])
		t.Recipients[i].Amount = r.units()
	}
	t.Amount = r.units()
	t.FeeBound = payment.USD(r.int())
	t.Method = r.string()
	t.Origin = r.string()
	t.Target = r.string()
	t.BodyDigest = r.hash()
	t.Validity = time.Duration(r.int())
}

// shadowBit stands with the status of a reason that decided nothing.
const shadowBit = 1 << 6

func (w *writer) reasons(all []policy.Reason) {
	w.uint(uint64(len(all)))
	for i := range all {
		v := &all[i]
		status := uint64(v.Status)
		if v.Shadow {
			status |= shadowBit
		}
		w.uint(status)
		w.string(v.Code)
		w.string(v.Text)
		w.string(v.Rule)
		w.string(v.Scope)
		w.int(int64(v.Cost))
		w.int(int64(v.Used))
		w.int(int64(v.Limit))
		w.int(v.Count)
		w.int(v.MaxCount)
		w.time(v.Until)
	}
}

func (r *reader) reasons() []policy.Reason {
	n := r.count(11)
	if n == 0 {
		return nil
	}
	all := make([]policy.Reason, n)
	for i := range all {
		v := &all[i]
		status := r.uint()
		v.Status, v.Shadow = payment.Status(status&^shadowBit), status&shadowBit != 0
		v.Code = r.string()
		v.Text = r.string()
		v.Rule = r.string()
		v.Scope = r.string()
		v.Cost = payment.USD(r.int())
		v.Used = payment.USD(r.int())
		v.Limit = payment.USD(r.int())
		v.Count = r.int()
		v.MaxCount = r.int()
		v.Until = r.time()
	}
	return all
}

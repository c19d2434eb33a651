package tempo

import (
	"bytes"
	"fmt"

	"github.com/canopy-go/canopy/payment"
)

// Decode reads one transaction, signed or not, of type 0x76 or 0x78. It takes
// exactly what Encode makes of a Transaction that passes Check: every other
// spelling of the same values, and anything after the end, is refused. It does
// not keep b.
func Decode(b []byte) (Transaction, error) {
	var t Transaction
	if len(b) > MaxSize {
		return Transaction{}, refused("%d bytes, at most %d", len(b), MaxSize)
	}
	if len(b) == 0 || b[0] != typeTransaction && b[0] != typeFeePayer {
		return Transaction{}, refused("the type is neither 0x76 nor 0x78")
	}
	content, list, rest, err := split(bytes.Clone(b[1:]))
	switch {
	case err != nil:
		return Transaction{}, fmt.Errorf("%w: %w", ErrTransaction, err)
	case !list:
		return Transaction{}, refused("its fields are no list")
	case len(rest) > 0:
		return Transaction{}, refused("%d bytes after its end", len(rest))
	}
	r := reader{b: content}
	t.readFields(&r)
	if r.err != nil {
		return Transaction{}, r.err
	}
	if (b[0] == typeFeePayer) != (t.FeePayer.Kind == FeePayerSender) {
		return Transaction{}, refused("type %#x with fee payer slot of kind %d", b[0], t.FeePayer.Kind)
	}
	if err := t.check(); err != nil {
		return Transaction{}, err
	}
	return t, nil
}

func (t *Transaction) readFields(r *reader) {
	t.ChainID = r.uint("chain id")
	t.MaxPriorityFeePerGas = r.uint("max priority fee")
	t.MaxFeePerGas = r.uint("max fee")
	t.Gas = r.uint("gas")
	t.readCalls(r)
	t.readAccess(r)
	t.NonceKey = r.number("nonce key")
	t.Nonce = r.uint("nonce")
	t.ValidBefore = r.uint("valid before")
	t.ValidAfter = r.uint("valid after")
	t.FeeToken, _ = r.address("fee token", true)
	t.FeePayer.read(r)
	t.Authorizations = r.raw("authorization list")
	if len(t.Authorizations) == 1 {
		t.Authorizations = nil
	}
	if r.list() {
		t.KeyAuthorization = r.raw("key authorization")
	}
	if len(r.b) > 0 {
		if t.Signature = r.bytes("signature"); len(t.Signature) == 0 {
			r.fail("signature", errEmpty)
		}
	}
	r.end("fields")
}

func (t *Transaction) readCalls(r *reader) {
	calls := r.open("calls")
	if n := calls.count(); n > 0 {
		t.Calls = make([]Call, 0, n)
	}
	for calls.more() {
		c := calls.open("call")
		var call Call
		var ok bool
		call.To, ok = c.address("call to", false)
		call.Create = !ok
		call.Value = payment.UnitsFromBytes(c.number("call value"))
		call.Data = c.bytes("call data")
		c.end("call")
		t.Calls = append(t.Calls, call)
		calls.join(&c)
	}
	r.join(&calls)
}

func (t *Transaction) readAccess(r *reader) {
	list := r.open("access list")
	for list.more() {
		a := list.open("access")
		var access Access
		var ok bool
		if access.Address, ok = a.address("access address", false); !ok {
			a.fail("access address", errEmpty)
		}
		keys := a.open("access keys")
		for keys.more() {
			access.Keys = append(access.Keys, keys.word("access key"))
		}
		a.join(&keys)
		a.end("access")
		t.AccessList = append(t.AccessList, access)
		list.join(&a)
	}
	r.join(&list)
}

func (f *FeePayer) read(r *reader) {
	const name = "fee payer"
	if r.list() {
		s := r.open(name)
		f.Kind = FeePayerSigned
		parity := s.uint(name)
		if parity > 1 {
			s.fail(name, errLong)
		}
		f.YParity, f.R, f.S = uint8(parity), s.number(name), s.number(name)
		s.end(name)
		r.join(&s)
		return
	}
	s := r.bytes(name)
	switch {
	case r.err != nil || len(s) == 0:
	case len(s) == 1 && s[0] == 0:
		f.Kind = FeePayerPlaceholder
	case len(s) == len(f.Sender):
		f.Kind, f.Sender = FeePayerSender, payment.Address(s)
	default:
		r.fail(name, errSize)
	}
}

// reader reads the items of a list one after the other. After its first error
// it reads only zeros.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(name string, err error) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s: %w", ErrTransaction, name, err)
	}
	r.b = nil
}

// join takes over the error of a list that was opened in r.
func (r *reader) join(inner *reader) {
	if r.err == nil && inner.err != nil {
		r.err, r.b = inner.err, nil
	}
}

func (r *reader) more() bool { return r.err == nil && len(r.b) > 0 }

// list reports whether the next item is a list.
func (r *reader) list() bool { return r.more() && r.b[0] >= listBase }

func (r *reader) end(name string) {
	if r.more() {
		r.fail(name, errTrailing)
	}
}

// count is how many items are left, as far as they can be told apart.
func (r *reader) count() (n int) {
	for b := r.b; len(b) > 0; n++ {
		var err error
		if _, _, b, err = split(b); err != nil {
			break
		}
	}
	return n
}

func (r *reader) next(name string, wantList bool) []byte {
	if r.err != nil {
		return nil
	}
	content, list, rest, err := split(r.b)
	if err == nil && list != wantList {
		err = errKind
	}
	if err != nil {
		r.fail(name, err)
		return nil
	}
	r.b = rest
	return content
}

func (r *reader) open(name string) reader {
	b := r.next(name, true)
	return reader{b: b, err: r.err}
}

// raw is the next item, a list, with its head.
func (r *reader) raw(name string) []byte {
	all := r.b
	if r.next(name, true); r.err != nil {
		return nil
	}
	n := len(all) - len(r.b)
	return all[:n:n]
}

// bytes is the next string, nil where it is empty.
func (r *reader) bytes(name string) []byte {
	if s := r.next(name, false); len(s) > 0 {
		return s
	}
	return nil
}

func (r *reader) uint(name string) (n uint64) {
	s := r.integer(name, 8)
	for _, c := range s {
		n = n<<8 | uint64(c)
	}
	return n
}

func (r *reader) number(name string) (n [32]byte) {
	s := r.integer(name, 32)
	copy(n[32-len(s):], s)
	return n
}

// integer is the next string, a number without leading zeros.
func (r *reader) integer(name string, most int) []byte {
	s := r.next(name, false)
	switch {
	case len(s) > most:
		r.fail(name, errLong)
		return nil
	case len(s) > 0 && s[0] == 0:
		r.fail(name, errCanonical)
		return nil
	}
	return s
}

func (r *reader) word(name string) (w [32]byte) {
	if s := r.next(name, false); len(s) == len(w) {
		copy(w[:], s)
	} else {
		r.fail(name, errSize)
	}
	return w
}

// address is the next string, and false where it is empty. Where absent is the
// zero address, 20 zeros are refused.
func (r *reader) address(name string, zeroIsAbsent bool) (a payment.Address, ok bool) {
	s := r.next(name, false)
	switch {
	case len(s) == 0:
		return a, false
	case len(s) != len(a):
		r.fail(name, errSize)
		return a, false
	}
	a = payment.Address(s)
	if zeroIsAbsent && a.IsZero() {
		r.fail(name, errZero)
	}
	return a, true
}

package mpp

import (
	"fmt"
	"strconv"

	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/payment"
)

// maxSplits is how many recipients a charge has beside the first.
const maxSplits = 10

// charge is what a request of tempo/charge or evm/charge asks for.
type charge struct {
	amount     payment.Units
	currency   payment.Address
	recipient  payment.Address
	externalID string // as written; empty where there is none

	chainID uint64 // 0 where the seller names none
	details jsonscan.Value
}

// tempoCharge is a request of tempo/charge.
type tempoCharge struct {
	charge

	feePayer   bool
	pull, push bool      // what the seller takes; both where it does not say
	memo       *[32]byte // of the first transfer; nil where it is to be made
	splits     []split
}

// split is one recipient beside the first.
type split struct {
	recipient payment.Address
	amount    payment.Units
	memo      *[32]byte // nil for a transfer without one
}

// primary is what the first recipient gets: the amount less the splits.
func (t *tempoCharge) primary() payment.Units {
	rest := t.amount
	for _, s := range t.splits {
		rest, _ = rest.Sub(s.amount) // readSplits has seen that it is above them
	}
	return rest
}

// readTempoCharge reads the decoded request of a tempo/charge challenge.
// Members that it does not know mean nothing to it; null is absent.
func readTempoCharge(v jsonscan.Value) (t tempoCharge, why skip) {
	if t.charge, why = readCharge(v); why != (skip{}) {
		return t, why
	}
	t.pull, t.push = true, true
	err := members(t.details, func(key string, val jsonscan.Value) (err error) {
		switch key {
		case "chainId":
			t.chainID, err = readChainID(val)
		case "feePayer":
			t.feePayer, err = val.Bool()
		case "memo":
			t.memo, err = readMemo(val)
		case "supportedModes":
			t.pull, t.push, err = readModes(val)
		case "splits":
			t.splits, err = readSplits(val, t.amount)
		}
		return named(key, err)
	})
	if err != nil {
		return t, asSkip(err)
	}
	for _, s := range t.splits {
		if s.recipient == t.currency {
			return t, skipped("token_payee", "splits")
		}
	}
	return t, skip{}
}

// readCharge reads what the requests of all charges have in common. Amounts are
// text, and no other text than a count of base units.
func readCharge(v jsonscan.Value) (c charge, why skip) {
	var amount, currency, recipient bool
	err := members(v, func(key string, val jsonscan.Value) (err error) {
		switch key {
		case "amount":
			amount = true
			c.amount, err = readAmount(val)
		case "currency":
			currency = true
			c.currency, err = readAddress(val)
		case "recipient":
			recipient = true
			c.recipient, err = readAddress(val)
		case "externalId":
			c.externalID, err = val.String()
		case "description":
			_, err = val.String()
		case "methodDetails":
			if c.details = val; val.Kind() != jsonscan.Object {
				err = jsonscan.ErrKind
			}
		}
		return named(key, err)
	})
	switch {
	case err != nil:
		return c, asSkip(err)
	case !amount:
		return c, skipped("missing_field", "amount")
	case !currency:
		return c, skipped("missing_field", "currency")
	case !recipient:
		return c, skipped("missing_field", "recipient")
	case c.recipient.IsZero():
		return c, skipped("zero_payee", "recipient")
	case c.recipient == c.currency:
		return c, skipped("token_payee", "recipient")
	}
	return c, skip{}
}

// members calls f for the members of v that are not null. A v that is absent has
// none.
func members(v jsonscan.Value, f func(key string, val jsonscan.Value) error) error {
	if absent(v) {
		return nil
	}
	return v.Object(func(key string, val jsonscan.Value) error {
		if val.IsNull() {
			return nil
		}
		return f(key, val)
	})
}

// fault is what is wrong with a value, before its field is known.
type fault struct{ code, said string }

func (f fault) Error() string { return f.code }

// named makes err, which is nil, a fault or one of jsonscan's, a skip that
// names the field.
func named(key string, err error) error {
	switch e := err.(type) {
	case nil:
		return nil
	case skip:
		return e
	case fault:
		return skipped(e.code, key+" "+e.said)
	}
	return skipped("wrong_type", key)
}

func asSkip(err error) skip {
	if s, ok := err.(skip); ok {
		return s
	}
	return skipped("wrong_type", "request")
}

func readAmount(v jsonscan.Value) (payment.Units, error) {
	s, err := v.String()
	if err != nil {
		return payment.Units{}, err
	}
	u, err := payment.ParseUnits(s)
	if err != nil {
		return payment.Units{}, fault{"bad_amount", v.Raw()}
	}
	return u, nil
}

// readAddress reads an address of any case: sellers get the checksum wrong.
func readAddress(v jsonscan.Value) (payment.Address, error) {
	s, err := v.String()
	if err != nil {
		return payment.Address{}, err
	}
	a, err := payment.ParseAddressLoose(s)
	if err != nil {
		return a, fault{"bad_address", v.Raw()}
	}
	return a, nil
}

// readChainID reads a whole number, written as one.
func readChainID(v jsonscan.Value) (uint64, error) {
	s, err := v.Number()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || n == 0 {
		return 0, fault{"bad_chain", s}
	}
	return n, nil
}

func readMemo(v jsonscan.Value) (*[32]byte, error) {
	s, err := v.String()
	if err != nil {
		return nil, err
	}
	memo := new([32]byte)
	if !readHex(memo[:], s) {
		return nil, fault{"bad_memo", v.Raw()}
	}
	return memo, nil
}

// readHex fills dst from 0x and twice as many hex digits.
func readHex(dst []byte, s string) bool {
	if len(s) != 2+2*len(dst) || s[:2] != "0x" {
		return false
	}
	bad := byte(0)
	for i := range dst {
		high, low := nibbles[s[2+2*i]], nibbles[s[3+2*i]]
		bad |= high | low
		dst[i] = high<<4 | low
	}
	return bad <= 0xf
}

// nibbles are the values of hex digits, and 0xff for all else.
var nibbles = func() (t [256]byte) {
	for c := range t {
		t[c] = 0xff
	}
	for i, c := range []byte("0123456789abcdef") {
		t[c] = byte(i)
	}
	for i, c := range []byte("ABCDEF") {
		t[c] = byte(10 + i)
	}
	return t
}()

// readModes reads the ways of broadcast that the seller takes. Those that are
// not known count for nothing.
func readModes(v jsonscan.Value) (pull, push bool, err error) {
	err = v.Array(func(_ int, val jsonscan.Value) error {
		s, err := val.String()
		pull = pull || s == "pull"
		push = push || s == "push"
		return err
	})
	if err == nil && !pull && !push {
		err = fault{"no_known_mode", ""}
	}
	return pull, push, err
}

// readSplits reads 1 to 10 splits, each above zero, together below amount.
func readSplits(v jsonscan.Value, amount payment.Units) (splits []split, err error) {
	rest := amount
	err = v.Array(func(i int, val jsonscan.Value) error {
		if i == maxSplits {
			return fault{"too_many", ""}
		}
		s, err := readSplit(val)
		if err != nil {
			return named(fmt.Sprintf("splits[%d]", i), err)
		}
		var ok bool
		if rest, ok = rest.Sub(s.amount); !ok || rest.IsZero() {
			return fault{"splits_exceed_amount", ""}
		}
		splits = append(splits, s)
		return nil
	})
	if err == nil && len(splits) == 0 {
		err = fault{"empty", ""}
	}
	return splits, err
}

func readSplit(v jsonscan.Value) (s split, err error) {
	err = v.Object(func(key string, val jsonscan.Value) (err error) {
		switch key {
		case "amount":
			s.amount, err = readAmount(val)
		case "recipient":
			s.recipient, err = readAddress(val)
		case "memo":
			if !val.IsNull() {
				s.memo, err = readMemo(val)
			}
		}
		return named(key, err)
	})
	switch {
	case err != nil:
	case s.amount.IsZero():
		err = fault{"zero_amount", ""}
	case s.recipient.IsZero():
		err = fault{"zero_payee", ""}
	}
	return s, err
}

package chain

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/canopy-go/canopy/payment"
)

// quantity is a number as JSON-RPC writes it: 0x and hex digits without leading
// zeros.
type quantity uint64

func (q quantity) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, "0x"+strconv.FormatUint(uint64(q), 16)), nil
}

func (q *quantity) UnmarshalJSON(b []byte) error {
	s, err := unquote(b)
	if err != nil {
		return err
	}
	if len(s) < 3 || len(s) > 18 || s[:2] != "0x" || s[2] == '0' && len(s) > 3 {
		return fmt.Errorf("%.40q is not a quantity", s)
	}
	n, err := strconv.ParseUint(s[2:], 16, 64)
	if err != nil {
		return fmt.Errorf("%.40q is not a quantity", s)
	}
	*q = quantity(n)
	return nil
}

// data is bytes as JSON-RPC writes them.
type data []byte

func (d data) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, "0x"+hex.EncodeToString(d)), nil
}

func (d *data) UnmarshalJSON(b []byte) error {
	s, err := unquote(b)
	if err != nil {
		return err
	}
	if len(s) < 2 || s[:2] != "0x" || len(s)%2 != 0 {
		return fmt.Errorf("%.40q is not data", s)
	}
	out, err := hex.DecodeString(s[2:])
	if err != nil {
		return fmt.Errorf("%.40q is not data", s)
	}
	*d = out
	return nil
}

// word is 32 bytes of data: a hash, a topic, or a slot of the ABI.
type word [32]byte

func (w word) MarshalJSON() ([]byte, error) { return data(w[:]).MarshalJSON() }

func (w *word) UnmarshalJSON(b []byte) error {
	var d data
	if err := d.UnmarshalJSON(b); err != nil {
		return err
	}
	if len(d) != 32 {
		return fmt.Errorf("%d bytes where 32 are due", len(d))
	}
	copy(w[:], d)
	return nil
}

func (w word) String() string { return "0x" + hex.EncodeToString(w[:]) }

// address is the account in a topic, and false where the padding is not zero.
func (w word) address() (payment.Address, bool) {
	return payment.Address(w[12:]), [12]byte(w[:12]) == [12]byte{}
}

// wordOf is an account as a topic or an argument.
func wordOf(a payment.Address) (w word) {
	copy(w[12:], a[:])
	return w
}

func unquote(b []byte) (string, error) {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return "", fmt.Errorf("%.40q is not text", b)
	}
	return s, nil
}

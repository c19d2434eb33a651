package canopytest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/rlp"

	"github.com/canopy-go/canopy/payment"
)

func encodeTempo(kind byte, fields []rlp.RawValue) []byte {
	body, err := rlp.EncodeToBytes(fields)
	if err != nil {
		panic("canopytest: " + err.Error())
	}
	return append([]byte{kind}, body...)
}

func rlpText(b []byte) rlp.RawValue {
	out, err := rlp.EncodeToBytes(b)
	if err != nil {
		panic("canopytest: " + err.Error())
	}
	return out
}

// rlpItems are the items of a list that raw is, with their heads.
func rlpItems(raw []byte) ([]rlp.RawValue, error) {
	content, rest, err := rlp.SplitList(raw)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, errors.New("more follows")
	}
	var out []rlp.RawValue
	for len(content) > 0 {
		_, _, rest, err := rlp.Split(content)
		if err != nil {
			return nil, err
		}
		out = append(out, rlp.RawValue(content[:len(content)-len(rest)]))
		content = rest
	}
	return out, nil
}

// fieldReader reads fields and keeps the first error.
type fieldReader struct{ err error }

func (r *fieldReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *fieldReader) text(raw []byte) []byte {
	content, _, err := rlp.SplitString(raw)
	if err != nil {
		r.fail("%w", err)
	}
	return content
}

func (r *fieldReader) list(raw []byte) []rlp.RawValue {
	items, err := rlpItems(raw)
	if err != nil {
		r.fail("%w", err)
	}
	return items
}

func (r *fieldReader) units(raw []byte) payment.Units {
	b := r.text(raw)
	var word [32]byte
	if len(b) > 32 || len(b) > 0 && b[0] == 0 {
		r.fail("an integer with another spelling")
		return payment.Units{}
	}
	copy(word[32-len(b):], b)
	return payment.UnitsFromBytes(word)
}

func (r *fieldReader) number(raw []byte) uint64 {
	b := r.units(raw).Bytes()
	if [24]byte(b[:24]) != [24]byte{} {
		r.fail("an integer above 64 bits")
	}
	return binary.BigEndian.Uint64(b[24:])
}

func (r *fieldReader) calls(raw []byte) []TempoCall {
	var out []TempoCall
	for i, item := range r.list(raw) {
		parts := r.list(item)
		if len(parts) != 3 {
			r.fail("a call of %d fields", len(parts))
			return nil
		}
		c := TempoCall{Value: r.units(parts[1]), Data: bytes.Clone(r.text(parts[2]))}
		switch to := r.text(parts[0]); {
		case len(to) == 20:
			c.To = payment.Address(to)
		case len(to) == 0 && i == 0:
			c.Create = true
		default:
			r.fail("a call to %d bytes", len(to))
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		r.fail("no call")
	}
	return out
}

package payment

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/canopy-go/canopy/internal/keccak"
)

// Address is an account or contract of an EVM chain. Addresses are equal when
// their 20 bytes are.
type Address [20]byte

// ErrAddress is wrapped by every error of ParseAddress.
var ErrAddress = errors.New("payment: not an address")

// ParseAddress reads 0x and 40 hex digits. Digits of one case carry no
// checksum; mixed case must be the checksum of EIP-55.
func ParseAddress(s string) (Address, error) {
	a, mixed, ok := readAddress(s)
	if !ok {
		return Address{}, notAddress(s)
	}
	if mixed && s != a.String() {
		return Address{}, fmt.Errorf("%w: the mixed-case checksum of %s is wrong", ErrAddress, s)
	}
	return a, nil
}

// ParseAddressLoose reads 0x and 40 hex digits of any case, and does not look
// at a checksum.
func ParseAddressLoose(s string) (Address, error) {
	a, _, ok := readAddress(s)
	if !ok {
		return Address{}, notAddress(s)
	}
	return a, nil
}

// readAddress also reports whether s has letters of both cases.
func readAddress(s string) (a Address, mixed, ok bool) {
	if len(s) != 42 || s[:2] != "0x" {
		return Address{}, false, false
	}
	var lower, upper bool
	for i := range 40 {
		c := s[2+i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
			lower = true
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
			upper = true
		default:
			return Address{}, false, false
		}
		a[i/2] = a[i/2]<<4 | c
	}
	return a, lower && upper, true
}

func notAddress(s string) error {
	return fmt.Errorf("%w: %q is not 0x and 40 hex digits", ErrAddress, clip(s))
}

// IsZero reports whether a is the zero address, which nobody holds.
func (a Address) IsZero() bool { return a == Address{} }

// String is a with the checksum of EIP-55.
func (a Address) String() string { return keccak.Checksum(a) }

// Lower is a in lower-case hex.
func (a Address) Lower() string { return "0x" + hex.EncodeToString(a[:]) }

// Compare orders addresses by their bytes.
func (a Address) Compare(b Address) int { return bytes.Compare(a[:], b[:]) }

// MarshalText writes a as String does.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what ParseAddress accepts.
func (a *Address) UnmarshalText(b []byte) error {
	v, err := ParseAddress(string(b))
	if err == nil {
		*a = v
	}
	return err
}

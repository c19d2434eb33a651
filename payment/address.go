package payment

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

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
	a, err := ParseAddressLoose(s)
	if err != nil {
		return Address{}, err
	}
	digits := s[2:]
	if digits != strings.ToLower(digits) && digits != strings.ToUpper(digits) && s != a.String() {
		return Address{}, fmt.Errorf("%w: the mixed-case checksum of %s is wrong", ErrAddress, s)
	}
	return a, nil
}

// ParseAddressLoose reads 0x and 40 hex digits of any case, and does not look
// at a checksum.
func ParseAddressLoose(s string) (Address, error) {
	var a Address
	if len(s) != 42 || s[:2] != "0x" {
		return Address{}, fmt.Errorf("%w: %q is not 0x and 40 hex digits", ErrAddress, clip(s))
	}
	if _, err := hex.Decode(a[:], []byte(s[2:])); err != nil {
		return Address{}, fmt.Errorf("%w: %q is not 0x and 40 hex digits", ErrAddress, clip(s))
	}
	return a, nil
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

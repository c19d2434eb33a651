package eip3009

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/internal/keccak"
)

var (
	order     = scalar("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141")
	halfOrder = scalar("7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0")
)

func scalar(s string) (b [32]byte) {
	if n, err := hex.Decode(b[:], []byte(s)); err != nil || n != 32 {
		panic("eip3009: " + s)
	}
	return b
}

// ErrSignature is what every refused signature wraps. Its text never holds the
// signature.
var ErrSignature = errors.New("eip3009: invalid signature")

// NormalizeSignature returns the one spelling that tokens and facilitators
// accept: r, s in the lower half of the order, v as 27 or 28. It takes 65 bytes
// with v as 0, 1, 27 or 28 and s in either half (the two halves sign alike, with
// v the other way round), and refuses r or s of 0 or not below the order.
func NormalizeSignature(sig []byte) ([65]byte, error) {
	var n [65]byte
	if len(sig) != len(n) {
		return n, fmt.Errorf("%w: %d bytes, want %d", ErrSignature, len(sig), len(n))
	}
	copy(n[:], sig)
	r, s, v := n[:32], n[32:64], &n[64]
	switch *v {
	case 0, 1:
		*v += 27
	case 27, 28:
	default:
		return [65]byte{}, fmt.Errorf("%w: v is %d", ErrSignature, *v)
	}
	if !inRange(r) || !inRange(s) {
		return [65]byte{}, fmt.Errorf("%w: r or s out of range", ErrSignature)
	}
	if bytes.Compare(s, halfOrder[:]) > 0 {
		negate(s)
		*v = 27 + 28 - *v
	}
	return n, nil
}

func inRange(b []byte) bool {
	return bytes.Compare(b, order[:]) < 0 && [32]byte(b) != [32]byte{}
}

// negate makes s the order minus s.
func negate(s []byte) {
	borrow := 0
	for i := len(s) - 1; i >= 0; i-- {
		d := int(order[i]) - int(s[i]) - borrow
		borrow = 0
		if d < 0 {
			d, borrow = d+256, 1
		}
		s[i] = byte(d)
	}
}

// Recover returns the address whose key signed digest. It takes what
// NormalizeSignature takes. Any valid signature recovers to some address, so the
// answer means something only compared with the expected one.
func Recover(digest [32]byte, sig []byte) ([20]byte, error) {
	n, err := NormalizeSignature(sig)
	if err != nil {
		return [20]byte{}, err
	}
	n[64] -= 27
	pub, err := crypto.Ecrecover(digest[:], n[:])
	if err != nil {
		return [20]byte{}, fmt.Errorf("%w: no key recovers", ErrSignature)
	}
	sum := keccak.Sum256(pub[1:])
	return [20]byte(sum[12:]), nil
}

// Package signature is the one accepted spelling of a secp256k1 signature:
// 65 bytes r, s, v with s in the lower half of the curve's order and v 27 or
// 28. Signers that are not ours spell it otherwise, and a chain or a seller
// may refuse what another takes.
package signature

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/internal/keccak"
)

// Len is the length of a signature.
const Len = 65

// Errors of Check, Canonical and Recover.
var (
	ErrLength    = errors.New("signature: not 65 bytes")
	ErrMalleable = errors.New("signature: not r, low s and v 27 or 28")
	ErrRecover   = errors.New("signature: no key made it")
)

// scalar is a number below 2^256, most significant word first.
type scalar [4]uint64

var (
	order = scalar{0xffffffffffffffff, 0xfffffffffffffffe, 0xbaaedce6af48a03b, 0xbfd25e8cd0364141}
	half  = scalar{0x7fffffffffffffff, 0xffffffffffffffff, 0x5d576e7357a4501d, 0xdfe92f46681b20a0}
)

func read(b []byte) (n scalar) {
	for i := range n {
		n[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return n
}

func (n scalar) less(m scalar) bool {
	for i := range n {
		if n[i] != m[i] {
			return n[i] < m[i]
		}
	}
	return false
}

// inField reports whether n is 1 to order-1.
func (n scalar) inField() bool { return n != scalar{} && n.less(order) }

// Check reports whether sig has the accepted spelling.
func Check(sig []byte) error {
	if len(sig) != Len {
		return fmt.Errorf("%w but %d", ErrLength, len(sig))
	}
	s := read(sig[32:])
	if !read(sig).inField() || !s.inField() || half.less(s) || sig[64] != 27 && sig[64] != 28 {
		return ErrMalleable
	}
	return nil
}

// Canonical returns the accepted spelling of sig: v 0 and 1 become 27 and 28,
// and a high s its negative. It leaves sig as it is.
func Canonical(sig []byte) ([]byte, error) {
	if len(sig) != Len {
		return nil, fmt.Errorf("%w but %d", ErrLength, len(sig))
	}
	out := append([]byte(nil), sig...)
	if out[64] < 2 {
		out[64] += 27
	}
	if s := read(out[32:]); s.inField() && half.less(s) && (out[64] == 27 || out[64] == 28) {
		var borrow uint64
		for i := 3; i >= 0; i-- {
			s[i], borrow = bits.Sub64(order[i], s[i], borrow)
			binary.BigEndian.PutUint64(out[32+8*i:], s[i])
		}
		out[64] ^= 27 ^ 28
	}
	return out, Check(out)
}

// Recover returns the address whose key made sig over digest. It accepts what
// Check accepts.
func Recover(digest [32]byte, sig []byte) ([20]byte, error) {
	if err := Check(sig); err != nil {
		return [20]byte{}, err
	}
	var rsv [Len]byte
	copy(rsv[:], sig)
	rsv[64] -= 27
	pub, err := crypto.Ecrecover(digest[:], rsv[:])
	if err != nil || len(pub) != 65 {
		return [20]byte{}, ErrRecover
	}
	sum := keccak.Sum256(pub[1:])
	return [20]byte(sum[12:]), nil
}

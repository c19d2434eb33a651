// Package eip1559 encodes and reads transactions of type 2 (EIP-1559 over
// EIP-2718) that call a contract: without a value, without an access list, and
// with fees of 64 bits. Nothing else can be signed or read through it.
package eip1559

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/rlp"

	"github.com/canopy-go/canopy/internal/eip3009"
	"github.com/canopy-go/canopy/internal/keccak"
)

// kind is the first byte of a transaction of this type.
const kind = 2

// MaxSize is more than any transaction that is read.
const MaxSize = 4 << 10

// ErrTransaction is wrapped where bytes are not such a transaction.
var ErrTransaction = errors.New("eip1559: not a transaction that calls a contract")

// Transaction is one call of a contract.
type Transaction struct {
	ChainID  uint64
	Nonce    uint64
	MaxTip   uint64 // for each unit of gas
	MaxFee   uint64
	GasLimit uint64
	To       [20]byte
	Input    []byte
}

// unsigned is what is signed, in order.
type unsigned struct {
	ChainID, Nonce, MaxTip, MaxFee, GasLimit uint64
	To                                       [20]byte
	Value                                    uint64
	Input                                    []byte
	Access                                   []rlp.RawValue
}

// signed is what is sent, in order.
type signed struct {
	ChainID, Nonce, MaxTip, MaxFee, GasLimit uint64
	To                                       [20]byte
	Value                                    uint64
	Input                                    []byte
	Access                                   []rlp.RawValue
	V                                        uint64
	R, S                                     []byte
}

func (t *Transaction) unsigned() *unsigned {
	return &unsigned{ChainID: t.ChainID, Nonce: t.Nonce, MaxTip: t.MaxTip, MaxFee: t.MaxFee, GasLimit: t.GasLimit, To: t.To, Input: t.Input}
}

// Digest is what the sender signs.
func (t *Transaction) Digest() [32]byte { return keccak.Sum256([]byte{kind}, encode(t.unsigned())) }

// Encode is t with the signature of its digest, of 65 bytes with v as 27 or 28,
// as it is sent.
func (t *Transaction) Encode(sig [65]byte) []byte {
	u := t.unsigned()
	return append([]byte{kind}, encode(&signed{
		ChainID: u.ChainID, Nonce: u.Nonce, MaxTip: u.MaxTip, MaxFee: u.MaxFee, GasLimit: u.GasLimit, To: u.To, Input: u.Input,
		V: uint64(sig[64] - 27), R: trim(sig[:32]), S: trim(sig[32:64]),
	})...)
}

func encode(v any) []byte {
	b, err := rlp.EncodeToBytes(v)
	if err != nil {
		panic("eip1559: " + err.Error()) // of these types it always can
	}
	return b
}

// trim leaves out the zeros that a number does not begin with.
func trim(b []byte) []byte {
	for len(b) > 0 && b[0] == 0 {
		b = b[1:]
	}
	return b
}

// Hash is the name of a transaction as it is sent.
func Hash(raw []byte) [32]byte { return keccak.Sum256(raw) }

// Decode reads what Encode writes, and the sender, whose signature it bears.
// Every transaction has one encoding; other bytes are ErrTransaction, and so are
// a value, an access list and a signature in another spelling.
func Decode(raw []byte) (t Transaction, sender [20]byte, err error) {
	fail := func(format string, args ...any) (Transaction, [20]byte, error) {
		return Transaction{}, [20]byte{}, fmt.Errorf("%w: "+format, append([]any{ErrTransaction}, args...)...)
	}
	if len(raw) == 0 || len(raw) > MaxSize || raw[0] != kind {
		return fail("it is not of type 2, or too long")
	}
	var s signed
	if err := rlp.DecodeBytes(raw[1:], &s); err != nil {
		return fail("%v", err)
	}
	switch {
	case s.Value != 0:
		return fail("it sends a value")
	case len(s.Access) != 0:
		return fail("it has an access list")
	case s.V > 1 || !number(s.R) || !number(s.S):
		return fail("its signature is not written as numbers")
	}
	var sig [65]byte
	copy(sig[32-len(s.R):], s.R)
	copy(sig[64-len(s.S):], s.S)
	sig[64] = byte(s.V) + 27
	if n, err := eip3009.NormalizeSignature(sig[:]); err != nil || n != sig {
		return fail("its signature is malleable, or none")
	}
	t = Transaction{ChainID: s.ChainID, Nonce: s.Nonce, MaxTip: s.MaxTip, MaxFee: s.MaxFee, GasLimit: s.GasLimit, To: s.To, Input: s.Input}
	if sender, err = eip3009.Recover(t.Digest(), sig[:]); err != nil {
		return fail("its signature is nobody's")
	}
	return t, sender, nil
}

// number reports whether b is a number as RLP writes it, of 256 bits at most.
func number(b []byte) bool { return len(b) > 0 && len(b) <= 32 && b[0] != 0 }

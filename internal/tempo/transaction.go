// Package tempo lays out Tempo's transactions by hand, reads them back, and
// knows the few other texts that a payment on Tempo signs or carries: TIP-20
// transfers, attribution memos and zero-amount proofs. It holds no key and
// sends nothing.
package tempo

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/canopy-go/canopy/payment"
)

// MaxSize is the most bytes that an encoded transaction may have.
const MaxSize = 64 << 10

// ErrTransaction is wrapped wherever bytes are no transaction, or a Transaction
// is none that a node could accept.
var ErrTransaction = errors.New("tempo: not a transaction")

// ExpiringKey is the nonce key of the expiring nonce, 2^256-1: no lane and no
// counter, the transaction is unique by its bytes until ValidBefore.
var ExpiringKey = [32]byte(bytes.Repeat([]byte{0xff}, 32))

// Transaction is a Tempo transaction (type 0x76) before or after its
// signatures. Absent numbers are 0. Methods never change it, but slices are
// shared with what it was made from.
type Transaction struct {
	ChainID uint64
	// MaxPriorityFeePerGas and MaxFeePerGas are in 1e-18 dollars. The chain
	// counts them in 128 bits; more than 64, which is 18 dollars for one gas,
	// are refused here.
	MaxPriorityFeePerGas, MaxFeePerGas uint64
	Gas                                uint64
	Calls                              []Call // at least one
	AccessList                         []Access
	NonceKey                           [32]byte // 0 is the account's own nonce, ExpiringKey none, others are lanes
	Nonce                              uint64
	// ValidBefore and ValidAfter are seconds since 1970: the transaction is
	// valid in blocks with ValidAfter <= time < ValidBefore.
	ValidBefore, ValidAfter uint64
	// FeeToken is what the fee is paid in; zero leaves it to the chain or to
	// the fee payer. The sender of a sponsored transaction does not sign it.
	FeeToken payment.Address
	FeePayer FeePayer
	// Authorizations is the RLP of the authorization list, as it is on the
	// wire. No bytes is the empty list.
	Authorizations []byte
	// KeyAuthorization is the RLP of the key authorization. No bytes is absent.
	KeyAuthorization []byte
	// Signature is the sender's: 65 bytes r, s, v, or one of the typed forms.
	// Empty is unsigned.
	Signature []byte
}

// Call is one call of a transaction. All of them happen or none does.
type Call struct {
	To     payment.Address
	Create bool // the call makes a contract and To is zero; only the first may
	Value  payment.Units
	Data   []byte
}

// Access is one entry of an access list.
type Access struct {
	Address payment.Address
	Keys    [][32]byte
}

// FeePayer is the slot of a sponsor. The zero value is a transaction whose
// sender pays the fee.
type FeePayer struct {
	Kind    FeePayerKind
	Sender  payment.Address // FeePayerSender
	YParity uint8           // FeePayerSigned: 0 or 1
	R, S    [32]byte        // FeePayerSigned
}

// FeePayerKind says what is in the slot of a sponsor.
type FeePayerKind uint8

// The kinds of FeePayer.
const (
	FeePayerNone        FeePayerKind = iota // the sender pays
	FeePayerPlaceholder                     // a sponsor is expected to sign
	FeePayerSender                          // the same, handed over as 0x78 with the sender's address
	FeePayerSigned                          // the sponsor's signature
)

// Sponsored reports whether somebody else than the sender pays the fee.
func (t *Transaction) Sponsored() bool { return t.FeePayer.Kind != FeePayerNone }

// Check names the first thing for which a node would refuse t whatever its
// state. Decode returns nothing that fails it, and Encode of what passes is
// read back by Decode as t.
func (t *Transaction) Check() error {
	if err := t.check(); err != nil {
		return err
	}
	var room [roomSize]byte
	if n := len(t.append(room[:0], wire)); n > MaxSize {
		return refused("%d bytes, at most %d", n, MaxSize)
	}
	return nil
}

// check is Check but for the size.
func (t *Transaction) check() error {
	if len(t.Calls) == 0 {
		return refused("no calls")
	}
	for i, c := range t.Calls {
		if c.Create && (i > 0 || !c.To.IsZero()) {
			return refused("call %d: only the first may create a contract, and has no address", i)
		}
	}
	if t.ValidBefore != 0 && t.ValidBefore <= t.ValidAfter {
		return refused("it ends at %d and begins at %d", t.ValidBefore, t.ValidAfter)
	}
	if err := t.FeePayer.check(); err != nil {
		return err
	}
	if err := checkKept(t.Authorizations); err != nil {
		return fmt.Errorf("%w: authorization list: %w", ErrTransaction, err)
	}
	if err := checkKept(t.KeyAuthorization); err != nil {
		return fmt.Errorf("%w: key authorization: %w", ErrTransaction, err)
	}
	if len(t.Signature) > 0 && !signatureForm(t.Signature) {
		return refused("a sender's signature of %d bytes in no known form", len(t.Signature))
	}
	return nil
}

func (f *FeePayer) check() error {
	used := FeePayer{Kind: f.Kind}
	switch f.Kind {
	case FeePayerNone, FeePayerPlaceholder:
	case FeePayerSender:
		if used.Sender = f.Sender; f.Sender.IsZero() {
			return refused("fee payer: the sender is the zero address")
		}
	case FeePayerSigned:
		used.YParity, used.R, used.S = f.YParity, f.R, f.S
		if f.YParity > 1 || f.R == [32]byte{} || f.S == [32]byte{} {
			return refused("fee payer: not a signature")
		}
	default:
		return refused("fee payer: kind %d", f.Kind)
	}
	if *f != used {
		return refused("fee payer: fields of another kind are set")
	}
	return nil
}

func refused(format string, a ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrTransaction}, a...)...)
}

// Equal reports whether t and u are the same in every field, signatures
// included.
func (t *Transaction) Equal(u *Transaction) bool {
	return t.ChainID == u.ChainID &&
		t.MaxPriorityFeePerGas == u.MaxPriorityFeePerGas && t.MaxFeePerGas == u.MaxFeePerGas && t.Gas == u.Gas &&
		slices.EqualFunc(t.Calls, u.Calls, Call.Equal) &&
		slices.EqualFunc(t.AccessList, u.AccessList, func(a, b Access) bool { return a.Address == b.Address && slices.Equal(a.Keys, b.Keys) }) &&
		t.NonceKey == u.NonceKey && t.Nonce == u.Nonce &&
		t.ValidBefore == u.ValidBefore && t.ValidAfter == u.ValidAfter &&
		t.FeeToken == u.FeeToken && t.FeePayer == u.FeePayer &&
		bytes.Equal(t.Authorizations, u.Authorizations) && bytes.Equal(t.KeyAuthorization, u.KeyAuthorization) &&
		bytes.Equal(t.Signature, u.Signature)
}

// Equal reports whether c and d are the same call.
func (c Call) Equal(d Call) bool {
	return c.To == d.To && c.Create == d.Create && c.Value == d.Value && bytes.Equal(c.Data, d.Data)
}

package payment

import (
	"encoding/hex"
	"strconv"
)

// Slot is the uniqueness key of an authorization: of all that is ever signed
// into one slot, a chain lets at most one move money. A payment has one live
// slot at a time, and no two payments share one.
type Slot struct {
	Kind    SlotKind
	Chain   ChainID
	Token   Address // SlotEVM: the token
	From    Address
	NonceID [32]byte // SlotEVM: the EIP-3009 nonce; SlotLane: the nonce key; SlotExpiring: the memo
	Nonce   uint64   // SlotLane: the lane's nonce
	Payment ID       // SlotProof: unique in the ledger only
}

// SlotKind says which rule makes a slot unique.
type SlotKind uint8

// The kinds of slots. The zero value is no slot.
const (
	SlotNone     SlotKind = iota
	SlotEVM               // (chain, token, from, nonce) of EIP-3009
	SlotLane              // (chain, from, nonceKey, nonce) of Tempo
	SlotExpiring          // (chain, from, memo) on Tempo's expiring nonce: unique in the ledger only
	SlotProof             // a zero-amount proof
)

// IsZero reports whether s is no slot.
func (s Slot) IsZero() bool { return s.Kind == SlotNone }

// String is the slot's key: equal for equal slots, different for others.
func (s Slot) String() string {
	var room [192]byte
	return string(s.Append(room[:0]))
}

// Append appends the slot's key to b.
func (s Slot) Append(b []byte) []byte {
	switch s.Kind {
	case SlotEVM:
		b = append(append(b, "evm/"...), s.Chain...)
		b = hex.AppendEncode(append(b, "/0x"...), s.Token[:])
		b = hex.AppendEncode(append(b, "/0x"...), s.From[:])
		b = hex.AppendEncode(append(b, '/'), s.NonceID[:])
	case SlotLane:
		b = append(append(b, "lane/"...), s.Chain...)
		b = hex.AppendEncode(append(b, "/0x"...), s.From[:])
		b = hex.AppendEncode(append(b, '/'), s.NonceID[:])
		b = strconv.AppendUint(append(b, '/'), s.Nonce, 10)
	case SlotExpiring:
		b = append(append(b, "expiring/"...), s.Chain...)
		b = hex.AppendEncode(append(b, "/0x"...), s.From[:])
		b = hex.AppendEncode(append(b, '/'), s.NonceID[:])
	case SlotProof:
		b = append(append(b, "proof/"...), s.Payment...)
	}
	return b
}

package payment

import (
	"encoding/hex"
	"fmt"
)

// Slot is the uniqueness key of an authorization: of all that is ever signed
// into one slot, a chain lets at most one move money. A payment has one live
// slot at a time, and no two payments share one.
type Slot struct {
	Kind    SlotKind
	Chain   ChainID
	Token   Address // SlotEVM: the token
	From    Address
	NonceID [32]byte // SlotEVM: the EIP-3009 nonce; SlotLane: the nonce key
	Nonce   uint64   // SlotLane: the lane's nonce
	Payment ID       // SlotExpiring and SlotProof: unique in the ledger only
}

// SlotKind says which rule makes a slot unique.
type SlotKind uint8

// The kinds of slots. The zero value is no slot.
const (
	SlotNone     SlotKind = iota
	SlotEVM               // (chain, token, from, nonce) of EIP-3009
	SlotLane              // (chain, from, nonceKey, nonce) of Tempo
	SlotExpiring          // Tempo's expiring nonce
	SlotProof             // a zero-amount proof
)

// IsZero reports whether s is no slot.
func (s Slot) IsZero() bool { return s.Kind == SlotNone }

// String is the slot's key: equal for equal slots, different for others.
func (s Slot) String() string {
	switch s.Kind {
	case SlotEVM:
		b := make([]byte, 0, 192)
		b = append(b, "evm/"...)
		b = append(b, s.Chain...)
		b = hex.AppendEncode(append(b, "/0x"...), s.Token[:])
		b = hex.AppendEncode(append(b, "/0x"...), s.From[:])
		b = hex.AppendEncode(append(b, '/'), s.NonceID[:])
		return string(b)
	case SlotLane:
		return fmt.Sprintf("lane/%s/%s/%s/%d", s.Chain, s.From.Lower(), hex.EncodeToString(s.NonceID[:]), s.Nonce)
	case SlotExpiring:
		return fmt.Sprintf("expiring/%s", s.Payment)
	case SlotProof:
		return fmt.Sprintf("proof/%s", s.Payment)
	}
	return ""
}

package eip3009

import (
	"encoding/binary"

	"github.com/canopy-go/canopy/internal/keccak"
)

// keccak256 of the type, 0x7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267
var transferTypeHash = keccak.Sum256([]byte("TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"))

// Authorization is the message of a TransferWithAuthorization. The token pays
// Value from From to To once, while validAfter < block time < validBefore.
type Authorization struct {
	From, To [20]byte
	// Value is the amount in the token's smallest unit, big-endian.
	Value [32]byte
	// ValidAfter and ValidBefore are seconds since 1970.
	ValidAfter, ValidBefore uint64
	Nonce                   [32]byte
}

// Digest returns the 32 bytes that From signs, given the separator of the
// token's domain. It does not allocate.
func Digest(separator [32]byte, a Authorization) [32]byte {
	var b [7 * 32]byte
	copy(b[0:], transferTypeHash[:])
	copy(b[44:], a.From[:])
	copy(b[76:], a.To[:])
	copy(b[96:], a.Value[:])
	binary.BigEndian.PutUint64(b[152:], a.ValidAfter)
	binary.BigEndian.PutUint64(b[184:], a.ValidBefore)
	copy(b[192:], a.Nonce[:])
	message := keccak.Sum256(b[:])
	prefix := [2]byte{0x19, 0x01}
	return keccak.Sum256(prefix[:], separator[:], message[:])
}

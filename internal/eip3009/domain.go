// Package eip3009 lays out by hand what a TransferWithAuthorization signature
// signs (EIP-3009 over EIP-712), and reads such signatures back. It knows no
// other type, so nothing else can be signed through it.
package eip3009

import (
	"encoding/binary"

	"github.com/canopy-go/canopy/internal/keccak"
)

// keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")
var domainTypeHash = keccak.Sum256([]byte("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"))

// Domain is the EIP-712 domain of a token. All four fields are part of the
// signed text even when empty.
type Domain struct {
	Name, Version string
	ChainID       uint64
	Contract      [20]byte
}

// Separator returns the domain separator. It depends on nothing but d, so a
// caller with a table of tokens computes it once for each.
func (d *Domain) Separator() [32]byte {
	name, version := keccak.Sum256([]byte(d.Name)), keccak.Sum256([]byte(d.Version))
	var b [5 * 32]byte
	copy(b[0:], domainTypeHash[:])
	copy(b[32:], name[:])
	copy(b[64:], version[:])
	binary.BigEndian.PutUint64(b[120:], d.ChainID)
	copy(b[140:], d.Contract[:])
	return keccak.Sum256(b[:])
}

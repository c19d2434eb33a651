package tempo

import "github.com/canopy-go/canopy/payment"

// contracts are those that every Tempo chain has besides its tokens.
var contracts = map[payment.Address]bool{
	{0xfe, 0xec}:                   true, // fees
	{0xde, 0xc0}:                   true, // exchange
	{0xaa, 0xaa, 0xaa, 0xaa}:       true, // keys of accounts
	{0x4d, 0x50, 0x50}:             true, // channels
	{0x51, 0x65, 0x30}:             true, // signatures
	{0x4e, 0x4f, 0x4e, 0x43, 0x45}: true, // nonces
}

// IsContract reports whether a is one of the chain's own contracts. What goes to
// them is no payment: what the fee manager gets, logs show as a fee.
func IsContract(a payment.Address) bool { return contracts[a] }

package chain

import (
	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/payment"
)

// What is asked of tokens and of Tempo's nonces, and what they log.
var (
	balanceOf          = signature("balanceOf(address)")
	authorizationState = signature("authorizationState(address,bytes32)")
	getNonce           = signature("getNonce(address,uint256)")

	transferLog      = signature("Transfer(address,address,uint256)")
	authorizationLog = signature("AuthorizationUsed(address,bytes32)")
	cancelLog        = signature("AuthorizationCanceled(address,bytes32)")
	nonceLog         = signature("NonceIncremented(address,uint256,uint64)")
)

// Contracts of every Tempo chain.
var (
	nonceContract = payment.Address{0x4e, 0x4f, 0x4e, 0x43, 0x45} // counts the nonces of lanes
	feeContract   = payment.Address{0xfe, 0xec}                   // takes fees
)

// signature is the hash of a function or an event.
func signature(s string) word { return keccak.Sum256([]byte(s)) }

// selector is the first four bytes of a function's hash, with room for its
// arguments.
func selector(w word) []byte { return append(make([]byte, 0, 4+64), w[:4]...) }

func word32(w word) []byte { return w[:] }

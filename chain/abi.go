package chain

import (
	"github.com/canopy-go/canopy/internal/keccak"
)

// What is asked of tokens, and what they log.
var (
	balanceOf          = signature("balanceOf(address)")
	authorizationState = signature("authorizationState(address,bytes32)")

	transferLog      = signature("Transfer(address,address,uint256)")
	authorizationLog = signature("AuthorizationUsed(address,bytes32)")
	cancelLog        = signature("AuthorizationCanceled(address,bytes32)")
)

// signature is the hash of a function or an event.
func signature(s string) word { return keccak.Sum256([]byte(s)) }

// selector is the first four bytes of a function's hash, with room for its
// arguments.
func selector(w word) []byte { return append(make([]byte, 0, 4+64), w[:4]...) }

func word32(w word) []byte { return w[:] }

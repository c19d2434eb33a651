// Package keccak is the legacy Keccak-256 hash of Ethereum and Tempo, without
// allocation, and the address spelling (EIP-55) that is built on it.
package keccak

import (
	"hash"
	"sync"

	"github.com/ethereum/go-ethereum/crypto/keccak"
)

// state is what the sponge offers beyond hash.Hash: reading the digest without
// copying the sponge first.
type state interface {
	hash.Hash
	Read([]byte) (int, error)
}

// hasher owns the buffers that cross the interface call. A slice handed to an
// interface method escapes; copying the parts in here first lets callers keep
// theirs on the stack.
type hasher struct {
	state
	in  [1088]byte // eight blocks of the sponge
	out [32]byte
}

var pool = sync.Pool{New: func() any {
	return &hasher{state: keccak.NewLegacyKeccak256().(state)}
}}

// Sum256 returns the Keccak-256 of the parts laid end to end. It does not
// allocate, does not keep the parts, and is safe for concurrent use.
func Sum256(parts ...[]byte) [32]byte {
	h := pool.Get().(*hasher)
	h.Reset()
	n := 0
	for _, p := range parts {
		for len(p) > 0 {
			c := copy(h.in[n:], p)
			p, n = p[c:], n+c
			if n == len(h.in) {
				h.Write(h.in[:])
				n = 0
			}
		}
	}
	h.Write(h.in[:n])
	h.Read(h.out[:])
	sum := h.out
	pool.Put(h)
	return sum
}

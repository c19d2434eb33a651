// Package permit holds the proof that a ledger entry was committed. Only
// stores mint permits, and being internal no other module can.
package permit

import (
	"errors"
	"sync"
	"time"
)

// Permit lets a signer sign one digest for one slot until a deadline. The zero
// value permits nothing. Copies share their use.
type Permit struct {
	p *state
}

type state struct {
	slot     string
	deadline time.Time

	mu     sync.Mutex
	used   bool
	digest [32]byte
}

// Errors of Use.
var (
	ErrNone    = errors.New("permit: nothing was committed to the ledger for this signature")
	ErrExpired = errors.New("permit: the committed validity has ended")
	ErrUsed    = errors.New("permit: it was used for other bytes")
)

// Mint returns a permit for a slot whose entry was committed. Nobody but a
// store calls it, after its commit.
func Mint(slot string, deadline time.Time) Permit {
	return Permit{&state{slot: slot, deadline: deadline}}
}

// Slot is the key of the slot that p stands for, empty for the zero Permit.
func (p Permit) Slot() string {
	if p.p == nil {
		return ""
	}
	return p.p.slot
}

// Deadline is when p ends.
func (p Permit) Deadline() time.Time {
	if p.p == nil {
		return time.Time{}
	}
	return p.p.deadline
}

// Use marks p as used for digest. It may be used again for the same digest
// only, since the same bytes may be signed twice. It is safe for concurrent
// use.
func (p Permit) Use(digest [32]byte, now time.Time) error {
	if p.p == nil || p.p.slot == "" {
		return ErrNone
	}
	if !now.Before(p.p.deadline) {
		return ErrExpired
	}
	p.p.mu.Lock()
	defer p.p.mu.Unlock()
	if p.p.used && p.p.digest != digest {
		return ErrUsed
	}
	p.p.used, p.p.digest = true, digest
	return nil
}

// Local marks a signer of this module, whose key is in this process and whose
// signatures need no recovery. No other module can name it.
type Local struct{}

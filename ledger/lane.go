package ledger

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// CodeNoFreeLane denies a payment where every lane of a full pool has one in
// flight.
const CodeNoFreeLane = "no_free_lane"

// Lane is one lane of the pool of an account on a chain. It has one payment at
// a time: it is free when that payment ended by the chain's word, and no other
// payment uses its key before.
type Lane struct {
	Chain   payment.ChainID
	From    payment.Address
	Key     [32]byte
	Nonce   uint64     // the one that Payment uses
	Payment payment.ID // the last one that the lane was allotted to
}

// LaneTx reads and writes the pools of lanes. A lane is put in the step that
// authorizes its payment, so that neither is there without the other.
type LaneTx interface {
	// Lanes is the pool of an account on a chain, in the order in which its
	// lanes were put first. Index: (chain, account).
	Lanes(chain payment.ChainID, from payment.Address) ([]Lane, error)

	// PutLane adds a lane to the pool of its account on its chain, or replaces
	// the one of its key. Its Payment is stored.
	PutLane(Lane) error

	// DropLane takes the lane of this key out of the pool.
	DropLane(Lane) error
}

// slot is the slot that the payment in the lane has or had.
func (l *Lane) slot() payment.Slot {
	return payment.Slot{Kind: payment.SlotLane, Chain: l.Chain, From: l.From, NonceID: l.Key, Nonce: l.Nonce}
}

// next is the nonce that the lane goes on with after e, whose it was last. free
// is false while e may still use its own; retired says that the lane's nonce is
// not known to the ledger and never will be, so that it is not used again.
func (l *Lane) next(e *Entry) (nonce uint64, free, retired bool) {
	switch {
	case e.Slot != l.slot():
		return 0, false, true // not what was written
	case e.State.Live():
		return 0, false, false
	case e.Assumed || !e.Watched:
		return 0, false, true // by somebody's word, not the chain's
	case e.State == ExpiredUnused:
		return l.Nonce, true, false
	case e.State == Settled || e.State == Cancelled:
		return l.Nonce + 1, l.Nonce < maxNonce, l.Nonce >= maxNonce
	}
	return 0, false, true
}

const maxNonce = 1<<63 - 2 // what every store can keep the next of

// allotLane makes slot, which names no lane, one of the pool: a lane that was
// used before, else one that was opened and never used, else a new one. It
// denies where the pool has none to give.
func (s *reserving) allotLane(slot payment.Slot) (payment.Slot, error) {
	fresh, err := freshKey()
	if err != nil {
		return slot, err
	}
	slot.NonceID, slot.Nonce = fresh, 0
	if s.r.Lanes <= 0 || !s.r.Watched {
		return slot, nil
	}
	pool, err := s.tx.Lanes(slot.Chain, slot.From)
	if err != nil {
		return slot, err
	}
	busy := 0
	var frees time.Time
	found, used := false, false
	for i := range pool {
		l := &pool[i]
		e, err := s.tx.Entry(l.Payment)
		if errors.Is(err, ErrNotFound) {
			s.retired = append(s.retired, *l)
			continue
		}
		if err != nil {
			return slot, err
		}
		nonce, free, retired := l.next(e)
		switch {
		case retired:
			s.retired = append(s.retired, *l)
		case !free:
			busy++
			if e.State != NeedsOperator && (frees.IsZero() || e.ValidBefore.Before(frees)) {
				frees = e.ValidBefore
			}
		case !found || nonce > 0 && !used:
			found, used = true, nonce > 0
			slot.NonceID, slot.Nonce = l.Key, nonce
		}
	}
	if busy >= s.r.Lanes {
		s.deny(CodeNoFreeLane, fmt.Sprintf("All %d lanes of the account have a payment in flight", busy), frees)
		return slot, nil
	}
	s.lane = &Lane{Chain: slot.Chain, From: slot.From, Key: slot.NonceID, Nonce: slot.Nonce}
	return slot, nil
}

// freshKey is the key of a lane that nobody has used: neither 0, the account's
// own nonce, nor the one of expiring nonces.
func freshKey() (key [32]byte, err error) {
	for key == [32]byte{} || key == expiringKey {
		if _, err := rand.Read(key[:]); err != nil {
			return key, fmt.Errorf("ledger: no random lane: %w", err)
		}
	}
	return key, nil
}

// expiringKey is the nonce key of Tempo's expiring nonces.
var expiringKey = func() (key [32]byte) {
	for i := range key {
		key[i] = 0xff
	}
	return key
}()

// keepLane records that e has the lane that was allotted, and forgets those
// that are never used again.
func (s *reserving) keepLane(e *Entry) error {
	if s.lane != nil {
		s.lane.Payment = e.ID
		if err := s.tx.PutLane(*s.lane); err != nil {
			return err
		}
	}
	for _, l := range s.retired {
		if err := s.tx.DropLane(l); err != nil {
			return err
		}
	}
	return nil
}

// checkLane refuses a lane by its name that a pool has, or that never is one.
func (s *reserving) checkLane(slot payment.Slot) error {
	if slot.NonceID == expiringKey {
		return fmt.Errorf("ledger: %s is the expiring nonce, and no lane", slot)
	}
	pool, err := s.tx.Lanes(slot.Chain, slot.From)
	if err != nil {
		return err
	}
	for i := range pool {
		if pool[i].Key == slot.NonceID {
			return fmt.Errorf("%w: %s is a lane of the pool", ErrTaken, slot)
		}
	}
	return nil
}

package ledger

import (
	"encoding/hex"

	"github.com/canopy-go/canopy/payment"
)

// laneName is what tells lanes apart.
type laneName struct {
	chain payment.ChainID
	from  payment.Address
	key   [32]byte
}

// String is the lane as in the keys of its slots.
func (n laneName) String() string {
	return string(n.chain) + "/" + n.from.Lower() + "/" + hex.EncodeToString(n.key[:])
}

// laneFound is a lane of a pool.
type laneFound struct {
	lane Lane
	seen bool // its payment came
}

// Lane takes a lane of a pool. Each must come once, before the payments.
func (v *Verification) Lane(l Lane) {
	name := laneName{l.Chain, l.From, l.Key}
	if v.lanes[name] != nil {
		v.Problem("lane %s stands twice in its pool", name)
		return
	}
	v.lanes[name] = &laneFound{lane: l}
}

// onLane checks that the pool tells who had a lane last, and that nobody else
// is on it.
func (v *Verification) onLane(e *Entry) {
	if e.Slot.Kind != payment.SlotLane {
		return
	}
	f := v.lanes[laneName{e.Slot.Chain, e.Slot.From, e.Slot.NonceID}]
	if f == nil {
		return
	}
	switch l := &f.lane; {
	case l.Payment == e.ID:
		f.seen = true
		if e.Slot != l.slot() {
			v.Problem("%s: its slot is not the one that its lane tells", e.ID)
		}
	case e.State.Live() || e.Slot.Nonce > l.Nonce || e.Slot.Nonce == l.Nonce && e.State != ExpiredUnused:
		v.Problem("%s: its lane is told to be payment %s's", e.ID, l.Payment)
	}
}

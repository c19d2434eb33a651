package payment

import (
	"slices"
	"time"
)

// Block is a block of a chain. Blocks are equal when they are ==.
type Block struct {
	Number uint64
	Hash   Hash
	Time   time.Time // UTC, whole seconds
}

// Settlement is what a chain shows of one used slot: the transaction that used
// it, and what moved out of the account by it. The zero value shows nothing.
type Settlement struct {
	Slot     Slot
	TxHash   string
	Block    uint64
	Time     time.Time   // the block's; zero where the node does not say
	Canceled bool        // the slot was used up by a cancellation, which moves nothing
	Moved    []Recipient // the transfers of the token by this use, fees aside; empty where none moved
	Token    Address     // what Moved and Fee are of, where the slot does not name it
	Fee      Units       // of the token, what the account paid for this use; where fees are not paid in it, 0
	Failed   bool        // the transaction failed: it used the slot up, moved nothing, and paid its fee

	// ByAll says that every node that answered showed the use. It is no
	// evidence, and only tells which uses are worth asking about first.
	ByAll bool
}

// Equal reports whether s and o show the same use. A time that only one of them
// knows makes no difference, nor does ByAll.
func (s Settlement) Equal(o Settlement) bool {
	return s.Slot == o.Slot && s.TxHash == o.TxHash && s.Block == o.Block && s.Canceled == o.Canceled &&
		s.Token == o.Token && s.Fee == o.Fee && s.Failed == o.Failed &&
		(s.Time.IsZero() || o.Time.IsZero() || s.Time.Equal(o.Time)) && slices.Equal(s.Moved, o.Moved)
}

// CarriesOut reports whether s moved exactly what t says, to each recipient.
func (s Settlement) CarriesOut(t Terms) bool {
	if s.TxHash == "" || s.Canceled || s.Failed || len(s.Moved) != len(t.Recipients) {
		return false
	}
	left := append([]Recipient(nil), t.Recipients...)
	for _, m := range s.Moved {
		found := false
		for i, r := range left {
			if r == m {
				left, found = append(left[:i], left[i+1:]...), true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

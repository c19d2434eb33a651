package payment

import (
	"testing"
	"time"
)

// TestSettlementEqual tells settlements apart by each of their fields, and not
// by a time that one of them does not know.
func TestSettlementEqual(t *testing.T) {
	t.Parallel()
	whole := func() Settlement {
		return Settlement{
			Slot: Slot{Kind: SlotLane, Chain: TempoTest, Nonce: 3}, TxHash: "0x01", Block: 7, Time: time.Unix(100, 0),
			Moved: []Recipient{{Address: Address{1}, Amount: UnitsOf(5)}}, Token: Address{2}, Fee: UnitsOf(1),
		}
	}
	for name, change := range map[string]func(*Settlement){
		"slot":     func(s *Settlement) { s.Slot.Nonce++ },
		"tx":       func(s *Settlement) { s.TxHash = "0x02" },
		"block":    func(s *Settlement) { s.Block++ },
		"time":     func(s *Settlement) { s.Time = s.Time.Add(time.Second) },
		"canceled": func(s *Settlement) { s.Canceled = true },
		"moved":    func(s *Settlement) { s.Moved[0].Amount = UnitsOf(6) },
		"token":    func(s *Settlement) { s.Token = Address{3} },
		"fee":      func(s *Settlement) { s.Fee = UnitsOf(2) },
		"failed":   func(s *Settlement) { s.Failed = true },
	} {
		s := whole()
		if change(&s); s.Equal(whole()) || whole().Equal(s) {
			t.Errorf("another %s is equal", name)
		}
	}
	untimed := whole()
	untimed.Time = time.Time{}
	if !whole().Equal(whole()) || !untimed.Equal(whole()) || !whole().Equal(untimed) {
		t.Error("the same use is not equal")
	}
}

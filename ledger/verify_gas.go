package ledger

import (
	"fmt"
	"strings"

	"github.com/canopy-go/canopy/payment"
)

// carry follows a permit for a transaction that carries the payment.
func (d *eventData) carry(e *replayed, ev *Event) error {
	c := payment.Carry{Nonce: *d.CarryNonce, DataFee: d.CarryData}
	fits := true
	for _, n := range []struct {
		to   *uint64
		from payment.Units
	}{{&c.GasLimit, d.CarryGas}, {&c.MaxFee, d.CarryFee}, {&c.MaxTip, d.CarryTip}} {
		var ok bool
		*n.to, ok = n.from.Uint64()
		fits = fits && ok
	}
	e.Carries = append(e.Carries, c)
	cost, ok := payment.CarryCost(e.Carries)
	switch {
	case !fits || len(e.Carries) > MaxCarries || ev.From != ev.To || ev.To != Authorized && ev.To != InDoubt || ev.By != ByClient || !strings.HasPrefix(e.slot, "evm/"):
		return fmt.Errorf("ledger: event %d of %s is a transaction that none may be", ev.Seq, ev.Payment)
	case !ok || cost.Cmp(e.Gas) > 0:
		return fmt.Errorf("ledger: event %d of %s is a transaction beyond its gas of %s", ev.Seq, ev.Payment, e.Gas.Coin())
	}
	return nil
}

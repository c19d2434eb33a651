package config

import (
	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/payment"
)

// checkGas refuses bounds for transactions of our own that could bound none.
func checkGas(t *table, c Chain) {
	most, err := payment.ParseCoin(c.MaxGas)
	day, err2 := payment.ParseCoin(c.GasPerDay)
	switch {
	case c.MaxGas == "" && c.GasPerDay == "":
	case c.Tempo:
		for _, key := range []string{"max_gas", "gas_per_day"} {
			if t.has(key) {
				t.problem(key, "is of no use on a Tempo network, where a fee is paid in the token: see gas and gas_price in [mpp]")
			}
		}
	case c.MaxGas == "":
		t.problem("gas_per_day", "belongs to max_gas, and none is named: add max_gas")
	case err != nil || c.GasPerDay != "" && err2 != nil: // told already
	case most.IsZero():
		t.problem("max_gas", "is 0: leave it out, and no transaction of our own is made")
	case c.GasPerDay != "" && day.Cmp(most) < 0:
		t.problem("gas_per_day", "is less than max_gas, so that nothing could be paid")
	case len(c.RPC)+len(c.RPCEnv) == 0:
		t.problem("max_gas", "is for transactions of our own, and there is nobody to send them to: add rpc")
	}
}

// gas is what transactions of our own may cost, by chain.
func (f *File) gas() map[payment.ChainID]canopy.Gas {
	out := map[payment.ChainID]canopy.Gas{}
	for _, c := range f.Chains {
		most, err := payment.ParseCoin(c.MaxGas)
		if err != nil || most.IsZero() {
			continue
		}
		day, _ := payment.ParseCoin(c.GasPerDay) // 0 where it is left out
		out[c.ID] = canopy.Gas{Max: most, PerDay: day}
	}
	return out
}

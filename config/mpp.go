package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/mpp"
	"github.com/canopy-go/canopy/payment"
)

// maxLanes is that of canopy.Config.
const maxLanes = 1024

// mppTable reads [mpp].
func (f *File) mppTable(d *document) {
	t := d.table("mpp")
	f.MPP.Fees = mpp.Fees{
		Gas: gas(t, "gas"), GasPerCall: gas(t, "gas_per_call"),
		MaxPrice: gwei(t, "gas_price"), Tip: gwei(t, "gas_tip"),
	}
	f.MPP.ClientID = t.text("client_id")
	if proofs, ok := t.flag("proofs"); ok {
		f.MPP.NoProofs = !proofs
	}
	f.MPP.ProofRealms = t.texts("proof_realms")
	switch s := t.text("sponsored_envelope"); s {
	case "", "0x78":
	case "0x76":
		f.MPP.Envelope = mpp.EnvelopeTransaction
	default:
		t.problem("sponsored_envelope", `is "0x78", or "0x76" for older servers, not %q`, clip(s))
	}
	if n, ok := t.number("lanes"); ok {
		if n < 1 || n > maxLanes {
			t.problem("lanes", "is 1 to %d", maxLanes)
		}
		f.MPP.Lanes = int(n)
	}
	t.done()
	if _, err := mpp.New(mpp.Config{Fees: f.MPP.Fees}); err != nil {
		t.problem("", "%s", strings.TrimPrefix(err.Error(), "mpp: "))
	}
}

func gas(t *table, key string) uint64 {
	n, ok := t.number(key)
	if ok && n < 21_000 {
		t.problem(key, "is a limit of gas, such as 1200000")
		return 0
	}
	return uint64(n)
}

// gwei reads a price of gas: whole 1e-9 dollars, as text with the unit.
func gwei(t *table, key string) uint64 {
	s := t.text(key)
	if s == "" {
		return 0
	}
	digits, ok := strings.CutSuffix(s, " gwei")
	u, err := payment.ParseUnits(digits)
	n, small := u.Uint64()
	if !ok || err != nil || !small || n == 0 || n > 1_000 {
		t.problem(key, `is a price of gas from "1 gwei" to "1000 gwei", not %q`, clip(s))
		return 0
	}
	return n * 1_000_000_000
}

// mppRail is the rail of the Payment scheme.
func (f *File) mppRail(chains []canopy.Chain) (*mpp.Rail, error) {
	c := mpp.Config{
		Assets: f.Assets, Chains: f.mppChains(), Fees: f.MPP.Fees, ClientID: f.MPP.ClientID,
		Envelope: f.MPP.Envelope, NoProofs: f.MPP.NoProofs, ProofRealms: f.MPP.ProofRealms, Nodes: map[payment.ChainID]mpp.Node{},
	}
	for _, ch := range f.Chains {
		if ch.Tempo {
			c.Tempo = append(c.Tempo, ch.ID)
		}
	}
	for _, ch := range chains {
		if node, ok := ch.(*chain.Chain); ok && f.isTempo(ch.ID()) {
			c.Nodes[ch.ID()] = node
		}
	}
	rail, err := mpp.New(c)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return rail, nil
}

// mppChains are the chains that MPP may pay on: those of x402, and the Tempo
// networks of [[chain]], or all that are known where there is none.
func (f *File) mppChains() []payment.ChainID {
	out := f.railChains()
	found := false
	for _, c := range f.Chains {
		if c.Tempo {
			found = true
			if !slices.Contains(out, c.ID) {
				out = append(out, c.ID)
			}
		}
	}
	if !found {
		out = append(out, payment.Tempo, payment.TempoTest)
	}
	return out
}

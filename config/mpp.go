package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/internal/host"
	"github.com/canopy-go/canopy/mpp"
	"github.com/canopy-go/canopy/payment"
)

// What [mpp] takes.
const (
	maxLanes    = 1024 // that of canopy.Config
	minGas      = 21_000
	maxGas      = 30_000_000 // that of mpp.Fees
	maxGwei     = 1_000      // that of mpp.Fees
	defaultGwei = 25         // that of mpp.Fees
	gwei        = 1_000_000_000
	maxClientID = 128
)

// mppTable reads [mpp].
func (f *File) mppTable(d *document) {
	t := d.table("mpp")
	before := len(d.problems)
	f.MPP.Fees = mpp.Fees{
		Gas: gas(t, "gas"), GasPerCall: gas(t, "gas_per_call"),
		MaxPrice: price(t, "gas_price"), Tip: price(t, "gas_tip"),
	}
	if tip, most := f.MPP.Fees.Tip, f.MPP.Fees.MaxPrice; len(d.problems) == before {
		if most == 0 {
			most = defaultGwei * gwei
		}
		if tip > most {
			t.problem("gas_tip", `is "1 gwei" to gas_price, which is "%d gwei", not %q`, most/gwei, clip(t.text("gas_tip")))
		}
	}
	f.MPP.ClientID = clientID(t, "client_id")
	proofs, says := t.flag("proofs")
	f.MPP.NoProofs = says && !proofs
	f.MPP.ProofRealms = realms(t, "proof_realms")
	if f.MPP.NoProofs && t.has("proof_realms") {
		t.problem("proof_realms", "are realms that a proof is given for, and proofs = false gives none: take one of the two out")
	}
	switch s := t.text("sponsored_envelope"); s {
	case "", "0x78":
	case "0x76":
		f.MPP.Envelope = mpp.EnvelopeTransaction
	default:
		t.problem("sponsored_envelope", `is "0x78", or "0x76" for older servers, not %q`, clip(s))
	}
	if n, ok := t.number("lanes"); ok {
		if n < 1 || n > maxLanes {
			t.problem("lanes", "is 1 to %d, not %d", maxLanes, n)
		}
		f.MPP.Lanes = int(n)
	}
	t.done()
	if len(d.problems) > before {
		return
	}
	if _, err := mpp.New(mpp.Config{Fees: f.MPP.Fees}); err != nil {
		t.problem("", "%s", strings.TrimPrefix(err.Error(), "mpp: "))
	}
}

func gas(t *table, key string) uint64 {
	n, ok := t.number(key)
	if ok && (n < minGas || n > maxGas) {
		t.problem(key, "is a limit of gas from %d to %d, such as 1200000, not %d", minGas, maxGas, n)
		return 0
	}
	return uint64(n)
}

// price reads a price of gas: whole 1e-9 dollars, as text with the unit.
func price(t *table, key string) uint64 {
	if n, ok := t.values[key].(int64); ok {
		t.known = append(t.known, key)
		t.problem(key, `is text with its unit, from "1 gwei" to "%d gwei", not %d`, maxGwei, n)
		return 0
	}
	s := t.text(key)
	if s == "" {
		return 0
	}
	digits, ok := strings.CutSuffix(s, " gwei")
	u, err := payment.ParseUnits(digits)
	n, small := u.Uint64()
	if !ok || err != nil || !small || n == 0 || n > maxGwei {
		t.problem(key, `is a price of gas from "1 gwei" to "%d gwei", not %q`, maxGwei, clip(s))
		return 0
	}
	return n * gwei
}

// clientID reads a name that sellers may know us by.
func clientID(t *table, key string) string {
	s := t.text(key)
	odd := func(c rune) bool { return !unicode.IsPrint(c) }
	if len(s) > maxClientID || strings.TrimSpace(s) != s || !utf8.ValidString(s) || strings.ContainsFunc(s, odd) {
		t.problem(key, `is a name of 1 to %d bytes that can be read, without spaces around it, such as "acme-research"`, maxClientID)
		return ""
	}
	return s
}

// realms reads names as challenges spell them. One that could match nothing, or
// that somebody took for a pattern, is refused.
func realms(t *table, key string) []string {
	list := t.texts(key)
	for i, s := range list {
		at := fmt.Sprintf("%s[%d]", key, i)
		name, isURL := realmOf(s)
		switch {
		case isURL && name != "":
			t.problem(at, "is a realm as the challenge names it, not a URL: write %q", name)
		case isURL:
			t.problem(at, `is a realm as the challenge names it, not a URL: write "api.example"`)
		case strings.Contains(s, "*"):
			t.problem(at, "is no pattern: a proof tells who pays, so that each realm is named by itself, as the challenge spells it")
		case len(s) > maxRealm || strings.TrimSpace(s) != s || strings.ContainsFunc(s, unicode.IsControl):
			t.problem(at, `is a realm as the challenge names it, such as "api.example"`)
		case slices.Contains(list[:i], s):
			t.problem(at, "stands there twice")
		}
	}
	return list
}

// maxRealm is the longest that a challenge can have.
const maxRealm = 1 << 10

// realmOf tells a URL, or a host with a path, from a realm, and the host in it.
func realmOf(s string) (name string, isURL bool) {
	rest := s
	if _, after, ok := strings.Cut(s, "://"); ok {
		rest, isURL = after, true
	} else if rest, isURL = strings.CutPrefix(s, "//"); !isURL {
		before, _, ok := strings.Cut(s, "/")
		if isURL = ok && strings.Contains(before, "."); !isURL {
			return "", false
		}
	}
	rest, _, _ = strings.Cut(rest, "/")
	h, err := host.Normalize(rest)
	if err != nil {
		return "", strings.Contains(s, "://") || strings.HasPrefix(s, "//")
	}
	return h.String(), true
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

package payment_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/payment"
)

func goodTerms(t testing.TB) payment.Terms {
	amount := payment.UnitsOf(10_000)
	return payment.Terms{
		Rail: "x402", Scheme: "exact", Asset: asset(t, payment.Base, "USDC"),
		Recipients: []payment.Recipient{{Address: payment.Address{19: 9}, Amount: amount}}, Amount: amount, FeeBound: 3,
		Method: "POST", Origin: "https://feed.example", Target: "/a?b=c", BodyDigest: [32]byte{1}, Validity: time.Minute,
	}
}

// Each field of terms, changed alone, changes the hash; a field added to Terms
// later has to be added here and to Hash, or this fails.
func TestTermsHashCoversEverything(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*payment.Terms){
		"Rail":       func(t *payment.Terms) { t.Rail = "mpp" },
		"Scheme":     func(t *payment.Terms) { t.Scheme = "charge" },
		"Asset":      func(t *payment.Terms) { t.Asset.Address[0]++ },
		"Recipients": func(t *payment.Terms) { t.Recipients = []payment.Recipient{{payment.Address{1}, t.Amount}} },
		"Amount":     func(t *payment.Terms) { t.Amount = payment.UnitsOf(10_001) },
		"FeeBound":   func(t *payment.Terms) { t.FeeBound++ },
		"Method":     func(t *payment.Terms) { t.Method = "GET" },
		"Origin":     func(t *payment.Terms) { t.Origin = "https://feed.example:8443" },
		"Target":     func(t *payment.Terms) { t.Target = "/a?b=d" },
		"BodyDigest": func(t *payment.Terms) { t.BodyDigest[31] = 1 },
		"Validity":   func(t *payment.Terms) { t.Validity++ },
	}
	typ := reflect.TypeFor[payment.Terms]()
	for i := range typ.NumField() {
		if changes[typ.Field(i).Name] == nil {
			t.Errorf("no change of field %s", typ.Field(i).Name)
		}
	}
	changes["chain"] = func(t *payment.Terms) { t.Asset.Chain = "eip155:1" }
	changes["a recipient's amount"] = func(t *payment.Terms) {
		t.Recipients = []payment.Recipient{{t.Recipients[0].Address, payment.UnitsOf(9_999)}}
	}
	changes["one more recipient"] = func(t *payment.Terms) {
		t.Recipients = append(t.Recipients[:1:1], payment.Recipient{Address: payment.Address{2}})
	}
	changes["shifted text"] = func(t *payment.Terms) { t.Origin, t.Target = t.Origin+"/", "a?b=c" }
	changes["shifted names"] = func(t *payment.Terms) { t.Rail, t.Scheme = "x402e", "xact" }
	want := goodTerms(t).Hash()
	seen := map[payment.Hash]string{want: "no change"}
	for name, change := range changes {
		terms := goodTerms(t)
		change(&terms)
		h := terms.Hash()
		if other, ok := seen[h]; ok {
			t.Errorf("%s hashes as %s", name, other)
		}
		seen[h] = name
	}
	if goodTerms(t).Hash() != want {
		t.Error("equal terms hash differently")
	}
	terms := goodTerms(t)
	terms.Asset.Symbol, terms.Asset.Name = "other", "words"
	if terms.Hash() != want {
		t.Error("words of the table are hashed")
	}
}

// The encoding is stored and compared across versions: it must not change.
func TestTermsHashIsPinned(t *testing.T) {
	t.Parallel()
	const want = "ba6bf7ff10dfb4e3e681b683484555d37e2481c512fa65e5bc683f3db809c45d"
	if got := goodTerms(t).Hash().String(); got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
}

func TestTermsCost(t *testing.T) {
	t.Parallel()
	terms := goodTerms(t)
	if got := terms.Cost(); got != payment.Cent+3 {
		t.Errorf("cost %s, want the amount and the fee bound", got)
	}
	terms.Amount = units(t, maxUnits.String())
	if got := terms.Cost(); got != payment.MaxUSD {
		t.Errorf("cost of 2^256-1 units is %d, want MaxUSD", got)
	}
	terms = goodTerms(t)
	terms.FeeBound = payment.MaxUSD - 1
	if got := terms.Cost(); got != payment.MaxUSD {
		t.Errorf("an overflowing cost is %d, want MaxUSD", got)
	}
	if _, err := payment.ParseUSD(payment.MaxUSD.Decimal()); err == nil {
		t.Error("a limit can be written that admits MaxUSD")
	}
}

func TestTermsCheck(t *testing.T) {
	t.Parallel()
	payer := payment.Address{19: 1}
	if err := goodTerms(t).Check(payer); err != nil {
		t.Fatal(err)
	}
	max := units(t, maxUnits.String())
	for name, change := range map[string]func(*payment.Terms){
		"no recipient": func(t *payment.Terms) { t.Recipients = nil },
		"zero payee":   func(t *payment.Terms) { t.Recipients = []payment.Recipient{{payment.Address{}, t.Amount}} },
		"token":        func(t *payment.Terms) { t.Recipients = []payment.Recipient{{t.Asset.Address, t.Amount}} },
		"payer":        func(t *payment.Terms) { t.Recipients = []payment.Recipient{{payer, t.Amount}} },
		"burn": func(t *payment.Terms) {
			t.Recipients = []payment.Recipient{{payment.Address{18: 0xde, 19: 0xad}, t.Amount}}
		},
		"sum below": func(t *payment.Terms) { t.Recipients = []payment.Recipient{{payment.Address{9}, payment.UnitsOf(1)}} },
		"sum overflows": func(t *payment.Terms) {
			t.Recipients = []payment.Recipient{{payment.Address{9}, max}, {payment.Address{8}, max}}
		},
	} {
		terms := goodTerms(t)
		change(&terms)
		if err := terms.Check(payer); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSlotKeys(t *testing.T) {
	t.Parallel()
	evm := payment.Slot{Kind: payment.SlotEVM, Chain: payment.Base, Token: payment.Address{1}, From: payment.Address{2}, NonceID: [32]byte{3}}
	slots := []payment.Slot{evm, {Kind: payment.SlotLane, Chain: payment.Tempo, From: payment.Address{2}, NonceID: [32]byte{3}},
		{Kind: payment.SlotLane, Chain: payment.Tempo, From: payment.Address{2}, NonceID: [32]byte{3}, Nonce: 1},
		{Kind: payment.SlotExpiring, Chain: payment.Tempo, From: payment.Address{2}, NonceID: [32]byte{3}}, {Kind: payment.SlotProof, Payment: "01J"}, {}}
	for _, change := range []func(*payment.Slot){
		func(s *payment.Slot) { s.Chain = payment.BaseSepolia }, func(s *payment.Slot) { s.Token[0]++ },
		func(s *payment.Slot) { s.From[0]++ }, func(s *payment.Slot) { s.NonceID[31]++ },
	} {
		s := evm
		change(&s)
		slots = append(slots, s)
	}
	seen := map[string]bool{}
	for _, s := range slots {
		if seen[s.String()] {
			t.Errorf("two slots have the key %q", s)
		}
		seen[s.String()] = true
	}
	if got, want := evm.String(), "evm/eip155:8453/0x0100000000000000000000000000000000000000/0x0200000000000000000000000000000000000000/0300000000000000000000000000000000000000000000000000000000000000"; got != want {
		t.Errorf("slot key %s, want %s", got, want)
	}
}

func TestAuthorizationNeverPrintsItsBytes(t *testing.T) {
	t.Parallel()
	a := payment.Authorization{Header: "X-PAYMENT", Value: "canary-value", Raw: []byte("canary-raw")}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if out := fmt.Sprintf(verb, a); strings.Contains(out, "canary") {
			t.Errorf("%s prints %s", verb, out)
		}
	}
	if out := a.LogValue().String(); strings.Contains(out, "canary") {
		t.Errorf("a log has %s", out)
	}
	if b, err := json.Marshal(a); err == nil {
		t.Errorf("JSON is %s", b)
	}
}

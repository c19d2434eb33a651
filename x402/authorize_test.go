package x402_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/internal/permit"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/signer"
	"github.com/canopy-go/canopy/x402"
)

const golden = `{"signature":"0xc87238cd184ed43b921610105ebd5494b7370926d75002f91e22eb8d2dd9c68c13c497c492c07c2c601420c60324c9be6dd42499934353f394ac8d169a6ac1cb1c",` +
	`"authorization":{"from":"0x2c7536E3605D9C16a7a3D7b1898e529396a65c23","to":"` + payee + `","value":"1000","validAfter":"0","validBefore":"1790856060",` +
	`"nonce":"0xf300000000000000000000000000000000000000000000000000000000000080"}}`

// The signature was checked by hand against viem's rules: TestOracle recovers
// every one with go-ethereum's own typed data.
func TestAuthorizeVersion2(t *testing.T) {
	t.Parallel()
	a := authorize(t, grant(t, offer(t, v2(R))))
	want := `{"x402Version":2,"payload":` + golden + `,"accepted":` + R + `,"resource":{"url":"https://feed.example/a","description":"quotes"}}`
	if got := document(t, a); got != want || a.Header != "PAYMENT-SIGNATURE" {
		t.Errorf("%s:\ngot  %s\nwant %s", a.Header, got, want)
	}
	if a.Raw != nil || a.TxHash != "" || !a.ValidBefore.Equal(noon.Add(time.Minute)) {
		t.Errorf("got %+v", a)
	}
}

func TestAuthorizeVersion1(t *testing.T) {
	t.Parallel()
	a := authorize(t, grant(t, offer(t, v1(R1))))
	want := `{"x402Version":1,"payload":` + golden + `,"scheme":"exact","network":"base-sepolia"}`
	if got := document(t, a); got != want || a.Header != "X-PAYMENT" {
		t.Errorf("%s:\ngot  %s\nwant %s", a.Header, got, want)
	}
}

// Cases 53 and 54, notes 0.2 and 0.3: what was received is echoed byte for byte,
// however odd it is.
func TestEchoVerbatim(t *testing.T) {
	t.Parallel()
	entry := edit(t, R, `"scheme"`, ` "z" : [1.0, 1e5,90071992547409931, "\u20ac\/"] , "scheme"`)
	extensions := `{"bazaar":{"info":{"input":{"type":"http","method":"GET"}},"schema":{}}, "x":null,"y":{"payment":1}}`
	doc := `{"accepts":[` + entry + `],"extensions":` + extensions + `,"x402Version":2,"resource":"not even an object"}`
	got := document(t, authorize(t, grant(t, offer(t, doc))))
	for _, want := range []string{`"accepted":` + entry, `"extensions":` + extensions, `"resource":"not even an object"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	for _, none := range []string{`{"x402Version":2,"accepts":[` + R + `]}`, `{"x402Version":2,"resource":null,"accepts":[` + R + `],"extensions":null}`} {
		if got := document(t, authorize(t, grant(t, offer(t, none)))); strings.Contains(got, "resource") || strings.Contains(got, "extensions") {
			t.Errorf("absent or null: %s", got)
		}
	}
}

// Case 47: the id is added where it is asked for, and belongs to the payment.
func TestPaymentIdentifier(t *testing.T) {
	t.Parallel()
	const id = `"id":"pay_`
	for _, tc := range []struct {
		name, extensions string
		want             string // with ID for the id; empty where extensions stays as it is
	}{
		{"required", `{"payment-identifier":{"info":{"required":true},"schema":{}}}`, `{"payment-identifier":{"info":{"required":true,"id":"ID"},"schema":{}}}`},
		{"empty info", `{"payment-identifier":{"info":{}}}`, `{"payment-identifier":{"info":{"id":"ID"}}}`},
		{"no info", `{"payment-identifier":{}}`, `{"payment-identifier":{"info":{"id":"ID"}}}`},
		{"schema alone", `{"payment-identifier":{"schema":{"a":[1, 2]}}}`, `{"payment-identifier":{"schema":{"a":[1, 2]},"info":{"id":"ID"}}}`},
		{"beside others", `{"a":{ "b" : 1 },"payment-identifier":{"info":{"required":false}},"é":"x"}`, `{"a":{ "b" : 1 },"payment-identifier":{"info":{"required":false,"id":"ID"}},"é":"x"}`},
		{"the seller's own id wins", `{"payment-identifier":{"info":{"id":"seller-has-one-0001"}}}`, ""},
		{"the seller's own id, another case", `{"payment-identifier":{"info":{"ID":null}}}`, ""},
		{"no object", `{"payment-identifier":true}`, ""},
		{"info is no object", `{"payment-identifier":{"info":[]}}`, ""},
		{"deeper", `{"x":{"payment-identifier":{"info":{}}}}`, ""},
		{"the name as a value", `{"x":"payment-identifier"}`, ""},
		{"a list", `["payment-identifier"]`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := offer(t, `{"x402Version":2,"accepts":[`+R+`],"extensions":`+tc.extensions+`}`)
			g := grant(t, o)
			doc := document(t, authorize(t, g))
			if tc.want == "" {
				if strings.Contains(doc, id) || !strings.HasSuffix(doc, `"extensions":`+compact(t, tc.extensions)+`}`) && !strings.HasSuffix(doc, `"extensions":`+tc.extensions+`}`) {
					t.Errorf("got %s", doc)
				}
				return
			}
			_, rest, found := strings.Cut(doc, id)
			if !found || len(rest) < 33 || strings.Trim(rest[:32], "0123456789abcdef") != "" || rest[32] != '"' {
				t.Fatalf("no id in %s", doc)
			}
			if want := strings.ReplaceAll(tc.want, "ID", "pay_"+rest[:32]); !strings.HasSuffix(doc, `"extensions":`+want+`}`) {
				t.Errorf("got %s, want %s", doc, want)
			}
			// The same payment after a restart, from the ledger's copy alone.
			g2 := g
			g2.Echo, g2.Permit = slices.Clone(g.Echo), permit.Mint(g.Slot.String(), g.ValidBefore)
			if again := document(t, authorize(t, g2)); again != doc {
				t.Errorf("after a restart: %s, want %s", again, doc)
			}
			g2.PaymentID, g2.Permit = "01K6FPS7PGQ0M8Y4JZ0V2R3E5V", permit.Mint(g.Slot.String(), g.ValidBefore)
			if other := document(t, authorize(t, g2)); strings.Contains(other, rest[:32]) {
				t.Error("another payment has the same id")
			}
			if _, err := rail(t).Decode(authorize(t, g), g); err != nil {
				t.Errorf("Decode: %v", err)
			}
		})
	}
}

func compact(t *testing.T, s string) string {
	t.Helper()
	var v json.RawMessage = []byte(s)
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Row 44, 47 and RFC 6979: bytes signed again are the bytes that were lost.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{v2(R), v1(R1)} {
		g := grant(t, offer(t, doc))
		first := authorize(t, g)
		for range 3 {
			g.Permit = permit.Mint(g.Slot.String(), g.ValidBefore)
			r, err := x402.New(x402.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if again, err := r.Authorize(t.Context(), g, key(t)); err != nil || again.Value != first.Value {
				t.Errorf("%s, %v; want %s", again.Value, err, first.Value)
			}
		}
	}
}

// spy counts what it is asked to sign.
type spy struct {
	payment.Signer
	calls int
	sign  func(sig []byte) ([]byte, error)
}

func (s *spy) Sign(ctx context.Context, p payment.Permit, digest [32]byte) ([]byte, error) {
	s.calls++
	sig, err := s.Signer.Sign(ctx, p, digest)
	if err != nil || s.sign == nil {
		return sig, err
	}
	return s.sign(sig)
}

// A grant that is no exact payment is refused before the signer is asked.
func TestGrantsThatDoNotFit(t *testing.T) {
	t.Parallel()
	stranger := payment.Address{1, 2, 3}
	for _, tc := range []struct {
		name string
		edit func(g *payment.Grant)
	}{
		{"another rail", func(g *payment.Grant) { g.Terms.Rail = "mpp" }},
		{"another scheme", func(g *payment.Grant) { g.Terms.Scheme = "upto" }},
		{"version 0", func(g *payment.Grant) { g.Version = 0 }},
		{"version 3", func(g *payment.Grant) { g.Version = 3 }},
		{"version 1 with an echo of version 2", func(g *payment.Grant) { g.Version = 1 }},
		{"no echo", func(g *payment.Grant) { g.Echo = nil }},
		{"an echo of no version", func(g *payment.Grant) { g.Echo = []byte(`3"a":1`) }},
		{"an echo of one byte", func(g *payment.Grant) { g.Echo = []byte(`2`) }},
		{"an echo that is too large", func(g *payment.Grant) { g.Echo = append(g.Echo, make([]byte, payment.MaxEcho)...) }},
		{"unknown token", func(g *payment.Grant) {
			g.Terms.Asset.Address, g.Slot.Token = stranger, stranger
			g.Permit = permit.Mint(g.Slot.String(), g.ValidBefore)
		}},
		{"other decimals", func(g *payment.Grant) { g.Terms.Asset.Decimals = 18 }},
		{"no recipient", func(g *payment.Grant) { g.Terms.Recipients = nil }},
		{"two recipients", func(g *payment.Grant) {
			g.Terms.Recipients = append(slices.Clone(g.Terms.Recipients), payment.Recipient{Address: stranger})
		}},
		{"the recipient gets less", func(g *payment.Grant) {
			g.Terms.Recipients = []payment.Recipient{{Address: g.Terms.Payee(), Amount: payment.UnitsOf(999)}}
		}},
		{"the amount is more", func(g *payment.Grant) { g.Terms.Amount = payment.UnitsOf(1001) }},
		{"zero", func(g *payment.Grant) {
			g.Terms.Amount = payment.Units{}
			g.Terms.Recipients = []payment.Recipient{{Address: g.Terms.Payee()}}
		}},
		{"the payee is nobody", func(g *payment.Grant) {
			g.Terms.Recipients = []payment.Recipient{{Amount: g.Terms.Amount}}
		}},
		{"attack 26: the payee is the payer", func(g *payment.Grant) {
			g.Terms.Recipients = []payment.Recipient{{Address: g.Payer, Amount: g.Terms.Amount}}
		}},
		{"the payee is the token", func(g *payment.Grant) {
			g.Terms.Recipients = []payment.Recipient{{Address: g.Terms.Asset.Address, Amount: g.Terms.Amount}}
		}},
		{"no payer", func(g *payment.Grant) { g.Payer, g.Slot.From = payment.Address{}, payment.Address{} }},
		{"the payer is not the signer", func(g *payment.Grant) { g.Payer, g.Slot.From = stranger, stranger }},
		{"no slot", func(g *payment.Grant) { g.Slot = payment.Slot{} }},
		{"a lane", func(g *payment.Grant) { g.Slot.Kind = payment.SlotLane }},
		{"the slot on another chain", func(g *payment.Grant) { g.Slot.Chain = payment.Base }},
		{"the slot of another token", func(g *payment.Grant) { g.Slot.Token = stranger }},
		{"the slot of another payer", func(g *payment.Grant) { g.Slot.From = stranger }},
		{"attack 86: no nonce", func(g *payment.Grant) { g.Slot.NonceID = [32]byte{} }},
		{"the nonce is not the permit's", func(g *payment.Grant) { g.Slot.NonceID[5]++ }},
		{"attack 17: no validity", func(g *payment.Grant) { g.ValidBefore = time.Time{} }},
		{"validity before 1970", func(g *payment.Grant) { g.ValidBefore = time.Unix(-5, 0) }},
		{"validity of a fraction", func(g *payment.Grant) { g.ValidBefore = g.ValidBefore.Add(1) }},
		{"no permit", func(g *payment.Grant) { g.Permit = payment.Permit{} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := grant(t, offer(t, v2(R)))
			tc.edit(&g)
			s := &spy{Signer: key(t)}
			a, err := rail(t).Authorize(t.Context(), g, s)
			if err == nil || a.Value != "" || a.Header != "" {
				t.Fatalf("signed: %v, %v", a, err)
			}
			if s.calls > 0 {
				t.Errorf("the signer was asked: %v", err)
			}
		})
	}
}

func TestPermits(t *testing.T) {
	t.Parallel()
	g := grant(t, offer(t, v2(R)))
	g.Permit = permit.Mint(g.Slot.String(), noon)
	if _, err := rail(t).Authorize(t.Context(), g, key(t)); !errors.Is(err, permit.ErrExpired) {
		t.Errorf("expired: %v", err)
	}
	g = grant(t, offer(t, v2(R)))
	authorize(t, g)
	authorize(t, g) // the same bytes again
	g.ValidBefore = g.ValidBefore.Add(time.Second)
	if _, err := rail(t).Authorize(t.Context(), g, key(t)); !errors.Is(err, permit.ErrUsed) {
		t.Errorf("used for other bytes: %v", err)
	}
}

// Case 9: a context that has ended signs nothing, and one that ends while the
// signer works sends nothing.
func TestContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := &spy{Signer: key(t), sign: func(sig []byte) ([]byte, error) { cancel(); return sig, nil }}
	g := grant(t, offer(t, v2(R)))
	if a, err := rail(t).Authorize(ctx, g, s); !errors.Is(err, context.Canceled) || a.Value != "" || s.calls != 1 {
		t.Errorf("cancelled meanwhile: %v, %v, %d calls", a, err, s.calls)
	}
	if a, err := rail(t).Authorize(ctx, g, s); !errors.Is(err, context.Canceled) || a.Value != "" || s.calls != 1 {
		t.Errorf("cancelled before: %v, %v, %d calls", a, err, s.calls)
	}
}

// Attack 87, case 37: signers that spell oddly are normalised, signers that
// sign for another are refused.
func TestForeignSigners(t *testing.T) {
	t.Parallel()
	g := grant(t, offer(t, v2(R)))
	want := authorize(t, g).Value
	high := func(sig []byte) []byte {
		n := new(big.Int).SetBytes(sig[32:64])
		n.Sub(crypto.S256().Params().N, n).FillBytes(sig[32:64])
		sig[64] ^= 27 ^ 28
		return sig
	}
	for _, tc := range []struct {
		name string
		sign func(sig []byte) ([]byte, error)
		ok   bool
	}{
		{"as it should be", nil, true},
		{"v 0 or 1", func(sig []byte) ([]byte, error) { sig[64] -= 27; return sig, nil }, true},
		{"high s", func(sig []byte) ([]byte, error) { return high(sig), nil }, true},
		{"both", func(sig []byte) ([]byte, error) { sig = high(sig); sig[64] -= 27; return sig, nil }, true},
		{"an error", func([]byte) ([]byte, error) { return nil, errors.New("locked") }, false},
		{"nothing", func([]byte) ([]byte, error) { return nil, nil }, false},
		{"short", func(sig []byte) ([]byte, error) { return sig[:64], nil }, false},
		{"a contract account's", func(sig []byte) ([]byte, error) { return append(sig, sig...), nil }, false},
		{"the other v", func(sig []byte) ([]byte, error) { sig[64] ^= 27 ^ 28; return sig, nil }, false},
		{"v 37", func(sig []byte) ([]byte, error) { sig[64] = 37; return sig, nil }, false},
		{"a flipped bit", func(sig []byte) ([]byte, error) { sig[40] ^= 1; return sig, nil }, false},
		{"zeros", func([]byte) ([]byte, error) { return make([]byte, 65), nil }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a, err := rail(t).Authorize(t.Context(), g, &spy{Signer: key(t), sign: tc.sign})
			if tc.ok && (err != nil || a.Value != want) || !tc.ok && (err == nil || a.Value != "") {
				t.Errorf("%v, %v", a, err)
			}
		})
	}
}

// Attack 85: nothing of the signed bytes is printed.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	a := authorize(t, grant(t, offer(t, v2(R))))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(verb, a); strings.Contains(s, a.Value[:40]) || strings.Contains(s, "c87238cd") {
			t.Errorf("%s prints %s", verb, s)
		}
	}
	g := grant(t, offer(t, v2(R)))
	g.Payer = payment.Address{9}
	g.Slot.From = g.Payer
	if _, err := rail(t).Decode(a, g); err == nil || strings.Contains(err.Error(), "c87238cd") {
		t.Errorf("Decode: %v", err)
	}
}

// Many goroutines share one rail.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	r, k := rail(t), signer.Checked(key(t))
	want := authorize(t, grant(t, offer(t, v2(R)))).Value
	done := make(chan error)
	for range 8 {
		go func() {
			for range 20 {
				offers, err := r.Offers(inHeader(v2(R)))
				if err != nil {
					done <- err
					return
				}
				g := grant(t, offers[0])
				a, err := r.Authorize(context.Background(), g, k)
				if err == nil && a.Value != want {
					err = errors.New("other bytes")
				}
				if err == nil {
					_, err = r.Decode(a, g)
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

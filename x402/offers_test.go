package x402_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/x402"
)

func TestOfferOfVersion2(t *testing.T) {
	t.Parallel()
	o := offer(t, v2(R))
	usdc, _ := payment.KnownAssets().Lookup(payment.BaseSepolia, o.Asset.Address)
	to, _ := payment.ParseAddress(payee)
	want := payment.Offer{
		Slot: payment.SlotEVM,
		Rail: "x402", Scheme: "exact", Asset: usdc, Amount: payment.UnitsOf(1000),
		Validity: time.Minute, Network: "eip155:84532", Resource: "https://feed.example/a", Description: "quotes",
		Version: 2, Resend: true,
		Recipients: []payment.Recipient{{Address: to, Amount: payment.UnitsOf(1000)}},
		Echo:       []byte(`2"accepted":` + R + `,"resource":{"url":"https://feed.example/a","description":"quotes"}`),
	}
	if got, want := fmt.Sprintf("%+v", o), fmt.Sprintf("%+v", want); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestOfferOfVersion1(t *testing.T) {
	t.Parallel()
	o := offer(t, v1(R1))
	if o.Version != 1 || o.Resend || o.Network != "base-sepolia" || o.Asset.Chain != payment.BaseSepolia || o.Amount != payment.UnitsOf(1000) ||
		o.Resource != "https://feed.example/a" || string(o.Echo) != `1"scheme":"exact","network":"base-sepolia"` {
		t.Errorf("got %+v", o)
	}
}

// edit is entry with old replaced by new, which must change it.
func edit(t testing.TB, entry, old, new string) string {
	t.Helper()
	out := strings.Replace(entry, old, new, 1)
	if out == entry {
		t.Fatalf("%q is not in the entry", old)
	}
	return out
}

// What cannot be paid is skipped by itself, with its reason, and the good entry
// beside it stays.
func TestSkipped(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, old, new, code string }{
		{"attack 8: upto", `"exact"`, `"upto"`, "unknown_scheme"},
		{"attack 8: batch-settlement", `"exact"`, `"batch-settlement"`, "unknown_scheme"},
		{"attack 8: auth-capture", `"exact"`, `"auth-capture"`, "unknown_scheme"},
		{"scheme in another case", `"exact"`, `"Exact"`, "unknown_scheme"},
		{"scheme is a number", `"exact"`, `7`, "unknown_scheme"},
		{"no scheme", `"scheme":"exact",`, ``, "unknown_scheme"},
		{"attack 8: permit2", `"version":"2"`, `"version":"2","assetTransferMethod":"permit2"`, "unknown_method"},
		{"case 29: erc7710", `"version":"2"`, `"version":"2","assetTransferMethod":"erc7710"`, "unknown_method"},
		{"case 29: foo", `"version":"2"`, `"version":"2","assetTransferMethod":"foo"`, "unknown_method"},
		{"method is an object", `"version":"2"`, `"version":"2","assetTransferMethod":{}`, "unknown_method"},
		{"method in another case", `"version":"2"`, `"version":"2","assetTransferMethod":"EIP3009"`, "unknown_method"},
		{"flow escrow", `"version":"2"`, `"version":"2","paymentFlow":"escrow"`, "unknown_flow"},
		{"flow foo", `"version":"2"`, `"version":"2","paymentFlow":"foo"`, "unknown_flow"},
		{"flow is a number", `"version":"2"`, `"version":"2","paymentFlow":1`, "unknown_flow"},
		{"network of version 1", `"eip155:84532"`, `"base-sepolia"`, "unknown_network"},
		{"network solana", `"eip155:84532"`, `"solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp"`, "unknown_network"},
		{"network with a leading zero", `"eip155:84532"`, `"eip155:084532"`, "unknown_network"},
		{"network with a space", `"eip155:84532"`, `" eip155:84532"`, "unknown_network"},
		{"network 0", `"eip155:84532"`, `"eip155:0"`, "unknown_network"},
		{"network above 2^64", `"eip155:84532"`, `"eip155:18446744073709636148"`, "unknown_network"},
		{"network is a number", `"eip155:84532"`, `84532`, "unknown_network"},
		{"a chain without tokens", `"eip155:84532"`, `"eip155:999"`, "unknown_asset"},
		{"attack 6: the token on another chain", `"eip155:84532"`, `"eip155:8453"`, "unknown_asset"},
		{"case 39, attack 5: unknown asset", `0x036CbD53842c5426634e7929541eC2318f3dCF7e`, `0x1111111111111111111111111111111111111111`, "unknown_asset"},
		{"asset by symbol", `"0x036CbD53842c5426634e7929541eC2318f3dCF7e"`, `"USDC"`, "bad_asset"},
		{"asset in fiat", `"0x036CbD53842c5426634e7929541eC2318f3dCF7e"`, `"USD"`, "bad_asset"},
		{"asset with a wrong checksum", `0x036CbD53842c5426634e7929541eC2318f3dCF7e`, `0x036cbD53842c5426634e7929541eC2318f3dCF7e`, "bad_checksum"},
		{"attack 6: another name", `"name":"USDC"`, `"name":"USD Coin"`, "domain_mismatch"},
		{"attack 6: another version", `"version":"2"`, `"version":"1"`, "domain_mismatch"},
		{"name with a look-alike", `"name":"USDC"`, `"name":"USDС"`, "domain_mismatch"},
		{"name is a number", `"name":"USDC"`, `"name":7`, "domain_mismatch"},
		{"version is a number", `"version":"2"`, `"version":2`, "domain_mismatch"},
		{"empty name", `"name":"USDC"`, `"name":""`, "domain_mismatch"},
		{"extra is text", `{"name":"USDC","version":"2"}`, `"USDC"`, "malformed"},
		{"extra is a list", `{"name":"USDC","version":"2"}`, `[]`, "malformed"},
		{"attack 91: zero", `"1000"`, `"0"`, "zero_amount"},
		{"no amount", `"amount":"1000",`, ``, "bad_amount"},
		{"the amount of version 1", `"amount"`, `"maxAmountRequired"`, "bad_amount"},
		{"payTo is a role", `"` + payee + `"`, `"merchant"`, "bad_payee"},
		{"no payTo", `"payTo":"` + payee + `",`, ``, "bad_payee"},
		{"payTo is null", `"` + payee + `"`, `null`, "bad_payee"},
		{"payTo without 0x", `"0x209693`, `"209693`, "bad_payee"},
		{"payTo with 0X", `"0x209693`, `"0X209693`, "bad_payee"},
		{"payTo with a space", payee, payee + ` `, "bad_payee"},
		{"payTo short", payee, payee[:41], "bad_payee"},
		{"payTo long", payee, payee + "0", "bad_payee"},
		{"attack 26: a near match in the checksum", payee, "0x209693bc6afc0C5328bA36FaF03C514EF312287C", "bad_checksum"},
		{"case 38, attack 26: the zero address", payee, "0x0000000000000000000000000000000000000000", "zero_payee"},
		{"attack 26: the burn address", payee, "0x000000000000000000000000000000000000dEaD", "burn_payee"},
		{"attack 26: the burn address in lower case", payee, "0x000000000000000000000000000000000000dead", "burn_payee"},
		{"attack 26: the token itself", payee, "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "token_payee"},
		{"case 33: timeout 0", `:60`, `:0`, "bad_timeout"},
		{"case 33: timeout negative", `:60`, `:-60`, "bad_timeout"},
		{"timeout as text", `:60`, `:"60"`, "bad_timeout"},
		{"timeout null", `:60`, `:null`, "bad_timeout"},
		{"timeout with an exponent", `:60`, `:6e1`, "bad_timeout"},
		{"timeout with a fraction", `:60`, `:60.5`, "bad_timeout"},
		{"timeout 0.0", `:60`, `:0.0`, "bad_timeout"},
		{"timeout of 9 s", `:60`, `:9`, "short_timeout"},
		{"timeout of 1 s", `:60`, `:1`, "short_timeout"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			bad := edit(t, R, tc.old, tc.new)
			resp, body := inHeader(v2(bad))
			if offers, err := rail(t).Offers(resp, body); len(offers) != 0 || code(err) != tc.code {
				t.Errorf("alone: %v, %v; want %s", offers, err, tc.code)
			}
			resp, body = inHeader(v2(bad, R))
			offers, err := rail(t).Offers(resp, body)
			var s *x402.SkippedError
			if len(offers) != 1 || !errors.As(err, &s) || len(s.Entries) != 1 || s.Entries[0].Index != 0 || !s.Has(tc.code) {
				t.Errorf("beside a good one: %v, %v; want one offer and %s", offers, err, tc.code)
			}
		})
	}
}

// What is odd and harmless is accepted.
func TestAccepted(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, old, new string
		validity       time.Duration
	}{
		{"as it is", ``, ``, time.Minute},
		{"no extra", `,"extra":{"name":"USDC","version":"2"}`, ``, time.Minute},
		{"extra null", `{"name":"USDC","version":"2"}`, `null`, time.Minute},
		{"extra empty", `{"name":"USDC","version":"2"}`, `{}`, time.Minute},
		{"name alone", `,"version":"2"`, ``, time.Minute},
		{"method named", `"version":"2"`, `"version":"2","assetTransferMethod":"eip3009"`, time.Minute},
		{"flow named", `"version":"2"`, `"version":"2","paymentFlow":"authorization"`, time.Minute},
		{"flow upfront", `"version":"2"`, `"version":"2","paymentFlow":"upfront"`, time.Minute},
		{"attack 4: decimals of the seller's", `"version":"2"`, `"version":"2","decimals":18`, time.Minute},
		{"unknown members", `"scheme"`, `"x":[1,{"y":null}],"scheme"`, time.Minute},
		{"payTo in lower case", payee, strings.ToLower(payee), time.Minute},
		{"payTo in upper case", payee, "0x" + strings.ToUpper(payee[2:]), time.Minute},
		{"asset in lower case", `0x036CbD53842c5426634e7929541eC2318f3dCF7e`, `0x036cbd53842c5426634e7929541ec2318f3dcf7e`, time.Minute},
		{"escapes", `"exact"`, `"\u0065xact"`, time.Minute},
		{"timeout as a float", `:60`, `:60.0`, time.Minute},
		{"timeout of 10 s", `:60`, `:10`, 10 * time.Second},
		{"timeout absent", `,"maxTimeoutSeconds":60`, ``, 0},
		{"attack 11: ten years", `:60`, `:315360000`, 315360000 * time.Second},
		{"timeout beyond counting", `:60`, `:99999999999999999999999`, 100 * 365 * 24 * time.Hour},
		{"attack 1: all of 2^256-1", `"1000"`, `"115792089237316195423570985008687907853269984665640564039457584007913129639935"`, time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			entry := R
			if tc.old != "" {
				entry = edit(t, R, tc.old, tc.new)
			}
			if o := offer(t, v2(entry)); o.Validity != tc.validity || o.Asset.Decimals != 6 || o.Asset.Name != "USDC" {
				t.Errorf("got %+v", o)
			}
		})
	}
}

// Attacks 2 and 3, case 38: one spelling of an amount is accepted, in both
// versions.
func TestAmountSpellings(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		`"+5"`, `"-0"`, `"-5"`, `"007"`, `"00"`, `"0x10"`, `"1_000"`, `"1e3"`, `" 5"`, `"5 "`, `""`, `"５"`, `"5.0"`, `"5."`, `".5"`, `"1,000"`,
		`"1E3"`, `"+0"`, `"0b1"`, `"0o7"`, `"NaN"`, `"Infinity"`, `"-Infinity"`, `"inf"`, `"1e-30"`, `"5\n"`, `"\t5"`, `"5\u0000"`, `"٥"`, `"1000n"`,
		`"$5"`, `"½"`, `"V"`, `"five"`, `"null"`, `"115792089237316195423570985008687907853269984665640564039457584007913129639936"`,
		`"` + strings.Repeat("9", 79) + `"`, `"` + strings.Repeat("1", 10000) + `"`, `"0001000"`, `"+1000"`, `"1000.0"`,
		`5`, `5.0`, `1e3`, `-5`, `0`, `1e400`, `true`, `null`, `[]`, `["5"]`, `{}`, `{"value":"5"}`,
	} {
		for version, doc := range map[int]string{2: v2(edit(t, R, `"1000"`, s)), 1: v1(edit(t, R1, `"1000"`, s))} {
			resp, body := inBody(doc)
			offers, err := rail(t).Offers(resp, body)
			if len(offers) != 0 || code(err) != "bad_amount" && code(err) != "zero_amount" {
				t.Errorf("version %d, amount %.40s: %v, %v", version, s, offers, err)
			}
		}
	}
	// Not JSON at all: the whole document is refused.
	for _, s := range []string{`NaN`, `Infinity`, `+5`, `007`, `0x10`, `.5`, `'5'`, `5n`} {
		resp, body := inBody(v2(edit(t, R, `"1000"`, s)))
		if offers, err := rail(t).Offers(resp, body); len(offers) != 0 || code(err) != "unreadable_body" {
			t.Errorf("amount %s: %v, %v", s, offers, err)
		}
	}
}

// Every network of version 1 that has a token in the table, and CAIP-2 in its
// place.
func TestNetworksOfVersion1(t *testing.T) {
	t.Parallel()
	names := map[string]payment.ChainID{
		"base": "eip155:8453", "base-sepolia": "eip155:84532", "ethereum": "eip155:1", "avalanche": "eip155:43114", "polygon": "eip155:137",
		"sei": "eip155:1329", "sei-testnet": "eip155:1328", "monad": "eip155:143", "stable": "eip155:988", "stable-testnet": "eip155:2201",
		"celo": "eip155:42220", "flare": "eip155:14",
	}
	for name, chain := range names {
		a := payment.KnownAssets().On(chain)[0]
		for _, network := range []string{name, string(chain)} {
			entry := strings.Replace(R1, `"base-sepolia"`, `"`+network+`"`, 1)
			entry = strings.Replace(entry, `0x036CbD53842c5426634e7929541eC2318f3dCF7e`, a.Address.String(), 1)
			entry = edit(t, entry, `"extra":{"name":"USDC","version":"2"}`, `"extra":{}`)
			o := offer(t, v1(entry))
			if o.Asset != a || o.Network != network || !strings.Contains(document(t, authorize(t, grant(t, o))), `"network":"`+network+`"`) {
				t.Errorf("%s: %+v", network, o)
			}
		}
	}
	for _, network := range []string{"Base", "BASE", "base ", "base_sepolia", "mainnet", "solana", "tempo", "arbitrum", "8453", "eip155:08453", ""} {
		resp, body := inBody(v1(edit(t, R1, `"base-sepolia"`, `"`+network+`"`)))
		if offers, err := rail(t).Offers(resp, body); len(offers) != 0 || code(err) != "unknown_network" {
			t.Errorf("%q: %v, %v", network, offers, err)
		}
	}
}

// Case 25: a rail for some chains offers nothing on others.
func TestChainsOfTheConfig(t *testing.T) {
	t.Parallel()
	r, err := x402.New(x402.Config{Chains: []payment.ChainID{payment.Base}})
	if err != nil {
		t.Fatal(err)
	}
	resp, body := inHeader(v2(R))
	if offers, err := r.Offers(resp, body); len(offers) != 0 || code(err) != "chain_not_configured" {
		t.Errorf("%v, %v", offers, err)
	}
	if _, err := r.Authorize(t.Context(), grant(t, offer(t, v2(R))), key(t)); !errors.Is(err, x402.ErrGrant) {
		t.Errorf("Authorize: %v", err)
	}
	for _, c := range []payment.ChainID{"base", "eip155:999", payment.Tempo, "eip155:4326", ""} {
		if _, err := x402.New(x402.Config{Chains: []payment.ChainID{c}}); err == nil || !strings.Contains(err.Error(), "Chains[0]") {
			t.Errorf("New with chain %q: %v", c, err)
		}
	}
	if rail(t).Name() != "x402" {
		t.Error("Name")
	}
}

// Case 27, attack 4: a token that EIP-3009 cannot move is skipped, one of the
// caller's own is taken with the caller's decimals.
func TestAssets(t *testing.T) {
	t.Parallel()
	mega := edit(t, edit(t, R, "eip155:84532", "eip155:4326"), "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "0xFAfDdbb3FC7688494971a79cc65DCa3EF82079E7")
	mega = edit(t, mega, `"1000"`, `"1000000000000000000"`)
	resp, body := inHeader(v2(mega))
	if offers, err := rail(t).Offers(resp, body); len(offers) != 0 || code(err) != "no_authorization" {
		t.Errorf("MegaUSD: %v, %v", offers, err)
	}
	own := payment.Asset{Chain: payment.BaseSepolia, Address: payment.Address{0: 1, 19: 2}, Symbol: "OWN", Decimals: 18, Name: "Own Dollar", Version: "9"}
	assets, err := payment.KnownAssets().With(own)
	if err != nil {
		t.Fatal(err)
	}
	r, err := x402.New(x402.Config{Assets: assets})
	if err != nil {
		t.Fatal(err)
	}
	entry := edit(t, edit(t, R, "0x036CbD53842c5426634e7929541eC2318f3dCF7e", own.Address.String()), `"name":"USDC","version":"2"`, `"name":"Own Dollar","version":"9"`)
	resp, body = inHeader(v2(edit(t, entry, `"1000"`, `"1000000000000000000"`)))
	offers, err := r.Offers(resp, body)
	if err != nil || len(offers) != 1 || offers[0].Asset != own {
		t.Fatalf("own: %v, %v", offers, err)
	}
	if usd, ok := offers[0].Asset.Value(offers[0].Amount); usd != payment.Dollar || !ok {
		t.Errorf("own: worth %v", usd)
	}
}

// Attack 20: the order of a seller's entries changes nothing.
func TestPermutations(t *testing.T) {
	t.Parallel()
	base := edit(t, edit(t, edit(t, R, "eip155:84532", "eip155:8453"), "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"), `"USDC"`, `"USD Coin"`)
	upfront := edit(t, R, `"version":"2"`, `"version":"2","paymentFlow":"upfront"`)
	entries := []string{
		R, base, upfront, edit(t, R, `"1000"`, `"999"`), edit(t, R, `"exact"`, `"upto"`), edit(t, R, payee, "0x1111111111111111111111111111111111111111"),
		edit(t, R, `"1000"`, `"01000"`), `7`, edit(t, upfront, `"1000"`, `"1"`),
	}
	var want string
	for i := range 100 {
		resp, body := inHeader(v2(entries...))
		offers, err := rail(t).Offers(resp, body)
		var s *x402.SkippedError
		if len(offers) != 6 || !errors.As(err, &s) || len(s.Entries) != 3 {
			t.Fatalf("%d offers, %v", len(offers), err)
		}
		got := fmt.Sprintf("%+v", offers)
		if i == 0 {
			want = got
			for j, o := range offers {
				if up := strings.Contains(string(o.Echo), "upfront"); up != (j >= 4) {
					t.Errorf("offer %d: upfront %v; those that settle first come last", j, up)
				}
			}
		}
		if got != want {
			t.Fatalf("order %d: got %s, want %s", i, got, want)
		}
		j, k := i%len(entries), (i*i+7*i+3)%len(entries)
		entries[j], entries[k] = entries[k], entries[j]
	}
}

// Offers share nothing with one another, with the response or with later calls.
func TestOffersAreTheCallers(t *testing.T) {
	t.Parallel()
	r := rail(t)
	resp, body := inHeader(v2(R, edit(t, R, `"1000"`, `"2000"`)))
	first, err := r.Offers(resp, body)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%+v", first[1])
	first[0].Recipients = append(first[0].Recipients, payment.Recipient{Amount: payment.UnitsOf(9)})
	first[0].Recipients[0].Amount = payment.UnitsOf(9)
	clear(first[0].Echo)
	if got := fmt.Sprintf("%+v", first[1]); got != want {
		t.Errorf("changing one offer changed the other: %s, want %s", got, want)
	}
	again, err := r.Offers(resp, body)
	if err != nil || again[0].Recipients[0].Amount != payment.UnitsOf(1000) || again[0].Echo[0] != '2' {
		t.Errorf("changing an offer changed the next: %+v, %v", again, err)
	}
}

// Attack 25, case 50: what a seller wants echoed is bounded for each entry.
func TestEchoBound(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", payment.MaxEcho)
	resp, body := inHeader(v2(edit(t, R, `"version":"2"`, `"version":"2","pad":"`+big+`"`), R))
	offers, err := rail(t).Offers(resp, body)
	if len(offers) != 1 || code(err) != "echo_too_large" {
		t.Errorf("a big entry: %d offers, %v", len(offers), err)
	}
	resp, body = inHeader(`{"x402Version":2,"accepts":[` + R + `],"extensions":{"a":{"info":{"x":"` + big + `"}}}}`)
	if offers, err := rail(t).Offers(resp, body); len(offers) != 0 || code(err) != "echo_too_large" {
		t.Errorf("big extensions: %d offers, %v", len(offers), err)
	}
	fits := strings.Repeat("x", payment.MaxEcho-1024)
	o := offer(t, `{"x402Version":2,"accepts":[`+R+`],"extensions":{"a":{"info":{"x":"`+fits+`"}},"payment-identifier":{"info":{"required":true}}}}`)
	if len(o.Echo) > payment.MaxEcho {
		t.Errorf("an echo of %d bytes", len(o.Echo))
	}
	g := grant(t, o)
	if _, err := rail(t).Decode(authorize(t, g), g); err != nil {
		t.Errorf("a big echo is not read back: %v", err)
	}
}

// Seller's words are cleaned where they are shown.
func TestWordsAreClean(t *testing.T) {
	t.Parallel()
	doc := `{"x402Version":2,"resource":{"url":"https://feed.example/\u202ea\u0000","description":"free\u200b\u001b[31m\nof charge\ud83d\ude00` + strings.Repeat("x", 4000) + `"},"accepts":[` + R + `]}`
	o := offer(t, doc)
	if o.Resource != "https://feed.example/a" || !strings.HasPrefix(o.Description, "free[31m of charge\U0001f600x") || len(o.Description) > 512 {
		t.Errorf("resource %q, description %q", o.Resource, o.Description)
	}
	if !strings.Contains(string(o.Echo), `\u202e`) {
		t.Error("the echo is not verbatim")
	}
	_, err := rail(t).Offers(inHeader(v2(edit(t, R, `"exact"`, `"\u202e\u001b[31mevil`+strings.Repeat("y", 300)+`"`))))
	if s := err.Error(); strings.ContainsAny(s, "\x1b\u202e") || len(s) > 200 {
		t.Errorf("the reason holds %q", s)
	}
}

func TestOnlyA402IsRead(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 302, 400, 401, 403, 412, 500} {
		resp := response(status, v1(R1), "PAYMENT-REQUIRED", b64(v2(R)))
		if offers, err := rail(t).Offers(resp, []byte(v1(R1))); len(offers) != 0 || !errors.Is(err, payment.ErrNotMine) {
			t.Errorf("status %d: %v, %v", status, offers, err)
		}
	}
}

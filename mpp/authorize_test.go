package mpp_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/canopy-go/canopy/internal/eip3009"
	"github.com/canopy-go/canopy/internal/mppserver"
	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/mpp"
	"github.com/canopy-go/canopy/payment"
)

// wireTx is a transaction as go-ethereum's RLP reads it.
type wireTx struct {
	ChainID, Tip, Price, Gas uint64
	Calls                    []struct {
		To    []byte
		Value []byte
		Data  []byte
	}
	Access                  []rlp.RawValue
	NonceKey                []byte
	Nonce                   uint64
	ValidBefore, ValidAfter uint64
	FeeToken, FeePayer      []byte
	Authorizations          []rlp.RawValue
	Signature               []byte
}

func readTx(t *testing.T, hexed string) (kind byte, tx wireTx, raw []byte) {
	t.Helper()
	raw, err := hex.DecodeString(strings.TrimPrefix(hexed, "0x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := rlp.DecodeBytes(raw[1:], &tx); err != nil {
		t.Fatal(err)
	}
	return raw[0], tx, raw
}

// A charge is paid by a transaction that says what the terms say, in the lane, to
// the second, with the memo of realm and challenge, and the fee in the token.
func TestPull(t *testing.T) {
	t.Parallel()
	r, c := rail(t), charge(t, request())
	o := offerOf(t, r, c)
	if o.Scheme != mpp.SchemeTempo || o.Slot != payment.SlotLane || o.FeeBound != 30_000 || o.Amount != payment.UnitsOf(10_000) ||
		o.ChallengeID != c.ID || o.Realm != c.Realm || !o.Expires.Equal(noon.Add(5*time.Minute)) || !o.Resend {
		t.Errorf("offer %+v", o)
	}
	g := grant(t, o)
	a := authorize(t, r, g)
	got, payload := credential(t, a)
	if got.Challenge != c || !got.Challenge.Issued([]byte(secret)) || payload["type"] != "transaction" || a.Header != "Authorization" {
		t.Errorf("credential %+v in %s", got, a.Header)
	}
	if want := "did:pkh:eip155:42431:" + g.Payer.String(); got.Source != want {
		t.Errorf("source %s, want %s", got.Source, want)
	}
	kind, tx, raw := readTx(t, payload["signature"])
	currency, _ := payment.ParseAddressLoose(path)
	if kind != 0x76 || tx.ChainID != 42431 || tx.Gas != 1_200_000 || tx.Price != 25e9 || tx.Tip != 1e9 || len(tx.Access)+len(tx.Authorizations) > 0 ||
		!bytes.Equal(tx.NonceKey, g.Slot.NonceID[:]) || tx.Nonce != 3 || tx.ValidBefore != uint64(g.ValidBefore.Unix()) || tx.ValidAfter != 0 ||
		!bytes.Equal(tx.FeeToken, currency[:]) || len(tx.FeePayer) > 0 || len(tx.Calls) != 1 {
		t.Fatalf("%#x %+v", kind, tx)
	}
	memo := tempo.Attribution(c.Realm, "", c.ID)
	data := "95777d59" + strings.Repeat("0", 24) + seller[2:] + strings.Repeat("0", 60) + "2710" + hex.EncodeToString(memo[:])
	if hex.EncodeToString(tx.Calls[0].Data) != data || !bytes.Equal(tx.Calls[0].To, currency[:]) || len(tx.Calls[0].Value) > 0 {
		t.Errorf("call %x to %x", tx.Calls[0].Data, tx.Calls[0].To)
	}
	if hash := hex.EncodeToString(crypto.Keccak256(raw)); a.TxHash != "0x"+hash {
		t.Errorf("hash %s, want %s", a.TxHash, hash)
	}
	read, err := tempo.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if from, err := read.Sender(); err != nil || from != g.Payer {
		t.Errorf("sender %s, %v", from, err)
	}
	if b := authorize(t, r, again(g)); b.Value != a.Value || b.TxHash != a.TxHash {
		t.Error("the same grant gave other bytes")
	}
	decodes(t, r, a, g)
}

// decodes holds what Decode reads in a to the terms of g.
func decodes(t *testing.T, r *mpp.Rail, a payment.Authorization, g payment.Grant) {
	t.Helper()
	g.Recover = true
	terms, err := r.Decode(a, g)
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	if terms.Hash() != g.Terms.Hash() {
		t.Errorf("Decode read %+v, want %+v", terms, g.Terms)
	}
}

func splits(q, details object) {
	details["splits"] = []object{
		{"amount": "1500", "recipient": other, "memo": "0x" + strings.Repeat("ab", 32)},
		{"amount": "500", "recipient": "0x90f79bf6eb2c4f870365e785982e1f101e93b906"},
	}
}

func TestSplits(t *testing.T) {
	t.Parallel()
	r := rail(t)
	o := offerOf(t, r, charge(t, request(splits)))
	if len(o.Recipients) != 3 || o.Recipients[0].Amount != payment.UnitsOf(8000) || o.Recipients[1].Amount != payment.UnitsOf(1500) || o.FeeBound != 45_000 {
		t.Fatalf("offer %+v", o)
	}
	g := grant(t, o)
	a := authorize(t, r, g)
	_, payload := credential(t, a)
	_, tx, _ := readTx(t, payload["signature"])
	if len(tx.Calls) != 3 || len(tx.Calls[1].Data) != 100 || !bytes.HasSuffix(tx.Calls[1].Data, bytes.Repeat([]byte{0xab}, 32)) || len(tx.Calls[2].Data) != 68 || tx.Gas != 1_800_000 {
		t.Errorf("%+v", tx)
	}
	decodes(t, r, a, g)
}

func sponsored(q, details object) { details["feePayer"] = true }

// A sponsored charge costs no fee, is on the expiring nonce, and is handed over
// with the sender in the place of the fee payer.
func TestSponsored(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		envelope mpp.Envelope
		kind     byte
		payer    int
	}{{mpp.EnvelopeSender, 0x78, 20}, {mpp.EnvelopeTransaction, 0x76, 1}} {
		r := rail(t, func(c *mpp.Config) { c.Envelope = tc.envelope })
		c := charge(t, request(sponsored))
		o := offerOf(t, r, c)
		if o.FeeBound != 0 || o.Slot != payment.SlotExpiring || o.Mark != tempo.Attribution(c.Realm, "", c.ID) {
			t.Fatalf("offer %+v", o)
		}
		g := grant(t, o)
		a := authorize(t, r, g)
		_, payload := credential(t, a)
		kind, tx, _ := readTx(t, payload["signature"])
		if kind != tc.kind || !bytes.Equal(tx.NonceKey, tempo.ExpiringKey[:]) || tx.Nonce != 0 || len(tx.FeeToken) > 0 || len(tx.FeePayer) != tc.payer || a.TxHash != "" ||
			tx.Gas > 2_000_000 || tx.Price > 100e9 || tx.Tip > 10e9 || tx.Gas*tx.Price > 5e16 {
			t.Errorf("%#x %+v", kind, tx)
		}
		decodes(t, r, a, g)
	}
}

func TestProof(t *testing.T) {
	t.Parallel()
	zero := request(func(q, _ object) { q["amount"] = "0" })
	r, c := rail(t), charge(t, zero)
	o := offerOf(t, r, c)
	if o.Scheme != mpp.SchemeProof || o.Slot != payment.SlotProof || o.FeeBound != 0 || !o.Amount.IsZero() {
		t.Fatalf("offer %+v", o)
	}
	g := grant(t, o)
	a := authorize(t, r, g)
	got, payload := credential(t, a)
	sig, err := hex.DecodeString(payload["signature"][2:])
	if err != nil || payload["type"] != "proof" || got.Source == "" || len(a.Raw) > 0 {
		t.Fatalf("%+v, %v", payload, err)
	}
	from, err := eip3009.Recover(tempo.ProofDigest(42431, g.Payer, c.ID, c.Realm), sig)
	if err != nil || payment.Address(from) != g.Payer {
		t.Errorf("the proof is of %x, %v", from, err)
	}
	decodes(t, r, a, g)

	// Attack 18: a host gets no proof for another.
	relayed := charge(t, zero, func(c *mppserver.Challenge) { c.Realm = "bank.example" })
	if offers, err := r.Offers(challenged(relayed.Line()), nil); len(offers) > 0 || !has(err, "proof_for_another") {
		t.Errorf("a proof for another: %v, %v", offers, err)
	}
	unknown := challenged(c.Line())
	unknown.Request = nil
	if offers, err := r.Offers(unknown, nil); len(offers) > 0 || !has(err, "proof_for_another") {
		t.Errorf("a proof for who knows whom: %v, %v", offers, err)
	}
	offerOf(t, rail(t, func(c *mpp.Config) { c.ProofRealms = []string{"bank.example"} }), relayed)
	if offers, err := rail(t, func(c *mpp.Config) { c.NoProofs = true }).Offers(challenged(c.Line()), nil); len(offers) > 0 || !has(err, "no_proofs") || !strings.Contains(err.Error(), "(proofs in [mpp], mpp.Config.NoProofs)") {
		t.Errorf("with NoProofs: %v, %v", offers, err)
	}
}

func has(err error, code string) bool {
	var s *mpp.SkippedError
	return errors.As(err, &s) && s.Has(code)
}

func evm(c *mppserver.Challenge) { c.Method = "evm" }

func onBase(q, details object) {
	q["currency"], details["chainId"] = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", 8453
}

func TestEVM(t *testing.T) {
	t.Parallel()
	r, c := rail(t), charge(t, request(onBase), evm)
	o := offerOf(t, r, c)
	want := crypto.Keccak256Hash([]byte(c.ID + c.Realm))
	if o.Scheme != mpp.SchemeEVM || o.Slot != payment.SlotEVM || o.Mark != want || o.FeeBound != 0 {
		t.Fatalf("offer %+v", o)
	}
	g := grant(t, o)
	a := authorize(t, r, g)
	_, p := credential(t, a)
	if p["type"] != "authorization" || p["value"] != "10000" || p["validAfter"] != "0" || p["nonce"] != want.Hex() || !strings.EqualFold(p["to"], seller) {
		t.Errorf("payload %v", p)
	}
	decodes(t, r, a, g)
}

// node is one that never has anything.
type node struct{ mpp.Node }

func withNode(c *mpp.Config) { c.Nodes = map[payment.ChainID]mpp.Node{payment.TempoTest: node{}} }

func TestPush(t *testing.T) {
	t.Parallel()
	c := charge(t, request(func(_, d object) { d["supportedModes"] = []string{"push"} }))
	if offers, err := rail(t).Offers(challenged(c.Line()), nil); len(offers) > 0 || !has(err, "no_node") {
		t.Errorf("without a node: %v, %v", offers, err)
	}
	r := rail(t, withNode)
	g := grant(t, offerOf(t, r, c))
	a := authorize(t, r, g)
	_, payload := credential(t, a)
	if payload["type"] != "hash" || payload["hash"] != a.TxHash || len(a.Raw) == 0 {
		t.Errorf("%v, hash %s", payload, a.TxHash)
	}
	decodes(t, r, a, g)
}

func TestTransfer(t *testing.T) {
	t.Parallel()
	to, _ := payment.ParseAddressLoose(other)
	for _, tc := range []struct{ memo, want string }{
		{"", ""}, {"invoice 17", hex.EncodeToString([]byte("invoice 17")) + strings.Repeat("00", 22)}, {"0x" + strings.Repeat("cd", 32), strings.Repeat("cd", 32)},
	} {
		r := rail(t, withNode)
		o, err := r.Transfer(t.Context(), payment.Transfer{To: to, Amount: payment.Dollar, Chain: payment.TempoTest, Memo: tc.memo})
		if err != nil {
			t.Fatal(err)
		}
		g := grantWith(t, o, tc.memo)
		if _, err := r.Authorize(t.Context(), grantWith(t, o, tc.memo+"x"), key(t)); !errors.Is(err, mpp.ErrGrant) {
			t.Errorf("memo %q, and the terms state another: %v", tc.memo, err)
		}
		a := authorize(t, r, g)
		_, tx, _ := readTx(t, hex.EncodeToString(a.Raw))
		if data := hex.EncodeToString(tx.Calls[0].Data); len(data) != 200 || !strings.HasSuffix(data, tc.want) || a.Header+a.Value != "" {
			t.Errorf("memo %q: call %s", tc.memo, data)
		}
		decodes(t, r, a, g)
	}
	r := rail(t)
	for field, tr := range map[string]payment.Transfer{
		"Amount": {To: to, Chain: payment.TempoTest},
		"To":     {To: payment.Address{0xfe, 0xec}, Amount: payment.Dollar, Chain: payment.TempoTest},
	} {
		var wrong *payment.TransferError
		if o, err := r.Transfer(t.Context(), tr); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %+v, %v", field, o, err)
		}
	}
	if _, err := r.Transfer(t.Context(), payment.Transfer{To: to, Amount: payment.Dollar, Chain: payment.Base}); !errors.Is(err, payment.ErrNotMine) {
		t.Errorf("on base: %v", err)
	}
	if err := r.Submits(payment.TempoTest); !errors.Is(err, mpp.ErrNoNode) {
		t.Errorf("Submits without a node: %v", err)
	}
}

// A memo is 32 bytes in hex or text that is seen, and nothing between the two.
func TestMemo(t *testing.T) {
	t.Parallel()
	to, _ := payment.ParseAddressLoose(other)
	ask := func(memo string) (payment.Offer, error) {
		return rail(t).Transfer(t.Context(), payment.Transfer{To: to, Amount: payment.Dollar, Chain: payment.TempoTest, Memo: memo})
	}
	for name, memo := range map[string]string{
		"half-typed hex": "0x1234", "no digits": "0x", "one digit short": "0x" + strings.Repeat("a", 63), "one too many": "0x" + strings.Repeat("a", 65),
		"no hex": "0x" + strings.Repeat("zz", 32), "text that begins so": "0x is hex", "capital X": "0X" + strings.Repeat("ab", 32), "a little of it": "0X12",
		"long": strings.Repeat("m", 33), "long in bytes": strings.Repeat("é", 17), "hex without 0x": strings.Repeat("ab", 32),
		"not UTF-8": "a\xffb", "cut UTF-8": "caf\xc3", "NUL": "a\x00", "a line break": "a\nb", "escape": "\x1b[31m", "delete": "a\x7f", "C1": "a\u0085b",
		"bidirectional": "a\u202eb", "zero width": "a\u200bb", "line separator": "a\u2028b", "no-break space": "a\u00a0b", "private use": "a\ue000",
	} {
		var wrong *payment.TransferError
		o, err := ask(memo)
		if !errors.As(err, &wrong) || wrong.Field != "Memo" || len(o.Echo) > 0 {
			t.Errorf("%s: %q: %+v, %v", name, memo, o, err)
		} else if says := err.Error(); !strings.Contains(says, "0x and 64 hex digits") || !strings.Contains(says, "text of at most 32 bytes") {
			t.Errorf("%s: the error does not tell the forms: %s", name, says)
		}
	}
	for _, memo := range []string{"invoice 17", " a  b ", "0", "x", "0 x", strings.Repeat("m", 32), "café 東京 №7", "0x" + strings.Repeat("Cd", 32), "\ufffd"} {
		o, err := ask(memo)
		if err != nil {
			t.Errorf("%q: %v", memo, err)
			continue
		}
		// The terms state it as its caller did.
		if g := grantWith(t, o, memo); g.Terms.Target != memo {
			t.Errorf("the terms state %q, not %q", g.Terms.Target, memo)
		} else {
			authorize(t, rail(t), g)
		}
	}
}

// A transfer on record keeps its memo, also one that is taken no more: what is in
// doubt is asked for again with the same bytes.
func TestMemoOnRecord(t *testing.T) {
	t.Parallel()
	to, _ := payment.ParseAddressLoose(other)
	o, err := rail(t).Transfer(t.Context(), payment.Transfer{To: to, Amount: payment.Dollar, Chain: payment.TempoTest, Memo: "abcdef"})
	if err != nil {
		t.Fatal(err)
	}
	o.Echo = bytes.Replace(o.Echo, []byte(hex.EncodeToString([]byte("abcdef"))), []byte(hex.EncodeToString([]byte("0x1234"))), 1)
	r := rail(t)
	g := grantWith(t, o, "0x1234")
	a := authorize(t, r, g)
	_, tx, _ := readTx(t, hex.EncodeToString(a.Raw))
	if data := hex.EncodeToString(tx.Calls[0].Data); !strings.HasSuffix(data, hex.EncodeToString([]byte("0x1234"))+strings.Repeat("00", 26)) {
		t.Errorf("call %s", data)
	}
	decodes(t, r, a, g)
}

// Every field of a grant is held to the others: what does not fit is not signed.
func TestAuthorizeRefuses(t *testing.T) {
	t.Parallel()
	r := rail(t, withNode)
	edits := map[string]func(*payment.Grant){
		"another rail":    func(g *payment.Grant) { g.Terms.Rail = "x402" },
		"another scheme":  func(g *payment.Grant) { g.Terms.Scheme = "exact" },
		"another version": func(g *payment.Grant) { g.Version = 2 },
		"no echo":         func(g *payment.Grant) { g.Echo = nil },
		"a cut echo":      func(g *payment.Grant) { g.Echo = g.Echo[:8] },
		"an unknown mode": func(g *payment.Grant) { g.Echo = append([]byte("x"), g.Echo[1:]...) },
		"unknown token":   func(g *payment.Grant) { g.Terms.Asset.Address = payment.Address{9} },
		"other decimals":  func(g *payment.Grant) { g.Terms.Asset.Decimals = 18 },
		"no payer":        func(g *payment.Grant) { g.Payer = payment.Address{} },
		"zero amount": func(g *payment.Grant) {
			if g.Terms.Amount.IsZero() {
				g.Terms.Amount = payment.UnitsOf(1)
			} else {
				g.Terms.Amount = payment.Units{}
			}
		},
		"another kind of slot": func(g *payment.Grant) { g.Slot.Kind = payment.SlotNone },
		"another's slot":       func(g *payment.Grant) { g.Slot.From, g.Slot.Payment = payment.Address{3}, "x" },
		"half a second":        func(g *payment.Grant) { g.ValidBefore = g.ValidBefore.Add(time.Second / 2) },
		"no validity":          func(g *payment.Grant) { g.ValidBefore = time.Time{} },
		"another fee":          func(g *payment.Grant) { g.Terms.FeeBound++ },
		"more recipients": func(g *payment.Grant) {
			g.Terms.Recipients = append(slices.Clone(g.Terms.Recipients), payment.Recipient{Address: payment.Address{5}})
		},
		"nobody":    func(g *payment.Grant) { g.Terms.Recipients = []payment.Recipient{{Amount: g.Terms.Amount}} },
		"no permit": func(g *payment.Grant) { g.Permit = payment.Permit{} },
		"a permit of another slot": func(g *payment.Grant) {
			was := g.Slot
			g.Slot = payment.Slot{Kind: payment.SlotProof, Payment: "other"}
			*g = again(*g)
			g.Slot = was
		},
	}
	for kind, c := range kinds(t) {
		o := offerOf(t, r, c)
		authorize(t, r, grant(t, o)) // the grant itself is fine
		for name, edit := range edits {
			g := grant(t, o)
			edit(&g)
			if a, err := r.Authorize(t.Context(), g, key(t)); err == nil {
				t.Errorf("%s, %s: signed %v", kind, name, a)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Authorize(ctx, grant(t, o), key(t)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, after cancel: %v", kind, err)
		}
	}
}

// kinds are challenges of every kind that is paid.
func kinds(t testing.TB) map[string]mppserver.Challenge {
	return map[string]mppserver.Challenge{
		"pull":      charge(t, request()),
		"splits":    charge(t, request(splits)),
		"sponsored": charge(t, request(sponsored)),
		"proof":     charge(t, request(func(q, _ object) { q["amount"] = "0" })),
		"push":      charge(t, request(func(_, d object) { d["supportedModes"] = []string{"push"} })),
		"evm":       charge(t, request(onBase), evm),
		"decorated": charge(t, request(func(q, _ object) { q["externalId"], q["description"] = "x", "<&>" }), func(c *mppserver.Challenge) {
			c.Opaque, c.Header, c.Description, c.Realm = b64(`{"k":"v"}`), "Payment-Authorization", "Café — 日本", "Some realm, with Payment in it"
		}),
		"own memo": charge(t, request(func(_, d object) { d["memo"] = "0x" + strings.Repeat("17", 32) })),
	}
}

// Attack 15 and invariant I6: whatever is changed in an authorization, Decode
// does not take it for the grant's.
func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	r := rail(t, withNode)
	for kind, c := range kinds(t) {
		g := grant(t, offerOf(t, r, c))
		a := authorize(t, r, g)
		decodes(t, r, a, g)
		refused := func(name string, b payment.Authorization) {
			t.Helper()
			g := g
			g.Recover = true
			if terms, err := r.Decode(b, g); err == nil && terms.Hash() == g.Terms.Hash() {
				t.Errorf("%s: %s was taken", kind, name)
			}
		}
		for name, edit := range map[string]func(*payment.Authorization){
			"another header":   func(b *payment.Authorization) { b.Header = "X-Payment" },
			"another slot":     func(b *payment.Authorization) { b.Slot.Nonce++ },
			"another validity": func(b *payment.Authorization) { b.ValidBefore = b.ValidBefore.Add(time.Second) },
			"another hash":     func(b *payment.Authorization) { b.TxHash += "0" },
			"no credential":    func(b *payment.Authorization) { b.Value = "" },
			"extra bytes":      func(b *payment.Authorization) { b.Raw = append(slices.Clone(b.Raw), 0) },
		} {
			b := a
			edit(&b)
			refused(name, b)
		}
		// Every character of the credential, and every byte of what is broadcast.
		for i := len("Payment "); i < len(a.Value); i += 3 {
			b := a
			b.Value = a.Value[:i] + string(a.Value[i]^1) + a.Value[i+1:]
			refused("a changed credential", b)
		}
		for i := range a.Raw {
			b := a
			b.Raw = slices.Clone(a.Raw)
			b.Raw[i] ^= 1
			refused("a changed transaction", b)
		}
	}
}

// A builder that does something else is found out: each of these is signed by the
// right key over a transaction that differs in one field.
func TestDecodeReadsTheTransaction(t *testing.T) {
	t.Parallel()
	r := rail(t, withNode)
	o, err := r.Transfer(t.Context(), payment.Transfer{To: payment.Address{4}, Amount: payment.Dollar, Chain: payment.TempoTest})
	if err != nil {
		t.Fatal(err)
	}
	g := grant(t, o)
	good := authorize(t, r, g)
	stranger := payment.Address{0xbb}
	for name, edit := range map[string]func(*tempo.Transaction){
		"chain":        func(x *tempo.Transaction) { x.ChainID = 4217 },
		"tip":          func(x *tempo.Transaction) { x.MaxPriorityFeePerGas++ },
		"price":        func(x *tempo.Transaction) { x.MaxFeePerGas *= 1_000_000 },
		"gas":          func(x *tempo.Transaction) { x.Gas++ },
		"lane":         func(x *tempo.Transaction) { x.NonceKey[3]++ },
		"nonce":        func(x *tempo.Transaction) { x.Nonce++ },
		"no end":       func(x *tempo.Transaction) { x.ValidBefore = 0 },
		"a later end":  func(x *tempo.Transaction) { x.ValidBefore++ },
		"a beginning":  func(x *tempo.Transaction) { x.ValidAfter = 1 },
		"fee token":    func(x *tempo.Transaction) { x.FeeToken = stranger },
		"no fee token": func(x *tempo.Transaction) { x.FeeToken = payment.Address{} },
		"access list":  func(x *tempo.Transaction) { x.AccessList = []tempo.Access{{Address: stranger}} },
		"delegation":   func(x *tempo.Transaction) { x.Authorizations = []byte{0xc2, 0xc1, 0x80} },
		"key":          func(x *tempo.Transaction) { x.KeyAuthorization = []byte{0xc1, 0x80} },
		"no call":      func(x *tempo.Transaction) { x.Calls = nil },
		"second call":  func(x *tempo.Transaction) { x.Calls = append(x.Calls, x.Calls[0]) },
		"approve": func(x *tempo.Transaction) {
			x.Calls[0].Data = append([]byte{0x09, 0x5e, 0xa7, 0xb3}, x.Calls[0].Data[4:68]...)
		},
		"payee":         func(x *tempo.Transaction) { x.Calls[0] = move(stranger, 1_000_000) },
		"amount":        func(x *tempo.Transaction) { x.Calls[0] = move(payment.Address{4}, 1_000_001) },
		"another token": func(x *tempo.Transaction) { x.Calls[0].To = stranger },
		"value":         func(x *tempo.Transaction) { x.Calls[0].Value = payment.UnitsOf(1) },
	} {
		x, err := tempo.Decode(good.Raw)
		if err != nil {
			t.Fatal(err)
		}
		edit(&x)
		digest := x.SigningHash()
		k, _ := crypto.HexToECDSA(devKey)
		sig, err := crypto.Sign(digest[:], k)
		if err != nil {
			t.Fatal(err)
		}
		sig[64] += 27
		x.Signature = sig
		b := good
		b.Raw = x.Encode()
		b.TxHash = "0x" + hex.EncodeToString(crypto.Keccak256(b.Raw))
		g := g
		g.Recover = true
		if terms, err := r.Decode(b, g); err == nil && terms.Hash() == g.Terms.Hash() {
			t.Errorf("%s: taken for the grant's", name)
		}
	}
}

func move(to payment.Address, amount uint64) tempo.Call {
	token, _ := payment.ParseAddressLoose(path)
	return tempo.Transfer{Token: token, To: to, Amount: payment.UnitsOf(amount), HasMemo: true}.Call()
}

// A signature of another key is found out, whoever made it.
func TestForeignSignature(t *testing.T) {
	t.Parallel()
	r := rail(t, withNode)
	for kind, c := range kinds(t) {
		g := grant(t, offerOf(t, r, c))
		if _, err := r.Authorize(t.Context(), g, stranger{g.Payer}); !errors.Is(err, payment.ErrForeignSignature) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// stranger says that it is somebody else.
type stranger struct{ address payment.Address }

func (s stranger) Address() payment.Address { return s.address }

func (s stranger) Sign(_ context.Context, p payment.Permit, digest [32]byte) ([]byte, error) {
	if err := p.Use(digest, time.Now()); err != nil {
		return nil, err
	}
	k, err := crypto.HexToECDSA("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d")
	if err != nil {
		return nil, err
	}
	sig, err := crypto.Sign(digest[:], k)
	if err == nil {
		sig[64] += 27
	}
	return sig, err
}

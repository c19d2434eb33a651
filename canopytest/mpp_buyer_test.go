package canopytest_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// A buyer of MPP, by hand: no more than it takes to pay an honest seller.

// asked is one challenge.
type asked struct {
	params  map[string]string
	request struct {
		Amount, Currency, Recipient string
		MethodDetails               struct {
			ChainID  uint64
			FeePayer bool
			Memo     string
			Splits   []struct{ Amount, Recipient, Memo string }
			Modes    []string `json:"supportedModes"`
		}
	}
}

var param = regexp.MustCompile(`(?i)([a-z_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))`)

// challengesIn are the charges among the challenges of a response.
func challengesIn(t testing.TB, lines []string) []asked {
	t.Helper()
	var out []asked
	for _, line := range lines {
		var text []rune // ISO-8859-1
		for i := range len(line) {
			text = append(text, rune(line[i]))
		}
		for _, part := range regexp.MustCompile(`(?i)(?:^|, )payment `).Split(string(text), -1) {
			a := asked{params: map[string]string{}}
			for _, m := range param.FindAllStringSubmatch(part, -1) {
				a.params[strings.ToLower(m[1])] = unescapeQuoted(m[2] + m[3])
			}
			raw, err := base64.RawURLEncoding.DecodeString(a.params["request"])
			if a.params["intent"] != "charge" || err != nil || json.Unmarshal(raw, &a.request) != nil || a.request.Amount == "" {
				continue
			}
			out = append(out, a)
		}
	}
	return out
}

// unescapeQuoted reads a quoted string's escapes: a character, or a unit of
// UTF-16.
func unescapeQuoted(s string) string {
	var units []uint16
	for r := []rune(s); len(r) > 0; r = r[1:] {
		switch {
		case len(r) > 5 && r[0] == '\\' && r[1] == 'u':
			n, _ := strconv.ParseUint(string(r[2:6]), 16, 16)
			units, r = append(units, uint16(n)), r[5:]
		case len(r) > 1 && r[0] == '\\':
			units, r = append(units, uint16(r[1])), r[1:]
		default:
			units = append(units, uint16(r[0]))
		}
	}
	return string(utf16.Decode(units))
}

// ask sends a request without a payment and returns the charges it is answered
// with.
func (w *world) ask(url string) []asked {
	w.Helper()
	r := w.get(url)
	if r.StatusCode != 402 {
		w.Fatalf("status %d, want 402: %s", r.StatusCode, r.body)
	}
	all := challengesIn(w, r.Header["Www-Authenticate"])
	if len(all) == 0 {
		w.Fatalf("no charge in %q", r.Header["Www-Authenticate"])
	}
	return all
}

// boundMemo is the attribution of a payment to a challenge.
func boundMemo(a asked) (m [32]byte) {
	copy(m[:], crypto.Keccak256([]byte("mpp"))[:4])
	m[4] = 1
	copy(m[5:], crypto.Keccak256([]byte(a.params["realm"]))[:10])
	copy(m[25:], crypto.Keccak256([]byte(a.params["id"]))[:7])
	return m
}

// tempo is the transaction that a charge asks for, on the expiring nonce where
// somebody sponsors it.
func (w *world) tempo(a asked) *tempoTx {
	w.Helper()
	token, err1 := payment.ParseAddress(a.request.Currency)
	to, err2 := payment.ParseAddress(a.request.Recipient)
	left, err3 := strconv.ParseUint(a.request.Amount, 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		w.Fatal(err1, err2, err3)
	}
	var splits []rlpCall
	for _, s := range a.request.MethodDetails.Splits {
		part, _ := strconv.ParseUint(s.Amount, 10, 64)
		other, _ := payment.ParseAddress(s.Recipient)
		left -= part
		if s.Memo != "" {
			splits = append(splits, memoCall(token, other, part, [32]byte(unhex(w, s.Memo))))
			continue
		}
		splits = append(splits, transferCall(token, other, part))
	}
	memo := boundMemo(a)
	if a.request.MethodDetails.Memo != "" {
		memo = [32]byte(unhex(w, a.request.MethodDetails.Memo))
	}
	x := newTempoTx(w.chain, append([]rlpCall{memoCall(token, to, left, memo)}, splits...)...)
	x.gas += uint64(len(splits)) * 300_000
	if a.request.MethodDetails.FeePayer {
		x.sponsored, x.envelope, x.token = true, 0x78, nil
		return x.expiring()
	}
	return x.on(new(big.Int).SetBytes(crypto.Keccak256([]byte(a.params["id"]))[:16]), 0) // a lane of its own
}

// credentialOf is the value of a credential.
func credentialOf(a asked, payload map[string]any, source string) string {
	doc := map[string]any{"challenge": a.params, "payload": payload}
	if source != "" {
		doc["source"] = source
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return "Payment " + base64.RawURLEncoding.EncodeToString(b)
}

func pull(raw []byte) map[string]any {
	return map[string]any{"type": "transaction", "signature": "0x" + hex.EncodeToString(raw)}
}

// source is the DID of the wallet on a chain.
func (w *world) source(chain uint64) string {
	return fmt.Sprintf("did:pkh:eip155:%d:%s", chain, w.wallet.Address())
}

// proof signs who is there.
func (w *world) proof(a asked) map[string]any {
	text := func(s string) []byte { return crypto.Keccak256([]byte(s)) }
	word := func(b []byte) []byte { return append(make([]byte, 32-len(b)), b...) }
	from := w.wallet.Address()
	domain := crypto.Keccak256(text("EIP712Domain(string name,string version,uint256 chainId)"), text("MPP"), text("3"),
		word(new(big.Int).SetUint64(a.request.MethodDetails.ChainID).Bytes()))
	message := crypto.Keccak256(text("Proof(address account,string challengeId,string realm)"), word(from[:]), text(a.params["id"]), text(a.params["realm"]))
	sig, err := crypto.Sign(crypto.Keccak256([]byte{0x19, 0x01}, domain, message), w.wallet.key)
	if err != nil {
		w.Fatal(err)
	}
	sig[64] += 27
	return map[string]any{"type": "proof", "signature": "0x" + hex.EncodeToString(sig)}
}

// evm is the authorization that a charge on an EVM chain asks for.
func (w *world) evm(chain *canopytest.Chain, a asked) map[string]any {
	return w.evmOn(chain, a, [32]byte(crypto.Keccak256([]byte(a.params["id"]+a.params["realm"]))))
}

func (w *world) evmOn(chain *canopytest.Chain, a asked, nonce [32]byte) map[string]any {
	to, _ := payment.ParseAddress(a.request.Recipient)
	value, _ := payment.ParseUnits(a.request.Amount)
	auth := w.wallet.sign(chain.Dollar(), canopytest.Authorization{
		Token: chain.Dollar().Address, From: w.wallet.Address(), To: to, Value: value,
		ValidBefore: payment.UnitsOf(uint64(w.clock.Now().Add(time.Minute).Unix())),
		Nonce:       nonce,
	})
	out := wire(auth)["authorization"].(map[string]any)
	out["type"], out["signature"] = "authorization", "0x"+hex.EncodeToString(auth.Signature)
	return out
}

// field is where a challenge wants its credential.
func (a asked) field() string {
	if h := a.params["header"]; h != "" {
		return h
	}
	return "Authorization"
}

// buyMPP asks, signs and pays the first charge, and returns the credential.
func (w *world) buyMPP(url string) (asked, string, reply) {
	w.Helper()
	a := w.ask(url)[0]
	v := credentialOf(a, pull(w.wallet.raw(w.tempo(a))), "")
	return a, v, w.get(url, a.field(), v)
}

// receiptIn is the receipt of a response, nil where there is none.
func receiptIn(t *testing.T, r reply) map[string]any {
	t.Helper()
	h := r.Header.Get("Payment-Receipt")
	if h == "" {
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(h)
	if err != nil {
		t.Fatalf("receipt %q: %v", h, err)
	}
	return unmarshal(t, b)
}

// problemOf is the last part of a problem's type.
func problemOf(r reply) string {
	var doc struct{ Type, Detail string }
	if json.Unmarshal(r.body, &doc) != nil {
		return ""
	}
	return doc.Type[strings.LastIndex(doc.Type, "/")+1:]
}

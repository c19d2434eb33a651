package canopy_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// Tricks with what a seller or an agent may change between two calls.

// Attack 10, of a memo: what a person approved is not carried out with another
// one, and another memo under a key is another request.
func TestMPPMemoIsApproved(t *testing.T) {
	for _, key := range []string{"", "k"} {
		t.Run("key "+key, func(t *testing.T) {
			play(t, onTempo(setup{}), func(t *testing.T, w *world) {
				first, err := w.client.Pay(t.Context(), onChain(dollars(6*payment.Dollar, key), "deposit: alice"))
				must(t, err)
				w.rule(first.ApprovalID, true)
				second, err := w.client.Pay(t.Context(), onChain(dollars(6*payment.Dollar, key), "deposit: mallory"))
				if key != "" {
					if !errors.Is(err, canopy.ErrKeyConflict) {
						t.Errorf("another memo under one key: %+v, %v", second, err)
					}
				} else if must(t, err); second.Status != canopy.PendingApproval || second.PaymentID == first.PaymentID {
					t.Errorf("another memo: %+v", second)
				}
				w.moved(0)
				done, err := w.client.Pay(t.Context(), onChain(dollars(6*payment.Dollar, key), "deposit: alice"))
				if must(t, err); done.PaymentID != first.PaymentID || done.Status != canopy.Allowed {
					t.Errorf("as approved: %+v", done)
				}
				if memo := w.chain.Transfers()[0].Memo; !strings.HasPrefix(string(memo[:]), "deposit: alice\x00") {
					t.Errorf("memo %q", memo)
				}
			})
		})
	}
}

// A memo that is written otherwise is no other purchase: the equal transfer is a
// duplicate without a key, and the same payment under one.
func TestMPPMemoSpelling(t *testing.T) {
	text := "0x" + hex.EncodeToString([]byte("inv 7")) + strings.Repeat("00", 27)
	for name, memos := range map[string][2]string{
		"case": {"0x" + strings.Repeat("AB", 32), "0x" + strings.Repeat("ab", 32)}, "text": {"inv 7", text}, "hex": {text, "inv 7"},
	} {
		for _, key := range []string{"", "k"} {
			t.Run(name+" key "+key, func(t *testing.T) {
				play(t, onTempo(setup{}), func(t *testing.T, w *world) {
					first, err := w.client.Pay(t.Context(), onChain(dollars(dime, key), memos[0]))
					must(t, err)
					second, err := w.client.Pay(t.Context(), onChain(dollars(dime, key), memos[1]))
					must(t, err)
					if key == "" && (second.Status != canopy.Denied || second.Code != "duplicate") || key != "" && second.PaymentID != first.PaymentID {
						t.Errorf("%+v, then %+v", first, second)
					}
					if n := len(w.chain.Transfers()); n != 2 { // and its fee
						t.Errorf("%d transfers", n)
					}
				})
			})
		}
	}
}

// restate has every challenge but the first say something else in its request.
func (w *world) restate(edit func(details map[string]any)) {
	n := 0
	w.wire.After = func(r *http.Response) error {
		v := r.Header.Get("Www-Authenticate")
		if v == "" {
			return nil
		}
		if n++; n == 1 {
			return nil
		}
		_, rest, _ := strings.Cut(v, `request="`)
		req, _, _ := strings.Cut(rest, `"`)
		doc, err := base64.RawURLEncoding.DecodeString(req)
		if err != nil {
			return err
		}
		var m map[string]any
		if err := json.Unmarshal(doc, &m); err != nil {
			return err
		}
		edit(m["methodDetails"].(map[string]any))
		if doc, err = json.Marshal(m); err != nil {
			return err
		}
		r.Header.Set("Www-Authenticate", strings.Replace(v, req, base64.RawURLEncoding.EncodeToString(doc), 1))
		return nil
	}
}

// A second 402 that wants the transaction broadcast gets no hash of one that is
// on no chain: the same bytes are sent again.
func TestMPPNoVariantByPush(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		again := canopytest.Instead("asks again", canopytest.OnPaid, func(x *canopytest.Exchange) canopytest.Answer {
			return x.Challenge("verification-failed")
		})
		_, url := w.asks(dime, canopytest.MPPConfig{}, canopytest.Always(again))
		w.restate(func(d map[string]any) { d["supportedModes"] = []string{"push"} })
		var doubt *canopy.InDoubtError
		if g := w.get(url); !errors.As(g.err, &doubt) {
			t.Errorf("%+v", g)
		}
		w.digests(1)
		for _, s := range w.wire.Sent() {
			_, v, _ := strings.Cut(s.Header.Get("Authorization"), " ")
			if doc, _ := base64.RawURLEncoding.DecodeString(v); strings.Contains(string(doc), `"type":"hash"`) {
				t.Error("a hash was shown")
			}
		}
	})
}

// A sponsored seller whose memo is always the same can be paid once: two such
// payments could not be told apart on the chain. The second is denied, and says so.
func TestMPPMemoUsedBefore(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		_, url := w.asks(dime, canopytest.MPPConfig{Sponsor: true}, canopytest.Always(canopytest.FixedMemo([32]byte{7})))
		w.bought(w.get(url))
		w.denied(w.get(url+"?again"), "challenge_used")
		w.moved(dime)
	})
}

// A 401 is a challenge only where the Payment scheme stands in it as a scheme.
func TestChallengeIsASchemeNotAWord(t *testing.T) {
	for line, want := range map[string]bool{
		`Payment id="x"`:                       true,
		`Basic realm="a", payment id="x"`:      true,
		"Bearer,\tPAYMENT\tid=x":               true,
		`Basic realm="the payment area"`:       false,
		`Basic realm="a, Payment id=\"x\""`:    false,
		`Basic realm="a\", Payment id=\"x\""`:  false,
		`Digest realm="x", payments="y"`:       false,
		`Payments id="x"`:                      false,
		`Negotiate payment`:                    false,
		`Basic realm="unterminated, Payment x`: false,
	} {
		if got := canopy.MentionsPayment(line); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

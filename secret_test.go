package canopy_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"index/suffixarray"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// A key, a whole signature and a payment header are bearer money: neither is to
// be found in any log, error, result or ledger, in any spelling. I16, attacks 84
// and 85.
func TestAttack84_NothingSecretComesOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: strings.Replace(openPolicy, "$20", "$50", 1)})
		out := &bytes.Buffer{}
		show := func(values ...any) {
			for _, v := range values {
				fmt.Fprintf(out, "%v\n%+v\n%#v\n%s\n%q\n", v, v, v, v, v)
				if b, err := json.Marshal(v); err == nil {
					out.Write(b)
				}
				slog.New(slog.NewJSONHandler(out, nil)).Error("x", "v", v)
			}
		}
		faults := []canopytest.Fault{
			canopytest.AnswerAgain(), canopytest.DropAfterSettling(), canopytest.SayFailed("x"), canopytest.Status(500), canopytest.StatusWithReceipt(500),
			canopytest.NoReceipt(), canopytest.FakeReceipt(), canopytest.SettlementPending(), canopytest.Reset(), canopytest.Cut(40), canopytest.HostileText("echo"),
			echoing("says"), echoing("receipt"), echoing("garbage"), echoing("signature"), canopytest.PriceWalk(payment.Cent),
		}
		faults = append(faults, canopytest.ForgedReceipts()[:6]...)
		sellers := make([]*canopytest.Seller, 0, 2)
		for i, v := range []canopytest.Version{canopytest.V1, canopytest.V2} {
			host := fmt.Sprintf("127.0.0.%d:80", i+1)
			s, url := w.serve(host, canopytest.SellerConfig{Version: v, Routes: []canopytest.Route{{Pattern: "GET /goods/{id}", Price: dime}}})
			sellers = append(sellers, s)
			for n, f := range faults {
				s.SetFaults("", canopytest.Plan{canopytest.From(2, f)})
				for range 2 {
					g := w.get(fmt.Sprintf("%s/goods/%d", url, n), canopy.WithKey(fmt.Sprint("key-", i, n)))
					show(g.err, g.paid, g.err == nil && g.Response.Request != nil)
					if g.err == nil {
						show(g.Response.Request.Header)
					}
				}
			}
		}
		for e, err := range w.store.Entries(w.context(), ledger.Query{Limit: 30}) {
			must(t, err)
			show(e, e.Grant(), e.Slot)
			events, err := w.store.Events(w.context(), e.ID)
			must(t, err)
			for _, ev := range events {
				show(ev, string(ev.Data))
			}
		}
		show(w.client, w.store, w.spy, w.spy.Address())
		out.WriteString(w.logs.String())

		secrets := spellings(testKey[2:])
		for _, s := range sellers {
			for _, a := range s.Harvest().All() {
				for at := 60; at < 220; at += 40 { // where the signature stands
					secrets = append(secrets, a.Header[at:at+40])
				}
				secrets = append(secrets, spellings(hex.EncodeToString(a.Signature[:32]))...)
				secrets = append(secrets, spellings(hex.EncodeToString(a.Signature[32:64]))...)
			}
		}
		text := bytes.ToLower(out.Bytes())
		if len(secrets) < 100 || len(text) < 100_000 {
			t.Fatalf("%d secrets were looked for in %d bytes", len(secrets), len(text))
		}
		index := suffixarray.New(text)
		for _, s := range secrets {
			if at := index.Lookup([]byte(strings.ToLower(s)), 1); len(at) > 0 {
				t.Fatalf("a secret came out: ...%.80q", text[max(at[0]-80, 0):at[0]])
			}
		}
		time.Sleep(time.Minute)
	})
}

// spellings are how 32 bytes may be printed.
func spellings(digits string) []string {
	b, _ := hex.DecodeString(digits)
	spaced := strings.Trim(fmt.Sprint(b), "[]")
	return []string{digits, spaced, strings.ReplaceAll(spaced, " ", ", "), strings.TrimRight(base64.StdEncoding.EncodeToString(b), "="), fmt.Sprintf("% x", b)}
}

// echoing is a seller that hands the credential back in what it says.
func echoing(how string) canopytest.Fault {
	header := func(x *canopytest.Exchange) string {
		return x.Request.Header.Get("Payment-Signature") + x.Request.Header.Get("X-Payment")
	}
	if how == "garbage" {
		return canopytest.Delivering(how, canopytest.OnPaid, func(x *canopytest.Exchange, rw http.ResponseWriter, _ canopytest.Answer) {
			conn, _, err := http.NewResponseController(rw).Hijack()
			if err == nil {
				fmt.Fprintf(conn, "unreadable:%s\r\n\r\n", header(x))
				conn.Close()
			}
		})
	}
	return canopytest.Instead(how, canopytest.OnPaid, func(x *canopytest.Exchange) canopytest.Answer {
		words := header(x)
		if a, ok := x.Authorization(); ok && how == "signature" {
			words = "bad signature 0x" + hex.EncodeToString(a.Signature)
		}
		if how != "receipt" {
			return x.Challenge(words)
		}
		a := x.Challenge("")
		doc, _ := json.Marshal(map[string]any{"success": false, "errorReason": "no", "errorMessage": words, "transaction": "", "network": ""})
		a.Header.Set("Payment-Response", base64.StdEncoding.EncodeToString(doc))
		return a
	})
}

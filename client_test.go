package canopy_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
	"github.com/canopy-go/canopy/x402"
)

// New refuses what is missing or unsafe, and names the field. Attack 30.
func TestAttack30_NewNamesTheField(t *testing.T) {
	t.Parallel()
	rules, err := policy.Parse("test", []byte(openPolicy))
	must(t, err)
	good := func() canopy.Config {
		return canopy.Config{Policy: rules, Store: ledger.NewMemory(ledger.Options{})}
	}
	client, err := canopy.New(good())
	must(t, err)
	rail, err := x402.New(x402.Config{})
	must(t, err)
	for field, change := range map[string]func(*canopy.Config){
		"Config.Policy":    func(c *canopy.Config) { c.Policy = nil },
		"Config.Store":     func(c *canopy.Config) { c.Store = nil },
		"Config.Rails[0]":  func(c *canopy.Config) { c.Rails = []canopy.Rail{nil} },
		"Config.Rails has": func(c *canopy.Config) { c.Rails = []canopy.Rail{rail, rail} },
		"Config.Channels":  func(c *canopy.Config) { c.Channels = []approvals.Channel{nil} },
		"Config.Transport": func(c *canopy.Config) {
			c.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		},
		"Config.Transport is a canopy.Client": func(c *canopy.Config) { c.Transport = client },
	} {
		cfg := good()
		change(&cfg)
		if _, err := canopy.New(cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// Without a signer, and without rails.
func TestClientWithoutParts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: func(_ *world, c *canopy.Config) { c.Treasury = canopy.Treasury{} }})
		_, url := w.sells(dime)
		w.denied(w.get(url), "no_signer")
		p, err := w.client.Ping(w.context())
		if err != nil || !p.Account.IsZero() || p.Status != "active" || p.Agent != "tester" || p.AgentID != payment.AgentID("tester") {
			t.Errorf("ping %+v, %v", p, err)
		}
		check, err := w.client.CheckURL(w.context(), url)
		if err != nil || check.Code != "no_signer" || check.Amount != dime {
			t.Errorf("check %+v, %v", check, err)
		}
		w = newWorld(t, setup{config: func(_ *world, c *canopy.Config) { c.Rails = nil }})
		_, url = w.sells(dime)
		w.denied(w.get(url), "no_rail")
		w.denied(w.get(url+"?again", canopy.WithMaxPrice(dime)), "no_rail")
		if check, err = w.client.CheckURL(w.context(), url); err != nil || check.Status != canopy.Denied || check.Code != "no_rail" || !strings.Contains(check.Reason, "Config.Rails") {
			t.Errorf("check without rails: %+v, %v", check, err)
		}
		for _, pay := range []func(context.Context, canopy.Transfer) (canopy.Result, error){w.client.Pay, w.client.Preview} {
			if r, err := pay(w.context(), canopy.Transfer{To: canopytest.Address("friend"), Amount: dime}); err == nil || !strings.Contains(err.Error(), "Config.Rails is empty") {
				t.Errorf("a transfer without rails: %+v, %v", r, err)
			}
		}
		if resp, err := w.client.HTTPClient().Get(url); err == nil || !strings.Contains(err.Error(), "Config.Rails is empty") {
			t.Errorf("HTTPClient without rails: %v, %v", resp, err)
		}
	})
}

// Every typed error: its message, its phase, and that it is found through the
// *url.Error that an http.Client makes of it.
func TestTypedErrors(t *testing.T) {
	other := canopytest.Address("somebody else")
	type want struct {
		find  func(error) bool
		says  []string
		phase canopy.Phase
	}
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	for name, tc := range map[string]struct {
		price  payment.USD
		fault  canopytest.Rule
		signer func(*world, payment.Signer) payment.Signer
		ask    func(w *world, url string) (*http.Request, []canopy.Option)
		before func(w *world, url string)
		want   want
	}{
		"pending": {price: report, want: want{find[*canopy.PendingError], []string{"canopy: approval needed (appr_", "exceeds approval threshold of $5"}, ""}},
		"denied":  {price: 11 * payment.Dollar, want: want{find[*canopy.DeniedError], []string{"canopy: payment denied: Amount $11.00 exceeds"}, canopy.BeforeSigning}},
		"in doubt, not sent": {price: dime, signer: func(_ *world, s payment.Signer) payment.Signer { return canopytest.FailingSigner(s, nil) },
			want: want{is(canopytest.ErrSigner), []string{"canopy: payment ", "of $0.10 is in doubt (signed_not_sent)", "the signer failed"}, canopy.SignedNotSent}},
		"in doubt, sent": {price: dime, fault: canopytest.Always(canopytest.DropBeforeSettling()),
			want: want{find[*canopy.InDoubtError], []string{"is in doubt (sent_unknown)"}, canopy.SentUnknown}},
		"in doubt, refused": {price: dime, fault: canopytest.Always(canopytest.SayFailed("insufficient_funds")),
			want: want{find[*canopy.InDoubtError], []string{"is in doubt (refused): the seller said insufficient_funds"}, canopy.RefusedAfter}},
		"in doubt, other terms": {price: dime, fault: canopytest.From(2, canopytest.OtherPayee(other)),
			want: want{find[*canopy.InDoubtError], []string{"the seller now asks for other terms"}, canopy.RefusedAfter}},
		"paid": {price: dime, fault: canopytest.First(canopytest.DropAfterSettling()), before: func(w *world, url string) { w.get(url) },
			want: want{find[*canopy.PaidError], []string{"of $0.10 was made and not delivered", "nonce_already_used"}, canopy.SettledPhase}},
		"key conflict": {price: dime, before: func(w *world, url string) { w.bought(w.get(url, canopy.WithKey("k"))) },
			ask: func(w *world, url string) (*http.Request, []canopy.Option) {
				return w.request("GET", url+"/2", nil), []canopy.Option{canopy.WithKey("k")}
			}, want: want{is(canopy.ErrKeyConflict), []string{"the key stands for another request"}, ""}},
		"body": {price: dime, ask: func(w *world, url string) (*http.Request, []canopy.Option) {
			return w.request("POST", url, onlyReader{&zeroes{mib + 1}}), nil
		}, want: want{is(canopy.ErrBodyNotReplayable), []string{"set GetBody"}, ""}},
		"clock": {price: dime, ask: func(w *world, url string) (*http.Request, []canopy.Option) {
			w.skew = time.Hour
			return w.request("GET", url, nil), nil
		}, want: want{is(canopy.ErrClockSkew), []string{"clock_skew"}, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{bend: tc.signer, config: func(w *world, c *canopy.Config) {
					c.Now = func() time.Time { return w.clock.Now().Add(w.skew) }
				}})
				var plan []canopytest.Rule
				if tc.fault.From > 0 {
					plan = append(plan, tc.fault)
				}
				_, address := w.sells(tc.price, plan...)
				if tc.before != nil {
					tc.before(w, address)
				}
				req, opts := w.request("GET", address, nil), []canopy.Option(nil)
				if tc.ask != nil {
					req, opts = tc.ask(w, address)
				}
				err := w.do(req, opts...).err
				if err == nil || !tc.want.find(err) {
					t.Fatalf("got %T %v", err, err)
				}
				for _, s := range tc.want.says {
					if !strings.Contains(err.Error(), s) {
						t.Errorf("it says %q, not %q", err, s)
					}
				}
				if got := phaseOf(err); got != tc.want.phase {
					t.Errorf("phase %q, want %q", got, tc.want.phase)
				}
				wrapped := &url.Error{Op: "Get", URL: address, Err: err}
				if !tc.want.find(wrapped) {
					t.Error("it is not found in a *url.Error")
				}
			})
		})
	}
}

func find[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

func phaseOf(err error) canopy.Phase {
	var phased interface{ Phase() canopy.Phase }
	var doubt *canopy.InDoubtError
	switch {
	case errors.As(err, &doubt):
		return doubt.Phase
	case errors.As(err, &phased):
		return phased.Phase()
	}
	return ""
}

type zeroes struct{ left int }

func (z *zeroes) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), z.left)
	z.left -= n
	return n, nil
}

// Through the client's own http.Client the errors are found too.
func TestTypedErrorsThroughHTTPClient(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, address := w.sells(report)
		_, err := w.client.HTTPClient().Get(address)
		var outer *url.Error
		if !errors.As(err, &outer) {
			t.Errorf("got %T", err)
		}
		as[*canopy.PendingError](t, err)
	})
}

// Options that make no sense are refused before anything is sent.
func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	for name, opt := range map[string]canopy.Option{
		"negative price": canopy.WithMaxPrice(-1), "no key": canopy.WithKey(""), "long key": canopy.WithKey(strings.Repeat("k", 257)),
		"key with a line": canopy.WithKey("a\r\nX: y"), "key with NUL": canopy.WithKey("a\x00"), "long purpose": canopy.WithPurpose(strings.Repeat("p", 513)),
		"negative wait": canopy.WithWait(-1),
	} {
		if g := w.get("http://127.0.0.1:8402/goods/1", opt); g.err == nil || !strings.Contains(g.err.Error(), "canopy: With") {
			t.Errorf("%s: %v", name, g.err)
		}
	}
	if n := len(w.wire.Sent()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	if _, err := w.client.Fetch(context.Background(), nil); err == nil {
		t.Error("a nil request was fetched")
	}
}

// A key stands for one request, and for its outcome.
func TestKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		s, address := w.sells(dime)
		first := w.bought(w.get(address, canopy.WithKey("k")))
		paid := as[*canopy.PaidError](t, w.get(address, canopy.WithKey("k")).err)
		if paid.Result.PaymentID != first.paid.PaymentID || paid.Result.TxHash != first.paid.TxHash || first.paid.TxHash == "" {
			t.Errorf("paid as %+v, first %+v", paid.Result, first.paid)
		}
		if g := w.do(w.request("POST", address, strings.NewReader("x")), canopy.WithKey("k")); !errors.Is(g.err, canopy.ErrKeyConflict) {
			t.Errorf("another method: %v", g.err)
		}
		w.bought(w.get(address, canopy.WithKey("k2")))
		w.denied(w.get("http://127.0.0.1:8402/goods/9", canopy.WithKey("d"), canopy.WithMaxPrice(0)), "max_price")
		w.bought(w.get("http://127.0.0.1:8402/goods/9", canopy.WithKey("d"))) // free again: nothing was paid
		w.handed(s, 3)
		w.spent(3 * dime)
	})
}

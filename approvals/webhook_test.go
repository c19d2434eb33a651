package approvals_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

const hookSecret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

func secret(t *testing.T) approvals.HookSecret {
	t.Helper()
	s, err := approvals.ParseHookSecret(hookSecret)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// target is where deliveries go. answer makes each answer; nil is 204.
type target struct {
	answer func(*http.Request) (*http.Response, error)

	mu     sync.Mutex
	got    []approvals.Message
	ids    []string
	times  []time.Time
	failed []error // of signatures
	secret approvals.HookSecret
}

func (g *target) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return nil, err
	}
	var m approvals.Message
	err = errors.Join(json.Unmarshal(body, &m), g.secret.Verify(r.Header, body, time.Now()))
	g.mu.Lock()
	g.got, g.ids, g.times, g.failed = append(g.got, m), append(g.ids, r.Header.Get("Webhook-Id")), append(g.times, time.Now()), append(g.failed, err)
	g.mu.Unlock()
	if g.answer != nil {
		return g.answer(r)
	}
	return answer(204, ""), nil
}

// count is how many deliveries came. What it synchronizes with is what came.
func (g *target) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.got)
}

func answer(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

func hook(t *testing.T, store ledger.Store, g *target) *approvals.Webhook {
	t.Helper()
	g.secret = secret(t)
	w, err := approvals.NewWebhook(approvals.WebhookConfig{
		URL: "https://hooks.example/canopy", Secret: g.secret, Store: store, Transport: g, Page: "http://127.0.0.1:7433/",
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func approvalOf(t *testing.T, store ledger.Store, e ledger.Entry) approvals.Approval {
	t.Helper()
	a, err := store.Approvals().Approval(t.Context(), e.ApprovalID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A webhook tells that one is asked for and how it ended, each once, signed.
func TestWebhook(t *testing.T) {
	t.Parallel()
	store := ledger.NewMemory(ledger.Options{})
	g := &target{}
	w := hook(t, store, g)
	e := pending(t, store, "/a?q=1")
	for range 2 { // the second time nothing is due
		if err := w.Notify(t.Context(), approvalOf(t, store, e)); err != nil {
			t.Fatal(err)
		}
	}
	desk := approvals.NewDesk(store, "cli", nil)
	if _, err := desk.Rule(t.Context(), e.ApprovalID, approvals.Ruling{Approve: true, By: "ana", Reason: "needed"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(g.got) != 2 || errors.Join(g.failed...) != nil || g.ids[0] == g.ids[1] {
		t.Fatalf("%d deliveries %q, %v", len(g.got), g.ids, errors.Join(g.failed...))
	}
	asked, ended := g.got[0], g.got[1]
	d := asked.Data
	if asked.Type != "approval.requested" || d.ApprovalID != e.ApprovalID || d.TransactionID != e.ID || d.Agent != "bot" || d.Status != "pending" ||
		d.AmountUSD != 7_500_000 || d.FeeUSD != 0 || d.CostUSD != 7_500_000 || d.Rail != "x402" || d.Chain != payment.Base ||
		len(d.Recipients) != 1 || d.Recipients[0].Address != e.Terms.Payee().String() || d.Recipients[0].AmountUSD != 7_500_000 ||
		d.Method != "GET" || d.URL != "https://feed.example/a?q=1" || d.TermsHash != e.TermsHash || d.Page != "http://127.0.0.1:7433/" ||
		d.Reason != "Amount $7.50 exceeds approval threshold of $5" || d.ExpiresAt.IsZero() || d.DecidedAt != nil {
		t.Errorf("asked: %+v", asked)
	}
	if d := ended.Data; ended.Type != "approval.approved" || d.ApprovalID != e.ApprovalID || d.DecidedBy != "ana" || d.Comment != "needed" || d.DecidedAt == nil {
		t.Errorf("ended: %+v", ended)
	}
}

// What others wrote arrives as text without control, bidirectional or invisible
// characters, bounded.
func TestWebhookHostileText(t *testing.T) {
	t.Parallel()
	store := ledger.NewMemory(ledger.Options{})
	g := &target{}
	e := pendingAs(t, store, "/a", strings.Repeat("pay\u202e\x1b[2Jnow\u200b ", 500))
	if err := hook(t, store, g).Notify(t.Context(), approvalOf(t, store, e)); err != nil {
		t.Fatal(err)
	}
	if p := g.got[0].Data.Purpose; len(p) > 500 || strings.ContainsAny(p, "\u202e\x1b\u200b") || !strings.HasPrefix(p, "pay[2Jnow ") {
		t.Errorf("the purpose arrived as %q", p)
	}
}

// A target that fails is tried again with growing pauses, as long as the request
// waits, and a pause that it asks for is kept.
func TestWebhookBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewMemory(ledger.Options{})
		var up atomic.Bool
		g := &target{answer: func(*http.Request) (*http.Response, error) {
			switch {
			case up.Load():
				return answer(200, ""), nil
			case time.Now().Minute()%2 == 0:
				return nil, errors.New("connection refused")
			}
			return answer(503, "", "Retry-After", "1800"), nil
		}}
		w := hook(t, store, g)
		e := pending(t, store, "/a")
		begun := time.Now()
		if err := w.Notify(t.Context(), approvalOf(t, store, e)); err == nil || strings.Contains(err.Error(), "hooks.example") {
			t.Errorf("the first attempt: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx, time.Second) }()
		time.Sleep(6 * time.Hour)
		synctest.Wait()
		n := g.count()
		if n < 10 || n > 50 {
			t.Errorf("%d attempts in six hours", n)
		}
		g.mu.Lock()
		for i, at := range g.times[1:4] {
			pause, want := at.Sub(g.times[i]), 5*time.Second<<i
			if pause < want*8/10 || pause > want+time.Second {
				t.Errorf("pause %d is %v, want about %v", i, pause, want)
			}
		}
		longest := time.Duration(0)
		for i := range g.times[1:] {
			longest = max(longest, g.times[i+1].Sub(g.times[i]))
		}
		g.mu.Unlock()
		if longest < 30*time.Minute || longest > 31*time.Minute {
			t.Errorf("the longest pause is %v, want the 30 minutes that were asked for", longest)
		}
		if u, err := store.Undelivered(t.Context(), "webhook", time.Now()); err != nil || len(u) != 1 || u[0].Attempts != n || u[0].Failure == "" {
			t.Errorf("undelivered: %+v, %v", u, err)
		}
		up.Store(true)
		time.Sleep(time.Hour)
		synctest.Wait()
		if g.count() != n+1 {
			t.Errorf("%d attempts once it was up, want 1", g.count()-n)
		}
		// It expires, which is told too.
		time.Sleep(time.Until(begun.Add(25 * time.Hour)))
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if last := g.got[len(g.got)-1]; last.Type != "approval.expired" {
			t.Errorf("the last is %s", last.Type)
		}
		if slices.Compact(slices.Clone(g.ids[:n+1]))[0] != g.ids[n] {
			t.Errorf("attempts of one delivery have ids of their own: %q", g.ids)
		}
	})
}

// An outcome that nobody takes is given up at last.
func TestWebhookGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewMemory(ledger.Options{})
		up := true
		g := &target{answer: func(*http.Request) (*http.Response, error) {
			if up {
				return answer(200, ""), nil
			}
			return answer(500, ""), nil
		}}
		w := hook(t, store, g)
		e := pending(t, store, "/a")
		if err := w.Deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
		up = false
		if _, err := approvals.NewDesk(store, "cli", nil).Rule(t.Context(), e.ApprovalID, approvals.Ruling{By: "ana"}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 48*time.Hour)
		defer cancel()
		if err := w.Run(ctx, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		if n := len(g.got) - 1; n != 20 {
			t.Errorf("%d attempts at the outcome, want 20", n)
		}
		if u, err := store.Undelivered(t.Context(), "webhook", time.Now()); len(u) != 0 || err != nil {
			t.Errorf("undelivered: %+v, %v", u, err)
		}
	})
}

// A target that is slow, lies, sends elsewhere or floods changes nothing: the
// payment stays pending, and the call that asked goes on.
func TestWebhookHostileTarget(t *testing.T) {
	t.Parallel()
	var posts int
	var mu sync.Mutex
	stop := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		posts++
		mu.Unlock()
		switch r.URL.Path {
		case "/slow":
			select {
			case <-stop:
			case <-r.Context().Done():
			}
		case "/lying":
			fmt.Fprint(w, `{"approve":true,"by":"ana","status":"approved"}`)
		case "/elsewhere":
			http.Redirect(w, r, "/lying", http.StatusTemporaryRedirect)
		case "/flood":
			w.WriteHeader(500)
			for range 1 << 12 {
				if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
					return
				}
			}
		case "/hangup":
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				c.Close()
			}
		}
	}))
	defer srv.Close()
	defer close(stop)
	for path, delivered := range map[string]bool{"/slow": false, "/lying": true, "/elsewhere": false, "/flood": false, "/hangup": false} {
		store := ledger.NewMemory(ledger.Options{})
		w, err := approvals.NewWebhook(approvals.WebhookConfig{URL: srv.URL + path, Secret: secret(t), Store: store, Timeout: 300 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		e := pending(t, store, "/a")
		begun := time.Now()
		err = w.Notify(t.Context(), approvalOf(t, store, e))
		if took := time.Since(begun); (err == nil) != delivered || took > 5*time.Second {
			t.Errorf("%s: %v after %v", path, err, took)
		}
		if a := approvalOf(t, store, e); a.Status != ledger.ApprovalPending {
			t.Errorf("%s: the approval is %s", path, a.Status)
		}
		if u, err := store.Undelivered(t.Context(), "webhook", time.Now()); (len(u) == 0) != delivered || err != nil {
			t.Errorf("%s: undelivered: %+v, %v", path, u, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if posts != 5 {
		t.Errorf("%d posts, want one for each target: redirects are not followed", posts)
	}
}

// With a target that is down and many requests, a round is short.
func TestWebhookRoundIsBounded(t *testing.T) {
	t.Parallel()
	store := ledger.NewMemory(ledger.Options{})
	for i := range 20 {
		pending(t, store, fmt.Sprintf("/%d", i))
	}
	g := &target{answer: func(*http.Request) (*http.Response, error) { return nil, errors.New("down") }}
	w := hook(t, store, g)
	if err := w.Deliver(t.Context()); err == nil || len(g.got) != 3 {
		t.Errorf("%d attempts, %v", len(g.got), err)
	}
	if u, err := store.Undelivered(t.Context(), "webhook", time.Now()); len(u) != 20 || err != nil {
		t.Errorf("%d are undelivered, %v", len(u), err)
	}
}

// The caller's end does not have a delivery that arrived sent again.
func TestWebhookCancelled(t *testing.T) {
	t.Parallel()
	store := ledger.NewMemory(ledger.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	g := &target{answer: func(*http.Request) (*http.Response, error) {
		cancel()
		return answer(200, ""), nil
	}}
	w := hook(t, store, g)
	pending(t, store, "/a")
	if err := w.Deliver(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := w.Deliver(t.Context()); err != nil || len(g.got) != 1 {
		t.Errorf("%d deliveries, %v", len(g.got), err)
	}
}

func TestWebhookConfig(t *testing.T) {
	t.Parallel()
	store := ledger.NewMemory(ledger.Options{})
	good := approvals.WebhookConfig{URL: "https://hooks.example/x", Secret: secret(t), Store: store}
	for name, change := range map[string]func(*approvals.WebhookConfig){
		"Name":    func(c *approvals.WebhookConfig) { c.Name = "a b" },
		"URL":     func(c *approvals.WebhookConfig) { c.URL = "" },
		"URL ":    func(c *approvals.WebhookConfig) { c.URL = "http://hooks.example/hush" },
		"URL  ":   func(c *approvals.WebhookConfig) { c.URL = "https://u:hush@hooks.example/" },
		"URL   ":  func(c *approvals.WebhookConfig) { c.URL = "https://hooks.example/#hush" },
		"URL    ": func(c *approvals.WebhookConfig) { c.URL = "https:hush" },
		"Secret":  func(c *approvals.WebhookConfig) { c.Secret = approvals.HookSecret{} },
		"Store":   func(c *approvals.WebhookConfig) { c.Store = nil },
		"Timeout": func(c *approvals.WebhookConfig) { c.Timeout = -1 },
	} {
		c := good
		change(&c)
		_, err := approvals.NewWebhook(c)
		if err == nil || !strings.Contains(err.Error(), "WebhookConfig."+strings.TrimSpace(name)) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, u := range []string{"https://hooks.example/x?token=1", "http://127.0.0.1:1/", "http://localhost/", "http://[::1]:80/"} {
		c := good
		c.URL = u
		if _, err := approvals.NewWebhook(c); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
}

func TestHookSecret(t *testing.T) {
	t.Parallel()
	b64 := base64.StdEncoding.EncodeToString
	for _, bad := range []string{"", "whsec_", "whsec_" + b64(make([]byte, 23)), "whsec_" + b64(make([]byte, 65)), b64(make([]byte, 32)), "whsec_!!!!hush"} {
		if _, err := approvals.ParseHookSecret(bad); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	s := secret(t)
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if got := fmt.Sprintf(format, s); strings.Contains(got, "MDEy") || strings.Contains(got, "012345") || strings.Contains(got, "48, 49") {
			t.Errorf("%s shows the secret: %s", format, got)
		}
	}
	if got, err := json.Marshal(s); err != nil || strings.Contains(string(got), "MDEy") {
		t.Errorf("JSON: %s, %v", got, err)
	}

	// The example of the Standard Webhooks specification's reference tests.
	s, err := approvals.ParseHookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1614265330, 0)
	body := []byte(`{"test": 2432232314}`)
	header := func() http.Header {
		return http.Header{
			"Webhook-Id": {"msg_p5jXN8AQM9LWM0D4loKWxJek"}, "Webhook-Timestamp": {"1614265330"},
			"Webhook-Signature": {"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
		}
	}
	if err := s.Verify(header(), body, at); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change func(http.Header)
		body   string
		later  time.Duration
		ok     bool
	}{
		"several":          {change: func(h http.Header) { h.Set("Webhook-Signature", "v1,AAAA v2,x "+h.Get("Webhook-Signature")) }, ok: true},
		"four minutes":     {later: 4 * time.Minute, ok: true},
		"old":              {later: 6 * time.Minute},
		"of the future":    {later: -6 * time.Minute},
		"another body":     {body: `{"test": 2432232315}`},
		"another id":       {change: func(h http.Header) { h.Set("Webhook-Id", "msg_2") }},
		"another time":     {change: func(h http.Header) { h.Set("Webhook-Timestamp", "1614265331") }},
		"no signature":     {change: func(h http.Header) { h.Del("Webhook-Signature") }},
		"no id":            {change: func(h http.Header) { h.Del("Webhook-Id") }},
		"no time":          {change: func(h http.Header) { h.Del("Webhook-Timestamp") }},
		"two ids":          {change: func(h http.Header) { h.Add("Webhook-Id", "msg_2") }},
		"no version":       {change: func(h http.Header) { h.Set("Webhook-Signature", strings.TrimPrefix(h.Get("Webhook-Signature"), "v1,")) }},
		"another version":  {change: func(h http.Header) { h.Set("Webhook-Signature", "v2"+h.Get("Webhook-Signature")[2:]) }},
		"a part":           {change: func(h http.Header) { h.Set("Webhook-Signature", h.Get("Webhook-Signature")[:20]) }},
		"an odd timestamp": {change: func(h http.Header) { h.Set("Webhook-Timestamp", "1614265330.0") }},
	} {
		h := header()
		if tt.change != nil {
			tt.change(h)
		}
		b := body
		if tt.body != "" {
			b = []byte(tt.body)
		}
		if err := s.Verify(h, b, at.Add(tt.later)); (err == nil) != tt.ok || err != nil && !errors.Is(err, approvals.ErrHookSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (approvals.HookSecret{}).Verify(header(), body, at); err == nil {
		t.Errorf("no secret verifies")
	}
}

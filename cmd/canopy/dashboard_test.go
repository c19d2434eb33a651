package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// served runs canopy dashboard until the test ends, and returns its address and
// what it said on standard error, which is whole once stop has returned.
func (w *world) served(args ...string) (addr string, stop func() (int, string)) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	out, in := io.Pipe()
	var said strings.Builder
	code := make(chan int, 1)
	go func() {
		defer in.Close()
		code <- run(ctx, append([]string{"--config", w.config, "dashboard", "--listen", "127.0.0.1:0"}, args...), strings.NewReader(""), in, &said)
	}()
	r := bufio.NewReader(out)
	line, err := r.ReadString('\n')
	if err != nil {
		cancel()
		w.t.Fatalf("it ended with %d: %s", <-code, said.String())
	}
	go io.Copy(io.Discard, r)
	stop = func() (int, string) {
		cancel()
		select {
		case c := <-code:
			code <- c
			return c, said.String()
		case <-time.After(10 * time.Second):
			w.t.Fatal("it does not end")
			return 0, ""
		}
	}
	w.t.Cleanup(func() { stop() })
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "The page is at "), "/"), stop
}

// A person lets a payment go on the page that the program serves, and the
// program's next call pays it; a restart of the page ends its sessions.
func TestDashboard(t *testing.T) {
	t.Parallel()
	w, _ := connected(t, canopytest.Route{Pattern: "GET /dear", Price: 2 * payment.Dollar})
	addr, stop := w.served("--every", "1s")
	w.want(3, "fetch", w.url+"/dear")
	list := w.want(0, "approvals", "list").out
	id := regexp.MustCompile(`appr_[0-9A-Z]{26}`).FindString(list)

	credential := regexp.MustCompile(`canopy_ana_[a-z2-7]+`).FindString(w.want(0, "approvers", "add", "ana").out)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Jar: jar}
	read := func(resp *http.Response, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v\n%s", resp.Status, err, b)
		}
		return string(b)
	}
	page := read(c.PostForm(addr+"/login", url.Values{"credential": {credential}}))
	contains(t, page, "Agent <em>default</em> asks to pay", "$2.00", id)
	form := url.Values{"answer": {"approve"}, "reason": {"it is right"}}
	for _, m := range regexp.MustCompile(`type="hidden" name="(token|terms)" value="([^"]+)"`).FindAllStringSubmatch(page[strings.Index(page, `action="/approvals/`):], -1) {
		form.Set(m[1], m[2])
	}
	contains(t, read(c.PostForm(addr+"/approvals/"+id, form)), "Approved", "by ana", "it is right")
	contains(t, w.want(0, "fetch", w.url+"/dear").err, "paid $2.00")
	contains(t, read(c.Get(addr+"/ledger")), "GET "+w.url+"/dear", "claimed")

	// It asks the chains by itself.
	w.chain.Finalize()
	for end := time.Now().Add(20 * time.Second); !strings.Contains(read(c.Get(addr+"/ledger?state=settled")), "/dear"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the payment is not settled")
		}
	}
	code, said := stop()
	if code != 0 {
		t.Errorf("it ends with %d: %s", code, said)
	}
	contains(t, said, "Nobody may log in yet", "approvers add NAME")
	if strings.Contains(said, credential) {
		t.Errorf("it says a credential")
	}
}

// Other machines are let in by those who mean it, and over TLS.
func TestDashboardListens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--listen", "0.0.0.0:0"}, "say --remote where you mean it"},
		{[]string{"--listen", "[::]:0"}, "say --remote"},
		{[]string{"--listen", ":0"}, "say --remote"},
		{[]string{"--listen", "localhost.evil.example:0"}, "say --remote"},
		{[]string{"--listen", "0.0.0.0:0", "--remote"}, "needs --tls-cert and --tls-key"},
		{[]string{"--listen", "0.0.0.0:0", "--remote", "--tls-cert", "x"}, "go together"},
		{[]string{"--listen", "0.0.0.0:0", "--remote", "--tls-cert", "x", "--tls-key", "y"}, "--tls-cert"},
		{[]string{"--remote"}, "this machine alone"},
		{[]string{"--listen", "8402"}, "it is an address such as"},
		{[]string{"--every", "0"}, "at least 1s"},
		{[]string{"more"}, ""},
	} {
		contains(t, w.want(2, append([]string{"dashboard"}, tt.args...)...).err, tt.want)
	}
	_, stop := w.served("--json")
	if code, said := stop(); code != 0 {
		t.Errorf("it ends with %d: %s", code, said)
	}
}

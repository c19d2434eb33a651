//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestBinaryPays goes through a day with the program: prices, purchases, an approval, a full cap, a freeze,
// the record.
func TestBinaryPays(t *testing.T) {
	eachSeller(t, func(t *testing.T, s *Seller) {
		sh := newShell(t, shared.Chain, shellPolicy, allowLoopback, 20_000_000)
		defer sh.reckon(t)
		moves := func(units uint64, f func()) { t.Helper(); sh.chain.Moves(t, s.PayTo, units, f) }

		moves(0, func() {
			sh.run(t, 0, "ping").has(t, sh.payer.Address.Hex())
			sh.run(t, 0, "check", s.URL+"/cent").has(t, "allowed", "$0.01", s.PayTo.Hex())
			sh.run(t, 3, "check", s.URL+"/six").has(t, "Amount $6.00 exceeds approval threshold of $5")
			sh.run(t, 0, "check", s.URL+"/free").has(t, "free")
			var check struct {
				Status, Rail, Scheme, Network string
				ChainID                       uint64
				AmountUSD                     json.Number
				Recipient                     struct{ Address string }
			}
			sh.run(t, 0, "check", "--json", s.URL+"/subcent").json(t, &check)
			if check.Status != "allowed" || check.Rail != "x402" || check.Scheme != "exact" || check.ChainID != 8453 ||
				check.AmountUSD != "0.0005" || check.Recipient.Address != s.PayTo.Hex() {
				t.Errorf("check %+v", check)
			}
			sh.run(t, 0, "ledger", "list").has(t, "No payments")
		})

		moves(10_000, func() {
			r := sh.run(t, 0, "fetch", s.URL+"/cent?q=1").has(t, "paid $0.01", "tx 0x")
			if r.out != `{"path":"/cent","query":{"q":"1"}}` {
				t.Errorf("%s\nwant the body and nothing else on standard output", r)
			}
		})
		moves(20_000, func() {
			r := sh.run(t, 0, "fetch", "-s", "-X", "POST", "-H", "Content-Type: text/x-e2e", "-d", "hello, seller", s.URL+"/echo")
			if r.out != "hello, seller" || r.err != "" {
				t.Errorf("%s\nwant the body and nothing else", r)
			}
		})
		moves(20_000, func() {
			r := sh.run(t, 0, "fetch", "-i", "--data", "hello", s.URL+"/echo").has(t, "HTTP/1.1 200 OK\n", "Content-Type: ")
			if !strings.HasSuffix(r.out, "\n\nhello") {
				t.Errorf("%s\nwant headers, an empty line and the body", r)
			}
		})
		moves(30_000, func() {
			sh.run(t, 0, "fetch", "-o", "stream.txt", s.URL+"/stream")
			if got, err := os.ReadFile(filepath.Join(sh.dir, "stream.txt")); err != nil || string(got) != lines {
				t.Errorf("stream.txt has %d bytes, %v, want %d", len(got), err, len(lines))
			}
		})
		moves(500, func() {
			var got struct {
				Status        int
				Headers       map[string]string
				ContentLength int64 `json:"content_length"`
				Body          string
				BodyEncoding  string `json:"body_encoding"`
				Truncated     bool
				TransactionID string      `json:"transaction_id"`
				CostUSD       json.Number `json:"cost_usd"`
				PaymentState  string      `json:"payment_state"`
			}
			sh.run(t, 0, "--json", "fetch", s.URL+"/subcent").json(t, &got)
			if got.Status != 200 || got.Body != `{"path":"/subcent","query":{}}` || got.BodyEncoding != "text" || got.Truncated ||
				got.ContentLength != int64(len(got.Body)) || got.CostUSD != "0.0005" || got.PaymentState != "claimed" ||
				!strings.HasPrefix(got.Headers["content-type"], "application/json") {
				t.Errorf("%+v", got)
			}
			sh.run(t, 0, "ledger", "show", got.TransactionID).has(t, got.TransactionID, "$0.0005", "claimed")
		})

		// Denied by the caller, by the policy; nothing moves.
		moves(0, func() {
			sh.run(t, 4, "fetch", "--max-price", "0.01", s.URL+"/two").has(t, "denied: Amount $2.00 exceeds the caller's maximum of $0.01")
			var denied struct{ Status, Reason string }
			sh.run(t, 4, "fetch", "--json", strings.Replace(s.URL, "127.0.0.1", "localhost", 1)+"/cent").json(t, &denied)
			if denied.Status != "denied" || !strings.Contains(denied.Reason, "localhost") {
				t.Errorf("%+v", denied)
			}
		})

		// Over the threshold: pending, approved, paid once.
		var approval string
		moves(0, func() {
			r := sh.run(t, 3, "fetch", s.URL+"/six").has(t, "waits for approval: Amount $6.00 exceeds approval threshold of $5")
			approval = regexp.MustCompile(`appr_[0-9A-Z]{26}`).FindString(r.err)
			var asked struct {
				Status     string
				ApprovalID string      `json:"approval_id"`
				AmountUSD  json.Number `json:"amount_usd"`
			}
			sh.run(t, 3, "fetch", "--json", s.URL+"/six").json(t, &asked)
			if asked.Status != "pending_approval" || asked.ApprovalID != approval || asked.AmountUSD != "6" && asked.AmountUSD != "6.00" {
				t.Errorf("%+v, want approval %s", asked, approval)
			}
			sh.run(t, 0, "approvals", "list").has(t, approval, "$6.00", s.URL+"/six")
			sh.run(t, 0, "approvals", "show", approval).has(t, s.PayTo.Hex(), "$6.00")
			sh.run(t, 2, "approvals", "approve", approval, "--by", "ana").has(t, "--yes")
			sh.run(t, 3, "fetch", "-q", s.URL+"/six")
			sh.run(t, 0, "approvals", "approve", approval, "--by", "ana", "--yes").has(t, approval)
		})
		moves(6_000_000, func() {
			sh.run(t, 0, "fetch", s.URL+"/six").has(t, "paid $6.00")
		})
		moves(0, func() {
			// The cap has no room for it again: denied beats pending.
			sh.run(t, 4, "fetch", s.URL+"/six").has(t, "denied: Spend cap exceeded: $6.0805 + $6.00 > $9 / 24h")
		})
		moves(2_000_000, func() {
			sh.run(t, 0, "fetch", s.URL+"/two")
			sh.run(t, 4, "fetch", s.URL+"/two").has(t, "denied: Spend cap exceeded: $8.0805 + $2.00 > $9 / 24h")
		})
		var budget struct{ CapUSD, SpentUSD, RemainingUSD json.Number }
		sh.run(t, 0, "budget", "--json").json(t, &budget)
		if budget.SpentUSD != "8.0805" || budget.RemainingUSD != "0.9195" {
			t.Errorf("%+v", budget)
		}
		sh.run(t, 0, "budget").has(t, "$9 / 24h", "$8.0805", "$0.9195")

		// A key is one purchase.
		moves(10_000, func() {
			sh.run(t, 0, "fetch", "--key", "k1", s.URL+"/cent")
			sh.run(t, 6, "fetch", "--key", "k1", s.URL+"/cent").has(t, "was made and delivered before")
			sh.run(t, 1, "fetch", "--key", "k1", s.URL+"/two").has(t, "key")
		})

		moves(0, func() {
			sh.run(t, 0, "freeze", "--reason", "lunch")
			sh.run(t, 4, "fetch", s.URL+"/cent").has(t, "denied: Payments are frozen: lunch")
			sh.run(t, 0, "unfreeze", "--reason", "back")
		})
		moves(10_000, func() { sh.run(t, 0, "fetch", "-o", "-", s.URL+"/cent") })

		var list []struct {
			State   string
			CostUSD json.Number
		}
		sh.run(t, 0, "ledger", "list", "--state", "claimed", "--json").json(t, &list)
		if len(list) != 9 {
			t.Errorf("%d claimed payments, want 9", len(list))
		}
		sh.run(t, 0, "ledger", "list").has(t, "claimed", "denied", "$6.00")
		sh.run(t, 0, "ledger", "verify").has(t, "All is well.")
	})
}

// TestBinaryWaits starts a fetch that waits, and approves it from another process.
func TestBinaryWaits(t *testing.T) {
	s := shared.V2
	sh := newShell(t, shared.Chain, shellPolicy, allowLoopback, 20_000_000)
	defer sh.reckon(t)
	sh.chain.Moves(t, s.PayTo, 6_000_000, func() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			r := sh.run(t, 0, "fetch", "--wait", "20s", s.URL+"/six").has(t, "paid $6.00")
			if r.out != `{"path":"/six","query":{}}` {
				t.Errorf("%s", r)
			}
		}()
		defer func() { <-done }()
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			var list []struct{ ApprovalID string }
			sh.run(t, 0, "approvals", "list", "--json").json(t, &list)
			if len(list) == 1 {
				sh.run(t, 0, "approvals", "approve", list[0].ApprovalID, "--by", "ana", "--yes")
				return
			}
		}
		t.Error("no approval to rule on")
	})
	sh.chain.Moves(t, s.PayTo, 0, func() {
		sh.run(t, 3, "fetch", "--ask", "--wait", "200ms", s.URL+"/cent").has(t, "waits for approval")
	})
}

// TestBinaryAtOnce runs the program twelve times at once, on an account that had no ledger yet: exactly what
// fits is bought.
func TestBinaryAtOnce(t *testing.T) {
	eachSeller(t, func(t *testing.T, s *Seller) {
		sh := newShell(t, shared.Chain, shellPolicy, allowLoopback, 50_000_000)
		defer sh.reckon(t)
		sh.chain.Moves(t, s.PayTo, 8_000_000, func() {
			var wg sync.WaitGroup
			codes := make([]int, 12)
			for i := range codes {
				wg.Go(func() {
					r := sh.exec(t, 0, "fetch", s.URL+"/two")
					if codes[i] = r.code; r.code == 4 {
						r.has(t, "denied: Spend cap exceeded: $8.00 + $2.00 > $9 / 24h")
					} else if r.code != 0 {
						t.Errorf("%s", r)
					}
				})
			}
			wg.Wait()
			bought := 0
			for _, code := range codes {
				if code == 0 {
					bought++
				}
			}
			if bought != 4 {
				t.Errorf("%d bought, want 4", bought)
			}
		})
		// With one key all of them make one purchase: whoever is late is told that it is under way, or made.
		sh.chain.Moves(t, s.PayTo, 10_000, func() {
			var wg sync.WaitGroup
			var got atomic.Int32
			for range 8 {
				wg.Go(func() {
					switch r := sh.exec(t, 0, "fetch", "--key", "one", s.URL+"/cent"); r.code {
					case 0:
						got.Add(1)
					case 1:
						r.has(t, "in flight")
					case 6:
						r.has(t, "was made and delivered before")
					default:
						t.Errorf("%s", r)
					}
				})
			}
			wg.Wait()
			if got.Load() == 0 {
				t.Error("nobody got the content")
			}
		})
	})
}

// TestBinaryTellsDoubt has the exit codes of payments that did not end well.
func TestBinaryTellsDoubt(t *testing.T) {
	ownSellers(t, func(t *testing.T, s *Seller) {
		sh := newShell(t, shared.Chain, shellPolicy, allowLoopback, 1_000_000)
		defer sh.reckon(t)
		var doubt struct {
			Status, Error, Code string
			TransactionID       string      `json:"transaction_id"`
			AmountUSD           json.Number `json:"amount_usd"`
			SafeAfter           time.Time   `json:"safe_after"`
		}
		sh.chain.Moves(t, s.PayTo, 0, func() {
			r := sh.run(t, 5, "fetch", s.URL+"/broken").has(t, "in doubt", "The seller answered 500")
			if r.out != `{"error":"broken on purpose"}` {
				t.Errorf("%s\nwant the seller's answer", r)
			}
		})
		sh.chain.Moves(t, s.PayTo, 10_000, func() {
			sh.run(t, 5, "fetch", "--json", "--max-time", "1", s.URL+"/slow").json(t, &doubt)
			if doubt.Status != "error" || doubt.Code != "in_doubt" || doubt.AmountUSD != "0.01" || doubt.SafeAfter.Before(time.Now()) {
				t.Errorf("%+v", doubt)
			}
			sh.chain.settled(t, sh.payer.Address)
			sh.run(t, 0, "ledger", "list", "--state", "in_doubt").has(t, doubt.TransactionID)
			// The v2 seller says that it was paid; the v1 seller says nothing, and the chain is not asked.
			code := map[int]int{2: 6, 1: 5}[s.Version]
			sh.run(t, code, "fetch", s.URL+"/slow").has(t, doubt.TransactionID)
		})
		sh.chain.Moves(t, s.PayTo, 10_000, func() {
			r := sh.exec(t, time.Second, "fetch", s.URL+"/slow?ctrl-c").has(t, "is in doubt", "interrupt")
			if r.code != 5 {
				t.Errorf("%s\nwant exit code 5", r)
			}
			sh.chain.settled(t, sh.payer.Address)
		})
		if s.Version == 2 {
			sh.chain.Moves(t, s.PayTo, 10_000, func() {
				r := sh.run(t, 6, "fetch", s.URL+"/upfront-broken").has(t, "paid $0.01", "The seller answered 500")
				if r.out != `{"error":"broken on purpose"}` {
					t.Errorf("%s\nwant the seller's answer", r)
				}
			})
		}
		if s.Version == 2 { // its seller's claim has to be set aside in so many words
			sh.run(t, 2, "ledger", "resolve", doubt.TransactionID, "--unused", "--reason", "none", "--yes").has(t, "--despite-claim")
		}
		sh.run(t, 1, "ledger", "resolve", doubt.TransactionID, "--unused", "--reason", "none", "--yes", "--despite-claim")
		sh.run(t, 0, "ledger", "verify")
	})
}

// TestBinaryDialsNoLoopback keeps the program from this machine unless the configuration lists it.
func TestBinaryDialsNoLoopback(t *testing.T) {
	s := shared.V2
	sh := newShell(t, shared.Chain, shellPolicy, "", 1_000_000)
	served := s.Served(t, "GET /free")
	sh.chain.Moves(t, s.PayTo, 0, func() {
		for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
			url := strings.Replace(s.URL, "127.0.0.1", host, 1)
			for _, command := range []string{"fetch", "check"} {
				for _, path := range []string{"/cent", "/free"} {
					sh.run(t, 1, command, url+path).has(t, "not a public address", "allow_private")
				}
			}
		}
	})
	if got := s.Served(t, "GET /free"); got != served {
		t.Errorf("the seller was reached %d times", got-served)
	}
	sh.run(t, 0, "ledger", "list").has(t, "No payments")
}

// TestBinaryWithoutKey runs without a key: what looks works, what pays is denied.
func TestBinaryWithoutKey(t *testing.T) {
	s := shared.V2
	sh := newShell(t, shared.Chain, shellPolicy, allowLoopback, 1_000_000)
	doc, err := os.ReadFile(filepath.Join(sh.dir, "canopy.toml"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "[network]")
	if err := os.WriteFile(filepath.Join(sh.dir, "canopy.toml"), []byte("[network]"+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	sh.chain.Moves(t, s.PayTo, 0, func() {
		sh.run(t, 4, "fetch", s.URL+"/cent").has(t, "no key to pay with")
		r := sh.run(t, 0, "fetch", s.URL+"/free")
		if r.out != `{"path":"/free","query":{}}` {
			t.Errorf("%s", r)
		}
		sh.run(t, 2, "fetch").has(t, "canopy fetch --help")
		sh.run(t, 2, "fetch", "--config", "nowhere.toml", s.URL+"/cent").has(t, "nowhere.toml")
	})
}

package dashboard_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/sqlite"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// BenchmarkFirstPaint opens each page on a ledger of 1,000,000 payments of a
// month in SQLite, of which 20 wait for a person: from the request to the last
// byte. PAYMENTS makes another number of them; LEDGER keeps the ledger in a
// folder for the next run.
func BenchmarkFirstPaint(b *testing.B) {
	n := 1_000_000
	if s := os.Getenv("PAYMENTS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			b.Fatal(err)
		}
	}
	dir := os.Getenv("LEDGER")
	if dir == "" {
		dir = b.TempDir()
	}
	path := filepath.Join(dir, "canopy.db")
	_, err := os.Stat(path)
	made := os.IsNotExist(err)
	w := newWorld(b, func(c *canopytest.Clock) ledger.Store {
		s, err := sqlite.Open(path, sqlite.Options{Now: c.Now})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		return s
	})
	if made {
		past(b, w, n)
	}
	w.clock.Set(noon)
	wait(b, w)
	name := "ana" + strconv.FormatInt(time.Now().UnixNano(), 36)
	br := w.in(w.hire(name))
	pending, err := w.store.Approvals().List(b.Context(), "", true, w.clock.Now())
	if err != nil || len(pending) != 20 {
		b.Fatalf("%d wait for a person, %v", len(pending), err)
	}
	for _, page := range []string{"/", "/approvals/" + string(pending[0].ID), "/spending", "/ledger", "/ledger?host=feed.example&agent=scout", "/ledger?text=no+such+text", "/ledger?state=cancelled", "/ledger?agent=nobody", "/policy", "/freeze"} {
		b.Run(page, func(b *testing.B) {
			var slowest time.Duration
			for range b.N {
				began := time.Now()
				br.want(page)
				slowest = max(slowest, time.Since(began))
			}
			b.ReportMetric(float64(slowest.Microseconds())/1000, "slowest-ms")
		})
	}
}

// past makes n payments of the month before noon, many at once, and 20 that wait
// for a person.
func past(tb testing.TB, w *world, n int) {
	tb.Helper()
	free, err := policy.Parse("wide", []byte(wide))
	if err != nil {
		tb.Fatal(err)
	}
	began := noon.Add(-29 * 24 * time.Hour)
	const batch = 512
	for at := 0; at < n; at += batch {
		w.clock.Set(began.Add(time.Duration(at) * (29 * 24 * time.Hour / time.Duration(n))))
		errs := make(chan error, batch)
		for i := at; i < min(n, at+batch); i++ {
			go func() {
				agent := []string{"trader", "careful", "scout"}[i%3]
				host := fmt.Sprintf("h%d.example", i%200)
				if i%10 == 0 {
					host = "feed.example"
				}
				now := w.clock.Now()
				t := terms(host, fmt.Sprintf("/q/%d", i%50), payment.USD(1000+i%9000))
				t.Recipients[0].Address[1] = byte(i % 200)
				p := payment.Payment{ID: payment.NewID(now), Agent: agent, Terms: t, Host: host, Port: 443, Purpose: "a look at it"}
				e, _, err := w.store.Reserve(context.Background(), ledger.Request{
					Payment: p, Verdict: free.Evaluate(p, now, policy.History{}), Payer: payer, Now: now, Began: now, Validity: time.Minute,
					Slot: payment.Slot{Kind: payment.SlotEVM}, Fingerprint: payment.Hash{byte(i), byte(i >> 8), byte(i >> 16), 2},
				})
				if err == nil {
					_, err = w.store.Advance(context.Background(), ledger.Change{
						ID: e.ID, Version: e.Version, To: ledger.Claimed, By: ledger.ByClient, Now: now, HTTP: 200, Delivered: true, Sent: 1,
						Receipt: &payment.Receipt{Claim: payment.ClaimPaid, TxHash: "0xfeed"},
					})
				}
				errs <- err
			}()
		}
		for i := at; i < min(n, at+batch); i++ {
			if err := <-errs; err != nil {
				tb.Fatal(err)
			}
		}
	}
}

// wide is the policy of the page with caps that never bind: what is paid by it
// keeps the counters that the page reads.
var wide = strings.NewReplacer("$100 /", "$1000000000 /", "$60 /", "$1000000000 /", "20 payments", "100000000 payments", "$30 /", "$1000000000 /").Replace(document)

// wait has 20 payments wait for a person, at 20 hosts, where none does yet.
func wait(tb testing.TB, w *world) {
	tb.Helper()
	list, err := w.store.Approvals().List(tb.Context(), "", true, w.clock.Now())
	if err != nil || len(list) > 0 {
		return
	}
	own := w.policy
	defer func() { w.policy = own }()
	if w.policy, err = policy.Parse("wide", []byte(wide)); err != nil {
		tb.Fatal(err)
	}
	w.serial = 1 << 20
	for i := range 20 {
		agent, host := []string{"trader", "careful", "scout"}[i%3], fmt.Sprintf("h%d.example", i+1)
		t := terms(host, "/dear", payment.USD(6+i)*payment.Dollar)
		t.Recipients[0].Address[1] = byte(i + 1)
		t.Recipients[0].Amount, t.Amount = payment.UnitsOf(1), payment.UnitsOf(1)
		if e := w.ask(agent, t, ""); e.State != ledger.Authorized {
			tb.Fatalf("it is %s: %v", e.State, e.Reasons)
		}
		n := payment.UnitsOf(uint64(payment.USD(6+i) * payment.Dollar))
		t.Recipients = []payment.Recipient{{Address: t.Recipients[0].Address, Amount: n}}
		t.Amount = n
		if e := w.ask(agent, t, "the weekly report"); e.State != ledger.PendingApproval {
			tb.Fatalf("it is %s: %v", e.State, e.Reasons)
		}
	}
}

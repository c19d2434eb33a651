package canopy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

const report = 7*payment.Dollar + 50*payment.Cent

// pending fails the test unless g waits for a person.
func (w *world) pending(g got) *canopy.PendingError {
	w.t.Helper()
	p := as[*canopy.PendingError](w.t, g.err)
	r := p.Result
	if r.Status != canopy.PendingApproval || !r.ApprovalID.Valid() || !r.PaymentID.Valid() || r.ExpiresAt.IsZero() || r.Reason == "" {
		w.t.Errorf("pending as %+v", r)
	}
	return p
}

// Above the threshold a person is asked; the same call then carries it out, and
// only once. I7.
func TestApprovedCallIsCarriedOutOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		s, url := w.sells(report)
		p := w.pending(w.get(url))
		if want := "Amount $7.50 exceeds approval threshold of $5"; p.Result.Reason != want || p.Result.Code != "approval_threshold" {
			t.Errorf("reason %q (%s), want %q", p.Result.Reason, p.Result.Code, want)
		}
		w.counted(0)
		w.signed(0)
		if again := w.pending(w.get(url)); again.Result.ApprovalID != p.Result.ApprovalID {
			t.Error("an equal call asks again")
		}
		w.rule(p.Result.ApprovalID, true)
		g := w.bought(w.get(url))
		if g.paid.PaymentID != p.Result.PaymentID || g.paid.ApprovalID != p.Result.ApprovalID {
			t.Errorf("carried out as %+v", g.paid)
		}
		if next := w.pending(w.get(url)); next.Result.ApprovalID == p.Result.ApprovalID {
			t.Error("the approval was used twice")
		}
		w.handed(s, 1)
		w.spent(report)
	})
}

// 16 equal calls after an approval: one is carried out.
func TestApprovalIsUsedOnceByManyCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		s, url := w.sells(report, canopytest.Always(canopytest.Delay(time.Second).At(canopytest.OnPaid)))
		w.rule(w.pending(w.get(url)).Result.ApprovalID, true)
		paid := 0
		for _, g := range w.atOnce(16, func(int) got { return w.get(url) }) {
			if g.err == nil {
				paid++
			}
		}
		if paid != 1 {
			t.Errorf("%d calls paid on one approval", paid)
		}
		w.handed(s, 1)
		w.spent(report)
	})
}

// Dearer, cheaper or for somebody else: what was approved is what is signed, so
// a person is asked again. Attacks 9 and 10.
func TestAttack10_ChangeAfterApproval(t *testing.T) {
	for name, change := range map[string]func(*canopytest.Seller){
		"price up by a cent": func(s *canopytest.Seller) { s.SetPrice("GET /goods/", report+payment.Cent) },
		"price down":         func(s *canopytest.Seller) { s.SetPrice("GET /goods/", report-payment.Cent) },
		"other payee":        func(s *canopytest.Seller) { s.SetPayTo("GET /goods/", canopytest.Address("thief")) },
		"shorter validity": func(s *canopytest.Seller) {
			s.SetFaults("", canopytest.Plan{canopytest.Always(canopytest.OtherTimeout(30 * time.Second))})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				s, url := w.sells(report)
				first := w.pending(w.get(url, canopy.WithKey("k")))
				w.rule(first.Result.ApprovalID, true)
				change(s)
				second := w.pending(w.get(url, canopy.WithKey("k")))
				if second.Result.ApprovalID == first.Result.ApprovalID {
					t.Error("the old approval was taken for the new terms")
				}
				w.signed(0)
				w.handed(s, 0)
			})
		})
	}
}

func TestWithWait(t *testing.T) {
	const wait = 10 * time.Minute
	for name, tc := range map[string]struct {
		person func(w *world, id canopy.ApprovalID)
		check  func(w *world, g got)
		after  time.Duration
	}{
		"approved": {func(w *world, id canopy.ApprovalID) { w.rule(id, true) }, func(w *world, g got) { w.bought(g); w.spent(report) }, 90 * time.Second},
		"denied": {func(w *world, id canopy.ApprovalID) { w.rule(id, false) }, func(w *world, g got) {
			if d := w.denied(g, "rejected"); d.Result.State != ledger.Rejected {
				w.t.Errorf("denied as %+v", d.Result)
			}
		}, 90 * time.Second},
		"nobody": {func(*world, canopy.ApprovalID) {}, func(w *world, g got) { w.pending(g) }, wait},
		"expired": {func(w *world, id canopy.ApprovalID) { w.clock.Advance(25 * time.Hour) }, func(w *world, g got) {
			if d := w.denied(g, "approval_expired"); d.Result.State != ledger.ApprovalExpired {
				w.t.Errorf("denied as %+v", d.Result)
			}
		}, 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				asked := make(chan canopy.ApprovalID, 8)
				w := newWorld(t, setup{config: func(_ *world, c *canopy.Config) {
					c.Channels = []approvals.Channel{approvals.ChannelFunc(func(_ context.Context, a canopy.Approval) error { asked <- a.ID; return nil })}
				}})
				_, url := w.sells(report)
				var wg sync.WaitGroup
				wg.Go(func() {
					id := <-asked
					time.Sleep(90 * time.Second)
					tc.person(w, id)
				})
				start := time.Now()
				tc.check(w, w.get(url, canopy.WithWait(wait)))
				if took := time.Since(start); took < tc.after || took > tc.after+2*time.Second {
					t.Errorf("it took %v, want %v", took, tc.after)
				}
				wg.Wait()
				if len(asked) != 0 {
					t.Error("a person was asked twice")
				}
			})
		})
	}
}

// While a person thinks the price rises: the person is asked about the new one.
func TestWithWaitAsksAgainAboutAnotherPrice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		asked := make(chan canopy.Approval, 8)
		w := newWorld(t, setup{config: func(_ *world, c *canopy.Config) {
			c.Channels = []approvals.Channel{approvals.ChannelFunc(func(_ context.Context, a canopy.Approval) error { asked <- a; return nil })}
		}})
		s, url := w.sells(report)
		var wg sync.WaitGroup
		wg.Go(func() {
			first := <-asked
			s.SetPrice("GET /goods/", report+payment.Cent)
			w.rule(first.ID, true)
			second := <-asked
			if second.Cost != report+payment.Cent {
				t.Errorf("asked about %v", second.Cost)
			}
			w.rule(second.ID, true)
		})
		g := w.bought(w.get(url, canopy.WithWait(time.Hour)))
		wg.Wait()
		if g.paid.Amount != report+payment.Cent {
			t.Errorf("paid %v", g.paid.Amount)
		}
		w.handed(s, 1)
		w.spent(report + payment.Cent)
	})
}

// With a body that is sent three times: unpaid, afresh, and paid.
func TestWithWaitSendsTheBodyAfresh(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: func(w *world, c *canopy.Config) {
			c.Channels = []approvals.Channel{approvals.ChannelFunc(func(_ context.Context, a canopy.Approval) error { w.rule(a.ID, true); return nil })}
		}})
		s, url := w.sells(report)
		w.bought(w.do(w.request("POST", url, onlyReader{strings.NewReader("hello")}), canopy.WithWait(time.Minute)))
		if n := len(s.Requests()); n != 3 {
			t.Errorf("%d requests, want 3", n)
		}
		for _, r := range s.Requests() {
			if string(r.Body) != "hello" {
				t.Errorf("the seller got %q", r.Body)
			}
		}
	})
}

func TestWithWaitCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, url := w.sells(report)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := w.client.Fetch(ctx, w.request("GET", url, nil), canopy.WithWait(time.Hour))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		w.pending(got{err: err}) // it still waits for a person
		w.signed(0)
	})
}

// The record keeps the purpose that the person saw, whatever the call says that
// carries the payment out.
func TestApprovedPurposeStays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, url := w.sells(report)
		p := w.pending(w.get(url, canopy.WithPurpose("the quarterly report")))
		w.rule(p.Result.ApprovalID, true)
		g := w.bought(w.get(url, canopy.WithPurpose("something else")))
		e, err := w.store.Entry(t.Context(), g.paid.PaymentID)
		if err != nil || e.Purpose != "the quarterly report" {
			t.Errorf("purpose %q, %v", e.Purpose, err)
		}
	})
}

// What was approved is taken although something cheaper is offered by now.
func TestApprovedOfferIsTakenFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		dear := entry(`"1000"`, `"7500000"`)
		offers := []string{dear}
		url := w.handler(func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("PAYMENT-SIGNATURE") == "" {
				challenge(terms(offers...), "{}")(rw, r)
			}
		})
		p := w.pending(w.get(url))
		w.rule(p.Result.ApprovalID, true)
		offers = []string{entry(), dear}
		if g := w.get(url); g.err != nil || g.paid.Amount != report || g.paid.PaymentID != p.Result.PaymentID {
			t.Errorf("got %+v", g)
		}
		if g := w.get(url); g.err != nil || g.paid.Amount != 1000 {
			t.Errorf("got %+v", g)
		}
	})
}

// While a person thinks the page becomes free: nothing is paid.
func TestWithWaitForWhatIsFreeByNow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var s *canopytest.Seller
		w := newWorld(t, setup{config: func(w *world, c *canopy.Config) {
			c.Channels = []approvals.Channel{approvals.ChannelFunc(func(_ context.Context, a canopy.Approval) error {
				s.SetPrice("GET /goods/", 0)
				w.rule(a.ID, true)
				return nil
			})}
		}})
		seller, url := w.sells(report)
		s = seller
		if g := w.get(url, canopy.WithWait(time.Minute)); g.err != nil || g.StatusCode != 200 || g.cost {
			t.Errorf("got %+v", g)
		}
		w.signed(0)
	})
}

// Approved while the cap is full: denied for now, and the approval is not spent.
func TestApprovedWhileTheCapIsFull(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: "[policy.default]\nmax_payment=\"$10\"\ncaps=[\"$10 / 1h\"]\napprove_above=\"$5\"\napproval_ttl=\"24h\"\nallow=[\"*\"]\n"})
		s, url := w.sells(report)
		p := w.pending(w.get(url))
		s.SetPrice("GET /goods/", 4*payment.Dollar)
		w.bought(w.get(url + "/other"))
		s.SetPrice("GET /goods/", report)
		w.rule(p.Result.ApprovalID, true)
		w.denied(w.get(url), "cap_exceeded")
		a, err := w.client.ApprovalStatus(w.context(), p.Result.ApprovalID)
		if err != nil || a.Status != ledger.ApprovalGranted || !a.UsedAt.IsZero() {
			t.Errorf("the approval is %+v, %v", a, err)
		}
		w.clock.Advance(61 * time.Minute)
		w.bought(w.get(url))
		w.spent(4*payment.Dollar + report)
	})
}

// Frozen after the approval: nothing is signed, and the approval stays unspent.
func TestApprovedWhileFrozen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, url := w.sells(report)
		p := w.pending(w.get(url))
		w.rule(p.Result.ApprovalID, true)
		must(t, w.client.Freeze(w.context(), "lunch"))
		if d := w.denied(w.get(url), "frozen"); !strings.Contains(d.Error(), "lunch") {
			t.Errorf("denied as %v", d)
		}
		w.signed(0)
		must(t, w.store.(ledger.Freezer).Unfreeze(w.context(), "tester", "ana", "back"))
		w.bought(w.get(url))
	})
}

func TestWithApprovalAsksAlways(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, url := w.sells(payment.Cent)
		if p := w.pending(w.get(url, canopy.WithApproval(), canopy.WithPurpose("a quote"))); p.Result.Code != "asked" {
			t.Errorf("pending as %+v", p.Result)
		}
		w.denied(w.get("http://127.0.0.1:8402/goods/x", canopy.WithApproval(), canopy.WithMaxPrice(1)), "max_price")
	})
}

// Who asks cannot answer; another agent's approvals are not there. Attacks 53,
// 56 and 60.
func TestAttack56_ApprovalsAreOfTheirAgent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, url := w.sells(report)
		id := w.pending(w.get(url)).Result.ApprovalID
		if _, err := w.client.Decide(w.context(), id, canopy.Ruling{Approve: true, By: "tester"}); !errors.Is(err, canopy.ErrNoApprovers) {
			t.Errorf("the client ruled: %v", err)
		}
		desk := approvals.NewDesk(w.store, "test", w.clock.Now)
		if _, err := desk.Rule(w.context(), id, canopy.Ruling{Approve: true, By: "tester"}); !errors.Is(err, ledger.ErrSelf) {
			t.Errorf("the agent ruled on its own: %v", err)
		}
		other := newWorld(t, setup{config: func(_ *world, c *canopy.Config) { c.Agent, c.Store = "other", w.store }})
		if _, err := other.client.ApprovalStatus(w.context(), id); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("another agent sees it: %v", err)
		}
		w.rule(id, true)
		other.net.Serve(t, "127.0.0.1:8402", canopytest.NewSeller(w.chain, canopytest.SellerConfig{Routes: []canopytest.Route{{Pattern: "GET /goods/", Price: report}}}))
		if p := other.pending(other.get(url)); p.Result.ApprovalID == id {
			t.Error("another agent joins the approval")
		}
		other.signed(0)
		for _, bad := range []canopy.ApprovalID{"", "appr_", "../x", "appr_01HZZZZZZZZZZZZZZZZZZZZZZZ", canopy.ApprovalID(strings.Repeat("a", 1e5))} {
			if _, err := w.client.ApprovalStatus(w.context(), bad); !errors.Is(err, ledger.ErrNotFound) || len(err.Error()) > 300 {
				t.Errorf("status of %.20q: %v", bad, err)
			}
			if _, err := w.client.WaitForApproval(w.context(), bad); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("waiting for %.20q: %v", bad, err)
			}
		}
	})
}

// More than max_pending payments are not put to people. Attack 57.
func TestAttack57_PendingIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, url := w.sells(report)
		for i := range 25 {
			g := w.get(fmt.Sprintf("%s/%d", url, i))
			if i < 20 {
				w.pending(g)
			} else {
				w.denied(g, "too_many_pending")
			}
		}
	})
}

// A channel that fails, hangs or panics lowers nothing.
func TestChannelsThatFail(t *testing.T) {
	for name, f := range map[string]approvals.ChannelFunc{
		"error": func(context.Context, canopy.Approval) error { return errors.New("no network") },
		"panic": func(context.Context, canopy.Approval) error { panic("bug") },
		"hangs": func(ctx context.Context, _ canopy.Approval) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{config: func(_ *world, c *canopy.Config) { c.Channels = []approvals.Channel{f} }})
				_, url := w.sells(report)
				start := w.clock.Now()
				w.pending(w.get(url))
				if took := w.clock.Now().Sub(start); took > 6*time.Second {
					t.Errorf("it took %v", took)
				}
				if !strings.Contains(w.logs.String(), "approval channel failed") {
					t.Errorf("logged %s", w.logs)
				}
			})
		})
	}
}

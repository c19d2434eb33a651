package canopy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// keyed is an open policy with more keys.
func keyed(keys string) string {
	return "[policy.default]\nmax_payment = \"$10\"\ncaps = [\"$100 / 24h\"]\nallow = [\"*\"]\n" + keys + "\n"
}

// TestNewPayee: the first payment to somebody waits for a person, once; who asks
// to be paid elsewhere is new again.
func TestNewPayee(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: keyed(`new_payee = "approve"`)})
		s, url := w.sells(payment.Dollar)
		check, err := w.client.CheckURL(w.context(), url)
		if err != nil || check.Status != canopy.PendingApproval || check.Code != policy.CodeNewPayee {
			t.Errorf("check: %+v, %v", check, err)
		}
		p := w.pending(w.get(url))
		if want := "Payee " + canopytest.Address("seller").String() + " of http://127.0.0.1:8402 was never paid before"; p.Result.Reason != want {
			t.Errorf("reason %q, want %q", p.Result.Reason, want)
		}
		other := w.pending(w.get(url + "0")) // its own approval: nobody has paid yet
		w.rule(p.Result.ApprovalID, true)
		if again := w.pending(w.get(url + "00")); again.Result.ApprovalID == p.Result.ApprovalID {
			t.Error("another call joined the approval")
		}
		w.bought(w.get(url))
		w.bought(w.get(url + "000")) // known
		w.rule(other.Result.ApprovalID, true)
		w.bought(w.get(url + "0"))

		s.SetPayTo("GET /goods/", canopytest.Address("elsewhere"))
		changed := w.pending(w.get(url + "1"))
		if !strings.Contains(changed.Result.Reason, canopytest.Address("elsewhere").String()) {
			t.Errorf("reason %q", changed.Result.Reason)
		}
		s.SetPayTo("GET /goods/", canopytest.Address("seller"))
		w.bought(w.get(url + "2"))
		_, second := w.serve("127.0.0.1:8403", canopytest.SellerConfig{Routes: []canopytest.Route{{Pattern: "GET /goods/", Price: payment.Dollar}}})
		w.pending(w.get(second + "/goods/1")) // the same payee on another origin
	})
}

// TestNewPayeeDenied: with "deny" only those who were paid before are.
func TestNewPayeeDenied(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: keyed("")})
		s, url := w.sells(payment.Dollar)
		w.bought(w.get(url))
		strict, err := policy.Parse("strict", []byte(keyed(`new_payee = "deny"`)))
		must(t, err)
		w.cfg.Policy = strict
		w.client, err = canopy.New(w.cfg)
		must(t, err)
		w.bought(w.get(url + "0"))
		s.SetPayTo("GET /goods/", canopytest.Address("elsewhere"))
		d := w.denied(w.get(url+"1"), policy.CodeNewPayee)
		if !strings.HasSuffix(d.Result.Reason, "was never paid before, and new payees are denied") {
			t.Errorf("reason %q", d.Result.Reason)
		}
	})
}

// TestNewPayeeRace: of many first payments at once none is made without a
// person, whether they are equal or not.
func TestNewPayeeRace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: keyed("new_payee = \"approve\"\nmax_pending = 100")})
		s, url := w.sells(payment.Dollar)
		ids := map[canopy.ApprovalID]bool{}
		for _, g := range w.atOnce(40, func(i int) got { return w.get(url + fmt.Sprint(i%20)) }) {
			ids[w.pending(g).Result.ApprovalID] = true
		}
		if len(ids) != 20 {
			t.Errorf("%d approvals for 20 different calls, two of each", len(ids))
		}
		w.signed(0)
		w.handed(s, 0)
	})
}

// TestPriceJump: a place that costs far more than the last time waits for a
// person, with both figures.
func TestPriceJump(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: keyed(`price_jump = "3x"`)})
		s, url := w.sells(payment.Dollar)
		w.bought(w.get(url))
		s.SetPrice("GET /goods/", 3*payment.Dollar)
		w.bought(w.get(url + "?page=2")) // three times is not above three times
		s.SetPrice("GET /goods/", 9*payment.Dollar+1)
		p := w.pending(w.get(url))
		if want := "Price jumped: $9.000001 is more than 3x the $3.00 paid before"; p.Result.Reason != want || p.Result.Code != policy.CodePriceJump {
			t.Errorf("reason %q (%s), want %q", p.Result.Reason, p.Result.Code, want)
		}
		r := p.Result.Reasons[0]
		if r.Used != 3*payment.Dollar || r.Limit != 9*payment.Dollar || r.Cost != 9*payment.Dollar+1 {
			t.Errorf("figures %+v", r)
		}
		w.bought(w.get(url + "1")) // another path, which was never paid
		w.rule(p.Result.ApprovalID, true)
		w.bought(w.get(url)) // and is the last price from now on
		w.bought(w.get(url))
	})
}

// Row 62: what stays just below the threshold adds up, and a person is asked;
// one by one, and all at once.
func TestAttack62_ThresholdHugging(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: keyed("approve_above = \"$5\"\napprove_above_total = \"$15 / 24h per host\"")})
		_, url := w.sells(499 * payment.Cent)
		paid, asked := 0, 0
		for i := range 10 {
			g := w.get(url + fmt.Sprint(i))
			if g.err == nil {
				w.bought(g)
				paid++
				continue
			}
			if p := w.pending(g); p.Result.Reason != "Approval total exceeded: $14.97 + $4.99 > $15 / 24h per host" {
				t.Errorf("reason %q", p.Result.Reason)
			}
			asked++
		}
		if paid != 3 || asked != 7 {
			t.Errorf("of 10 payments of $4.99 %d were paid and %d asked for, want 3 and 7", paid, asked)
		}
		w.spent(3 * 499 * payment.Cent)
		w.clock.Advance(24*time.Hour + 2*time.Minute)
		w.bought(w.get(url + "next"))
	})
	bubbleSub(t, "at once", func(t *testing.T) {
		w := newWorld(t, setup{policy: keyed("approve_above = \"$5\"\napprove_above_total = [\"$15 / 24h per host\", \"$15 / day per payee\"]")})
		_, url := w.sells(499 * payment.Cent)
		paid := 0
		for _, g := range w.atOnce(10, func(i int) got { return w.get(url + fmt.Sprint(i)) }) {
			if g.err == nil {
				w.bought(g)
				paid++
			} else {
				w.pending(g)
			}
		}
		if paid != 3 {
			t.Errorf("of 10 payments of $4.99 at once %d were paid, want 3", paid)
		}
		w.spent(3 * 499 * payment.Cent)
	})
}

// Row 50: no text of a seller, and none of the agent's own, decides about hours,
// totals, payees and prices.
func TestAttack50_HabitsReadNoText(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: keyed("new_payee = \"approve\"\nprice_jump = \"2x\"\napprove_above_total = \"$4 / ever per host\"\nmax_pending = 10000\nhours = \"Mon-Sun\"")})
		s, url := w.sells(payment.Dollar)
		for range 2 {
			w.rule(w.pending(w.get(url)).Result.ApprovalID, true)
			w.bought(w.get(url)) // who asks to be paid elsewhere below is somebody new
			s.SetPayTo("GET /goods/", canopytest.Address("other"))
		}
		s.SetPayTo("GET /goods/", canopytest.Address("seller"))
		for i, text := range canopytest.HostileTexts() {
			if i%4 > 0 {
				continue
			}
			long := len(text) > 1<<10
			s.SetFaults("", canopytest.Plan{canopytest.Always(canopytest.HostileText(text))})
			purpose := canopy.WithPurpose("buy it")
			if !long && raw(text) == 0 {
				purpose = canopy.WithPurpose(text)
			}
			codes := func(price payment.USD, to string) string {
				s.SetPrice("GET /goods/", price)
				s.SetPayTo("GET /goods/", canopytest.Address(to))
				check, err := w.client.CheckURL(w.context(), fmt.Sprintf("%s?n=%d&price=%d&to=%s", url, i, price, to), purpose)
				must(t, err)
				out := check.Status.String()
				for _, r := range check.Reasons {
					out += " " + r.Code
				}
				return out
			}
			got := codes(payment.Dollar, "seller") + "; " + codes(3*payment.Dollar, "seller") + "; " + codes(payment.Dollar, fmt.Sprint("stranger", i))
			want := "allowed; pending_approval price_jump approval_total; pending_approval new_payee"
			if got != want && !strings.Contains(got, "no_usable_offer") {
				t.Errorf("with %.60q: %s, want %s", text, got, want)
			}
		}
	})
}

// Row 93: a clock that is set into the hours opens nothing.
func TestAttack93_ClockSetIntoTheHours(t *testing.T) {
	for _, step := range []time.Duration{-12 * time.Hour, 12 * time.Hour, -48 * time.Hour, 48 * time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			var s *canopytest.Seller
			var url string
			play(t, setup{policy: keyed(`hours = "08:00-20:00"`), begin: ticking}, func(t *testing.T, w *world) {
				s, url = w.sells(dime)
				at := w.clock.Now().UTC()
				w.clock.Advance(time.Date(at.Year(), at.Month(), at.Day()+1, 10, 0, 0, 0, time.UTC).Sub(at))
				must(t, w.store.(ledger.Acker).Ack(t.Context(), "ana", "the day of the test"))
				w.bought(w.get(url))
				if step%(24*time.Hour) != 0 {
					time.Sleep(12 * time.Hour) // it is night now
					w.denied(w.get(url+"0"), policy.CodeOutsideHours)
				}
				w.clock.Advance(step)
				if g := w.get(url + "1"); !errors.Is(g.err, canopy.ErrClockSkew) {
					t.Errorf("got %+v, want ErrClockSkew", g)
				}
				w.handed(s, 1)
			})
		})
	}
}

// TestOutsideHours: denied until the next opening, also where a person said yes
// before.
func TestOutsideHours(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: keyed("hours = \"Mon-Fri 08:00-20:00 Europe/Berlin\"\napprove_above = \"$5\"")})
		berlin, err := time.LoadLocation("Europe/Berlin")
		must(t, err)
		until := func(h int) { // the next Monday, or the day itself, at that hour
			at := w.clock.Now().In(berlin)
			next := time.Date(at.Year(), at.Month(), at.Day()+(8-int(at.Weekday()))%7, h, 0, 0, 0, berlin)
			if !next.After(at) {
				next = next.AddDate(0, 0, 7)
			}
			w.clock.Advance(next.Sub(at))
		}
		s, url := w.sells(payment.Dollar)
		until(9)
		w.bought(w.get(url))
		s.SetPrice("GET /goods/", 6*payment.Dollar)
		p := w.pending(w.get(url))
		w.rule(p.Result.ApprovalID, true)
		w.clock.Advance(11 * time.Hour) // 20:00 is not within
		d := w.denied(w.get(url), policy.CodeOutsideHours)
		opens := time.Date(w.clock.Now().Year(), w.clock.Now().Month(), w.clock.Now().Day()+1, 8, 0, 0, 0, berlin)
		if want := "Payments by policy default are made Mon-Fri 08:00-20:00 Europe/Berlin only"; d.Result.Reason != want || !d.Result.Reasons[0].Until.Equal(opens) {
			t.Errorf("%q until %v, want %q until %v", d.Result.Reason, d.Result.Reasons[0].Until, want, opens)
		}
		w.clock.Advance(12 * time.Hour)
		w.bought(w.get(url))
	})
}

// TestShadow: a policy in shadow pays what it would deny or ask, and says so;
// what is not its own to soften stays.
func TestShadow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: `
[org]
caps = ["$8 / 24h"]
[policy.default]
mode          = "shadow"
max_payment   = "$2"
caps          = ["$1 / 24h", "1 payment / 24h"]
approve_above = "$1"
new_payee     = "approve"
deny          = ["host:127.0.0.1"]
hours         = "02:00-02:01"
`})
		if !strings.Contains(w.logs.String(), "in shadow") || !strings.Contains(w.logs.String(), "level=WARN") {
			t.Errorf("the log: %s", w.logs)
		}
		s, url := w.sells(3 * payment.Dollar)
		g := w.bought(w.get(url))
		if g.paid.Reason != "" || g.paid.Status != canopy.Allowed {
			t.Errorf("paid as %+v", g.paid)
		}
		status, why, ok := g.paid.Shadow()
		if !ok || status != canopy.Denied || !strings.HasPrefix(why, "Payments by policy default are made") {
			t.Errorf("would have been %v: %q, %v", status, why, ok)
		}
		e, err := w.store.Entry(t.Context(), g.paid.PaymentID)
		must(t, err)
		var codes []string
		for _, r := range e.Reasons {
			if !r.Shadow {
				t.Errorf("a reason that decided: %+v", r)
			}
			codes = append(codes, r.Code)
		}
		if got, want := strings.Join(codes, " "), "outside_hours denied_destination not_allowed max_payment cap_exceeded approval_threshold new_payee"; got != want {
			t.Errorf("recorded %s\nwant     %s", got, want)
		}
		w.bought(w.get(url + "0"))
		d := w.denied(w.get(url+"1"), policy.CodeCapExceeded) // that of [org]
		if d.Result.Reason != "Spend cap exceeded: $6.00 + $3.00 > $8 / 24h" {
			t.Errorf("reason %q", d.Result.Reason)
		}
		s.SetPrice("GET /goods/", payment.Dollar)
		as[*canopy.DeniedError](t, w.get(url+"2", canopy.WithMaxPrice(payment.Cent)).err)
		w.pending(w.get(url+"3", canopy.WithApproval()))
		must(t, w.client.Freeze(t.Context(), "stop"))
		w.denied(w.get(url+"4"), ledger.CodeFrozen)
	})
}

// TestBudgetOfCapsOnly: what only asks, and what is in shadow, leaves no less.
func TestBudgetOfCapsOnly(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]int{"approve_above_total = [\"$1 / 24h\", \"2 payments / 1h\"]": 2, "mode = \"shadow\"": 1} {
		w := newWorld(t, setup{policy: "[org]\ncaps = [\"$50 / 24h\"]\n" + keyed(keys)})
		b, err := w.client.Budget(t.Context())
		must(t, err)
		if len(b.Caps) != want || b.Remaining != 50*payment.Dollar {
			t.Errorf("%s: %v left, caps %v", keys, b.Remaining, b.Caps)
		}
	}
}

// forgetful is a store without a memory of payees.
type forgetful struct{ ledger.Store }

// TestNoPast: a policy that asks what was paid is refused where nobody can tell.
func TestNoPast(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]bool{`new_payee = "deny"`: false, `price_jump = "2x"`: false, ``: true} {
		rules, err := policy.Parse("p", []byte(keyed(keys)))
		must(t, err)
		_, err = canopy.New(canopy.Config{Policy: rules, Store: forgetful{ledger.NewMemory(ledger.Options{})}})
		if (err == nil) != want {
			t.Errorf("%q: %v", keys, err)
		}
	}
	broken := errors.New("the disk is gone")
	bubbleSub(t, "a ledger that fails", func(t *testing.T) {
		w := newWorld(t, setup{policy: keyed(`new_payee = "approve"`), store: func(s ledger.Store) ledger.Store { return unread{s, broken} }})
		_, url := w.sells(payment.Dollar)
		if g := w.get(url); !errors.Is(g.err, broken) {
			t.Errorf("got %v", g.err)
		}
		w.signed(0)
	})
}

// unread is a store that cannot tell what was paid.
type unread struct {
	ledger.Store
	err error
}

func (u unread) Past(context.Context, policy.Scope, payment.Terms) (policy.Past, error) {
	return policy.Past{}, u.err
}

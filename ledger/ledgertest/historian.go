package ledgertest

import (
	"fmt"
	"strings"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// historian is the power of the store to tell what was spent and paid before.
func (w *world) historian() ledger.Historian {
	w.Helper()
	h, ok := w.s.(ledger.Historian)
	if !ok {
		w.Fatalf("the store is no ledger.Historian")
	}
	return h
}

// spending is what the store answers to q, as text.
func (w *world) spending(q ledger.SpendingQuery, want ...string) {
	w.Helper()
	all, err := w.historian().Spending(w.ctx, q)
	if err != nil {
		w.Fatalf("Spending: %v", err)
	}
	var got []string
	for _, s := range all {
		day := ""
		if !s.Day.IsZero() {
			day = s.Day.Format("01-02")
		}
		got = append(got, fmt.Sprintf("%s/%s/%s %v %d", day, s.Agent, s.Host, s.USD, s.Count))
	}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		w.Errorf("%+v gives\n\t%q, want\n\t%q", q, got, want)
	}
}

// testSpending sums what counts by day, agent and host, and follows every move.
func testSpending(w *world) {
	w.spending(ledger.SpendingQuery{})
	one := w.allow(w.fetch(usd(2*payment.Dollar), watched(), path("/1")))
	w.allow(w.fetch(usd(500_001), agent("other"), path("/2")))
	w.in(ledger.Denied)
	asked := w.ask(w.fetch(asks(), usd(7*payment.Dollar), path("/3")))
	w.clock.Advance(20 * time.Hour)
	w.allow(w.fetch(usd(payment.Dollar), host("news.example"), path("/4")))
	w.allow(w.pay(usd(3*payment.Dollar), path("")))

	all := ledger.SpendingQuery{Days: true, Agents: true, Hosts: true}
	w.spending(all, "03-05/trader/ $3.00 1", "03-04/trader/feed.example $2.00 1", "03-05/trader/news.example $1.00 1", "03-04/other/feed.example $0.500001 1")
	w.spending(ledger.SpendingQuery{}, "// $6.500001 4")
	w.spending(ledger.SpendingQuery{Days: true}, "03-05// $4.00 2", "03-04// $2.500001 2")
	w.spending(ledger.SpendingQuery{Agents: true}, "/trader/ $6.00 3", "/other/ $0.500001 1")
	w.spending(ledger.SpendingQuery{Hosts: true, Limit: 2}, "// $3.00 1", "//feed.example $2.500001 2")
	w.spending(ledger.SpendingQuery{Agent: "other", Days: true}, "03-04// $0.500001 1")
	w.spending(ledger.SpendingQuery{Agent: "nobody"})
	w.spending(ledger.SpendingQuery{Since: w.now()}, "// $4.00 2")
	w.spending(ledger.SpendingQuery{Until: w.now().Add(-24 * time.Hour)}, "// $2.500001 2")
	w.spending(ledger.SpendingQuery{Since: w.now().Add(24 * time.Hour)})

	// An approved payment is of the day on which it was asked for.
	w.decide(asked, true)
	w.spending(ledger.SpendingQuery{Days: true}, "03-05// $4.00 2", "03-04// $2.500001 2")
	w.allow(w.fetch(asks(), usd(7*payment.Dollar), path("/3")))
	w.spending(ledger.SpendingQuery{Days: true}, "03-04// $9.500001 3", "03-05// $4.00 2")

	// What is released counts no more, and a fee that was less makes it less.
	one = w.move(one, ledger.InDoubt, ledger.ByClient)
	w.spending(ledger.SpendingQuery{Days: true}, "03-04// $9.500001 3", "03-05// $4.00 2")
	w.move(one, ledger.ExpiredUnused, ledger.ByChain)
	w.spending(ledger.SpendingQuery{Days: true}, "03-04// $7.500001 2", "03-05// $4.00 2")
	w.verify()

	// No sum is too large: not that of the largest amounts.
	for i := range 3 {
		w.allow(w.fetch(usd(payment.MaxUSD/2), agent("whale"), path(fmt.Sprint("/", i))))
	}
	w.spending(ledger.SpendingQuery{Agent: "whale"}, fmt.Sprintf("// %v 3", payment.MaxUSD))
	w.verify()
	if w.o.Durable {
		_ = w.s.Close()
		w.s = w.open()
		w.spending(ledger.SpendingQuery{Agent: "other"}, "// $0.500001 1")
	}
}

// testPaid finds what was paid before to a host and to a payee.
func testPaid(w *world) {
	a, b := payment.Address{19: 0x0a}, payment.Address{19: 0x0b}
	var ids []payment.ID
	add := func(e ledger.Entry) ledger.Entry {
		ids = append(ids, e.ID)
		w.clock.Advance(time.Minute)
		return e
	}
	add(w.allow(w.fetch(payees(a), path("/0"))))
	add(w.allow(w.fetch(payees(b, a), path("/1"))))
	add(w.in(ledger.Denied, payees(a)))
	add(w.allow(w.fetch(payees(a), host("news.example"), agent("other"), path("/3"))))
	add(w.ask(w.fetch(payees(a), asks(), path("/4"))))
	gone := add(w.allow(w.fetch(payees(a), watched(), path("/5"))))
	add(w.allow(w.fetch(payees(b), watched(), path("/6"))))
	gone = w.move(gone, ledger.InDoubt, ledger.ByClient)

	want := func(what string, got []ledger.Entry, err error, want ...int) {
		w.Helper()
		var is []int
		for _, e := range got {
			for i, id := range ids {
				if id == e.ID {
					is = append(is, i)
				}
			}
		}
		if err != nil || fmt.Sprint(is) != fmt.Sprint(want) {
			w.Errorf("%s: %v, %v; want %v", what, is, err, want)
		}
	}
	h := w.historian()
	got, err := h.PaidPayee(w.ctx, a, 10)
	want("payee a", got, err, 5, 3, 1, 0)
	w.move(gone, ledger.ExpiredUnused, ledger.ByChain)
	got, err = h.PaidPayee(w.ctx, a, 10)
	want("payee a after one was released", got, err, 3, 1, 0)
	got, err = h.PaidPayee(w.ctx, a, 2)
	want("two to payee a", got, err, 3, 1)
	got, err = h.PaidPayee(w.ctx, b, 10)
	want("payee b", got, err, 6, 1)
	got, err = h.PaidPayee(w.ctx, payment.Address{19: 0xff}, 10)
	want("a stranger", got, err)
	got, err = h.PaidHost(w.ctx, "trader", "feed.example", 10)
	want("the host", got, err, 6, 1, 0)
	got, err = h.PaidHost(w.ctx, "trader", "feed.example", 1)
	want("the last of the host", got, err, 6)
	got, err = h.PaidHost(w.ctx, "trader", "news.example", 10)
	want("another's host", got, err)
	got, err = h.PaidHost(w.ctx, "other", "news.example", 10)
	want("the other's host", got, err, 3)
	if len(got) == 1 {
		w.same(got[0], w.entry(ids[3]))
	}
}

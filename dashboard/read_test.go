package dashboard_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// spent makes payments of some days, agents and hosts.
func (w *world) spent() {
	w.Helper()
	for i := range 12 {
		agent := []string{"trader", "careful", "scout"}[i%3]
		host := []string{"feed.example", "search.example"}[i%2]
		if e := w.ask(agent, terms(host, fmt.Sprint("/", i), payment.USD(i+1)*100_000), "made by hand"); e.State != ledger.Authorized {
			w.Fatalf("it is %s: %v", e.State, e.Reasons)
		}
		if i%4 == 3 {
			w.clock.Advance(24 * time.Hour)
		}
	}
}

// What was spent is shown by day, by host and by agent, as a picture and as the
// same figures in words.
func TestSpending(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.hire("ana")
	w.in(c).want("/spending", "Nothing was spent in these days", "Everybody on this ledger", "$100 / 24h")
	w.spent()
	b := w.in(c)
	body := b.want("/spending", "The last 30 days: $7.80", "2026-03-04: $1.00 in 4", "2026-03-05: $2.60 in 4", "2026-03-06: $4.20 in 4",
		`<td data-label="Day">2026-03-05</td><td data-label="Spent" class="num">$2.60</td>`, "feed.example", "$3.60", "search.example", "$4.20",
		`<th scope="row">scout</th>`, "$3.00", "agents without a policy of their own", `role="img"`, "<desc", "The same as a table")
	if n := strings.Count(body, `<rect class="bar b0" x=`); n != 3 {
		t.Errorf("the agent who spent the most has %d bars, want 3", n)
	}
	body = b.want("/spending?agent=trader", "The last 30 days: $2.20", "$60 / 24h")
	if strings.Contains(body, `<th scope="row">scout</th>`) {
		t.Errorf("one agent's page tells of another")
	}
	if a := b.get("/spending?agent=" + url.QueryEscape("<script>")); a.status != http.StatusBadRequest || strings.Contains(a.body, "<script>") {
		t.Errorf("a name that is none: %d", a.status)
	}
	w.clock.Advance(30 * 24 * time.Hour)
	w.in(c).want("/spending", "The last 30 days: $0.00", "Nothing was spent in these days")
}

var rowLink = regexp.MustCompile(`href="/payments/([0-9A-Z]{26})"`)

// rows are the payments of a page of the ledger, and where the next one is.
func (b browser) rows(path string) (ids []string, next string) {
	b.Helper()
	body := b.want(path)
	for _, m := range rowLink.FindAllStringSubmatch(body, -1) {
		ids = append(ids, m[1])
	}
	if _, rest, ok := strings.Cut(body, `aria-label="Further payments"><a href="`); ok {
		next, _, _ = strings.Cut(rest, `"`)
		next = strings.ReplaceAll(next, "&amp;", "&")
	}
	return ids, next
}

// The ledger is read in pages, each payment once, and by what a person looks for.
func TestLedger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.hire("ana")
	w.in(c).want("/ledger", "No payment matches")
	w.spent()
	b := w.in(c)
	var all []string
	for i := range 110 {
		all = append([]string{string(w.ask("scout", terms("maps.example", fmt.Sprint("/tile/", i), 10_000), "").ID)}, all...)
	}
	var got []string
	for path := "/ledger?agent=scout&host=maps.example"; path != ""; {
		ids, next := b.rows(path)
		if len(ids) > 50 {
			t.Fatalf("a page has %d payments", len(ids))
		}
		got, path = append(got, ids...), next
	}
	if strings.Join(got, " ") != strings.Join(all, " ") {
		t.Errorf("the pages have %d payments, want the %d of the agent, the newest first", len(got), len(all))
	}
	for query, want := range map[string]int{
		"agent=trader": 4, "agent=nobody": 0, "host=search.example": 6, "host=SEARCH.example": 6, "state=authorized&agent=careful": 4, "state=settled": 0,
		"text=MADE+by&agent=trader": 4, "text=" + all[7]: 1, "text=" + strings.ToUpper(shop.String()) + "&agent=trader": 4, "text=tile/10&agent=scout": 11,
		"since=2026-03-06&agent=trader": 1, "until=2026-03-04&agent=trader": 2, "since=2026-03-05&until=2026-03-05": 4, "text=%25": 0,
	} {
		if ids, _ := b.rows("/ledger?" + query); len(ids) != want {
			t.Errorf("%s finds %d, want %d", query, len(ids), want)
		}
	}
	for _, query := range []string{"state=gone", "state=proposed", "since=yesterday", "after=x", "host=a%20b", "after=" + strings.Repeat("Z", 26)} {
		if a := b.get("/ledger?" + query); a.status != http.StatusBadRequest && a.status != http.StatusNotFound {
			t.Errorf("%s: %d", query, a.status)
		}
	}
	if a := b.get("/ledger?after=" + string(payment.NewID(noon))); a.status != http.StatusNotFound {
		t.Errorf("after a payment that is not there: %d", a.status)
	}
}

// An export is what the filter selects, oldest first, for other programs.
func TestExport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.hire("ana")
	w.spent()
	w.ask("trader", terms("feed.example", "/=1+1", 200_000), "=HYPERLINK(\"https://evil.example\")")
	b := w.in(c)
	a := b.get("/ledger/export.csv?agent=trader")
	table, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || len(table) != 6 || table[0][0] != "transaction_id" || table[1][4] != "0.10" || table[5][15] != `'=HYPERLINK("https://evil.example")` {
		t.Errorf("%v, %v", err, table)
	}
	if got := a.header.Get("Content-Disposition"); got != `attachment; filename="canopy.csv"` {
		t.Errorf("it is %s", got)
	}
	a = b.get("/ledger/export.jsonl?since=2026-03-05&until=2026-03-05")
	lines := strings.Split(strings.TrimSpace(a.body), "\n")
	for _, l := range lines {
		var e struct {
			TransactionID, State string
			Events               []any
		}
		if err := json.Unmarshal([]byte(l), &e); err != nil || e.State != "authorized" || len(e.Events) != 1 {
			t.Errorf("%v: %s", err, l)
		}
	}
	if len(lines) != 4 {
		t.Errorf("%d lines, want 4", len(lines))
	}
	if a := b.get("/ledger/export.csv?state=gone"); a.status != http.StatusBadRequest {
		t.Errorf("a wrong filter exports: %d", a.status)
	}
}

// One act stops everybody, and says who did it and why; another ends it.
func TestFreeze(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.in(w.hire("ana"))
	frozen := func() map[string]string {
		all, err := w.store.(ledger.Freezer).Freezes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	send := func(set url.Values) answer {
		f := b.form(b.want("/freeze"), "/freeze")
		for k, v := range set {
			f[k] = v
		}
		return b.post("/freeze", f)
	}
	if a := send(url.Values{"whom": {"all"}}); a.status != http.StatusBadRequest || len(frozen()) > 0 {
		t.Errorf("without a reason: %d", a.status)
	}
	if a := send(url.Values{"whom": {"one"}, "agent": {"no/agent"}, "reason": {"x"}}); a.status != http.StatusBadRequest || len(frozen()) > 0 {
		t.Errorf("of no agent: %d", a.status)
	}
	if a := send(url.Values{"whom": {"all"}, "reason": {"strange prices"}}); a.status != http.StatusSeeOther || frozen()[""] != "strange prices" {
		t.Fatalf("everybody: %d, %v", a.status, frozen())
	}
	if e := w.ask("trader", terms("feed.example", "/x", 100_000), ""); e.State != ledger.Denied {
		t.Errorf("a payment is %s", e.State)
	}
	body := b.want("/", "Frozen: everybody.", "strange prices")
	if strings.Count(body, "Frozen:") != 1 {
		t.Errorf("it is told more than once")
	}
	// The first form of the page ends it now.
	if a := send(url.Values{"reason": {"they explained"}}); a.status != http.StatusSeeOther || len(frozen()) > 0 {
		t.Errorf("ending it: %d, %v", a.status, frozen())
	}
	if a := send(url.Values{"whom": {"one"}, "agent": {"trader"}, "reason": {"x"}}); a.status != http.StatusSeeOther || frozen()["trader"] != "x" {
		t.Errorf("one agent: %d, %v", a.status, frozen())
	}
}

// A yes is undone by one act, as long as it is not carried out.
func TestUndo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.in(w.hire("ana"))
	e := w.pending("trader", 8*payment.Dollar)
	b.rule(e.ApprovalID, "approve", "")
	page := b.want("/approvals/"+string(e.ApprovalID), "A mistake?")
	if a := b.post("/freeze", b.form(page, "/freeze")); a.status != http.StatusSeeOther {
		t.Fatalf("the undoing: %d", a.status)
	}
	all, err := w.store.(ledger.Freezer).Freezes(t.Context())
	if err != nil || !strings.Contains(all["trader"], "was a mistake") {
		t.Errorf("frozen: %v, %v", all, err)
	}
}

// The policy is shown as it holds, with what its rules said lately.
func TestPolicyPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.hire("ana")
	w.in(c).want("/policy", "Nothing was decided yet", w.policy.Hash().String())
	w.ask("trader", terms("feed.example", "/x", 100_000), "")
	w.ask("trader", terms("feed.example", "/x", 51*payment.Dollar), "")
	e := w.pending("trader", 8*payment.Dollar)
	pin := func(h payment.Hash) {
		if err := w.store.(ledger.Pinner).Pin(t.Context(), ledger.Pin{Policy: h, By: "ben", At: w.clock.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	pin(w.policy.Hash())
	w.in(c).want("/policy", "Pinned: no other policy decides", "by ben")
	pin(payment.Hash{1})
	w.in(c).want("/policy", "This page read another policy than the one that is pinned")
	w.in(c).want("/policy", "Agent careful", "$30 / 24h per host", "ana, ben", "max_payment", "approve_above", "pending approval", "allowed", "denied",
		"/payments/"+string(e.ID), "[policy.default]")
}

// A page of a payment tells it from the request to the chain.
func TestPaymentPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.in(w.hire("ana"))
	e := w.ask("trader", terms("feed.example", "/x", 100_000), "a look")
	e, err := w.store.Advance(t.Context(), ledger.Change{
		ID: e.ID, Version: e.Version, To: ledger.Claimed, By: ledger.ByClient, Now: w.clock.Now(), HTTP: 200, Delivered: true, Sent: 1,
		Receipt: &payment.Receipt{Claim: payment.ClaimPaid, TxHash: "0xfeed"},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.want("/payments/"+string(e.ID), "Payment of $0.10", "claimed", "0xfeed", "a look", "authorized → claimed", e.TermsHash.String(), payer.String(),
		"The seller answered HTTP 200 and delivered", "It counts as spent")
	if a := b.get("/payments/" + string(payment.NewID(noon))); a.status != http.StatusNotFound {
		t.Errorf("a payment that is not there: %d", a.status)
	}
}

// A store that is closed, or slow to answer, is told of, and nothing else is
// said of it.
func TestLedgerFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.in(w.hire("ana"))
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range append(pages, "/approvals/appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2C") {
		if a := b.get(p); a.status != http.StatusInternalServerError || !strings.Contains(a.body, "The ledger could not be read") {
			t.Errorf("GET %s: %d", p, a.status)
		}
	}
}

// Budgets are shown as the tree that they are, with what is spent and what is
// given to parts.
func TestBudgets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.in(w.hire("ana"))
	if body := b.want("/spending"); strings.Contains(body, "Budgets") {
		t.Errorf("there are budgets before there are any")
	}
	power := w.store.(ledger.Budgeter)
	of := func(agent, name string, parent payment.BudgetID, limit payment.USD) payment.BudgetID {
		t.Helper()
		n, err := power.MakeBudget(t.Context(), ledger.NewBudget{
			ID: payment.NewBudgetID(w.clock.Now()), Agent: agent, Parent: parent, Name: name, Limit: limit, Now: w.clock.Now(),
		})
		if err != nil {
			t.Fatal(err)
		}
		return n.ID
	}
	trip := of("trader", "the <b>trip</b>", "", 20*payment.Dollar)
	of("trader", "hotels", trip, 12*payment.Dollar)
	maps := of("trader", "maps", trip, 3*payment.Dollar)
	if _, err := power.EndBudget(t.Context(), maps, "the work is done", w.clock.Now()); err != nil {
		t.Fatal(err)
	}
	of("scout", "another's", "", payment.Dollar)
	body := b.want("/spending", "the &lt;b&gt;trip&lt;/b&gt;", "$20.00", "given to parts $12.00", "left $8.00", "hotels", "left $12.00", "the work is done", "another&#39;s")
	whole, part := strings.Index(body, "the &lt;b&gt;trip"), strings.Index(body, "hotels")
	if part < whole || strings.Count(body[whole:part], `<ul class="tree">`) != 1 {
		t.Errorf("the part does not stand in the whole")
	}
	if body := b.want("/spending?agent=trader", "hotels"); strings.Contains(body, "another&#39;s") {
		t.Errorf("one agent's page tells another's budget")
	}
}

// A host that reads like another is told by its own letters, with a warning:
// attack 34.
func TestLookalikes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.in(w.hire("ana"))
	tm := terms("xn--80ak6aa92e.example", "/x", 8*payment.Dollar)
	w.ask("trader", tm, "")
	body := b.want("/", "to <em class=\"host\">xn--80ak6aa92e.example</em>", "Look twice", "reads as &#34;apple&#34;")
	if strings.Contains(body, "\u0430") {
		t.Errorf("the letters of the other alphabet are shown")
	}
}

package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/canopy-go/canopy/internal/host"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// What one page of the ledger shows, and how far a search for a text goes for it.
const (
	rowsOnPage = 50
	maxSearch  = 20_000
	searchTime = 2 * time.Second
)

// ledgerView is a page of the ledger.
type ledgerView struct {
	view
	Filter   filter
	Agents   []string
	States   []stateView
	Rows     []rowView
	Next     string // the address of what follows; empty at the end
	Searched string // until when a search got, where it did not get to the end
	CSV, All string // addresses of the exports
	Problem  string
}

type stateView struct{ Name, Words string }

type rowView struct {
	ID, Agent, State, Mood, Cost, For, Purpose string
	At                                         moment
}

// filter is what a page of the ledger is asked for.
type filter struct {
	Agent, Host, State, Text, Since, Until string
	After                                  payment.ID
}

// filterOf reads a filter; a problem is one of what was asked.
func (p *Page) filterOf(v url.Values) (f filter, q ledger.Query, err error) {
	f = filter{
		Agent: clean(v.Get("agent"), 100), Host: clean(v.Get("host"), 255), State: clean(v.Get("state"), 40), Text: clean(v.Get("text"), 200),
		Since: clean(v.Get("since"), 40), Until: clean(v.Get("until"), 40), After: payment.ID(v.Get("after")),
	}
	q = ledger.Query{Agent: f.Agent}
	if f.Agent != "" && policy.CheckName(f.Agent) != nil {
		return f, q, fmt.Errorf("%q is no agent's name", f.Agent)
	}
	if f.Host != "" {
		h, err := host.Normalize(f.Host)
		if err != nil {
			return f, q, fmt.Errorf("%q is no host", f.Host)
		}
		q.Host = h.Name
	}
	if f.State != "" {
		state, err := ledger.ParseState(f.State)
		if err != nil || state == ledger.Proposed {
			return f, q, fmt.Errorf("%q is no state", f.State)
		}
		q.States = []ledger.State{state}
	}
	for _, t := range []struct {
		text string
		to   *time.Time
		add  time.Duration
	}{{f.Since, &q.Since, 0}, {f.Until, &q.Until, 24 * time.Hour}} {
		if t.text == "" {
			continue
		}
		at, err := time.ParseInLocation(time.DateOnly, t.text, p.cfg.Zone)
		if err != nil {
			return f, q, fmt.Errorf("%q is no date such as 2026-05-08", t.text)
		}
		*t.to = at.Add(t.add)
	}
	if f.After != "" && !f.After.Valid() {
		f.After = ""
		return f, q, fmt.Errorf("that is no payment's id")
	}
	q.After = f.After
	return f, q, nil
}

// address is where a page of f is, beginning after a payment.
func (f filter) address(path string, after payment.ID) string {
	v := url.Values{}
	for _, kv := range [][2]string{
		{"agent", f.Agent}, {"host", f.Host}, {"state", f.State}, {"text", f.Text}, {"since", f.Since}, {"until", f.Until}, {"after", string(after)},
	} {
		if kv[1] != "" {
			v.Set(kv[0], kv[1])
		}
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

func (p *Page) ledgerPage(w http.ResponseWriter, r *http.Request, s *session) {
	f, q, err := p.filterOf(r.URL.Query())
	v := ledgerView{view: p.view(r, s, "Ledger", "ledger"), Filter: f, Agents: p.agents()}
	for st := ledger.Proposed + 1; st <= ledger.NeedsOperator; st++ {
		v.States = append(v.States, stateView{st.String(), words(st.String())})
	}
	v.CSV, v.All = f.address("/ledger/export.csv", ""), f.address("/ledger/export.jsonl", "")
	if err != nil {
		v.Problem = err.Error()
		p.render(w, r, http.StatusBadRequest, "ledger", v)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 4*searchTime)
	defer cancel()
	began, seen := time.Now(), 0
	var last ledger.Entry
	q.Limit = rowsOnPage + 1
	if f.Text != "" {
		q.Limit = maxSearch
	}
	for e, err := range p.cfg.Store.Entries(ctx, q) {
		if err != nil {
			p.broken(w, r, s, err)
			return
		}
		if len(v.Rows) == rowsOnPage {
			v.Next = f.address("/ledger", last.ID)
			break
		}
		seen++
		last = e
		if f.Text == "" || matches(e, f.Text) {
			v.Rows = append(v.Rows, p.row(e))
		}
		if f.Text != "" && (seen == maxSearch || time.Since(began) > searchTime) {
			v.Next, v.Searched = f.address("/ledger", last.ID), p.moment(e.CreatedAt).Text
			break
		}
	}
	p.render(w, r, http.StatusOK, "ledger", v)
}

func (p *Page) row(e ledger.Entry) rowView {
	return rowView{
		ID: string(e.ID), Agent: clean(e.Agent, 100), State: words(e.State.String()), Mood: mood(e.State), Cost: e.Cost.String(),
		For: what(e.Terms), Purpose: clean(e.Purpose, 200), At: p.moment(e.CreatedAt),
	}
}

// matches reports whether a payment has a text somewhere a person may look for
// it, whatever its case.
func matches(e ledger.Entry, text string) bool {
	text = strings.ToLower(text)
	in := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	for _, r := range e.Terms.Recipients {
		if in(r.Address.Lower()) {
			return true
		}
	}
	for _, r := range e.Reasons {
		if in(r.Code) || in(r.Text) {
			return true
		}
	}
	return in(string(e.ID)) || in(string(e.ApprovalID)) || in(e.Agent) || in(e.Purpose) || in(e.Terms.Origin+e.Terms.Target) ||
		in(e.Receipt.TxHash) || in(e.Note) || in(e.TermsHash.String()) || in(e.Key)
}

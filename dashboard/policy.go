package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// ruleView is a rule with the payments that it had its say on.
type ruleView struct {
	Code, Text string
	Status     string
	Count      int
	Last       []rowView
}

// lastDecisions are what the rules said of the newest payments, the most
// frequent first seen first.
func (p *Page) lastDecisions(ctx context.Context, look, each int) (rules []*ruleView, other int, err error) {
	at := map[string]*ruleView{}
	for e, err := range p.cfg.Store.Entries(ctx, ledger.Query{Limit: look}) {
		if err != nil {
			return nil, 0, err
		}
		if e.Policy != p.cfg.Policy.Hash() {
			other++
		}
		said := e.Reasons
		if len(said) == 0 {
			said = []policy.Reason{{Status: payment.Allowed, Code: "allowed", Text: "no rule had anything against it"}}
		}
		for _, r := range said {
			key := fmt.Sprint(r.Code, "\x00", r.Rule, "\x00", r.Status, r.Shadow)
			v := at[key]
			if v == nil {
				v = &ruleView{Code: clean(r.Code, 80), Text: clean(r.Rule, 200), Status: words(r.Status.String())}
				if r.Shadow {
					v.Status += ", in shadow"
				}
				at[key], rules = v, append(rules, v)
			}
			if v.Count++; len(v.Last) < each {
				row := p.row(e)
				row.Purpose = clean(r.Text, 300)
				v.Last = append(v.Last, row)
			}
		}
	}
	return rules, other, nil
}

// policyView is the policy, as text and as it is being applied.
type policyView struct {
	view
	Name, Hash, Document string
	Tables               []tableView
	Rules                []*ruleView
	Looked, Other        int
	Pin                  string // what an operator pinned; empty for nothing
	Unpinned             bool   // another policy than this is pinned
}

type tableView struct {
	Name string
	Rows [][2]string
}

// decisionsLooked is how many of the newest payments the page of the policy
// reads.
const decisionsLooked = 1000

func (p *Page) policyPage(w http.ResponseWriter, r *http.Request, s *session) {
	pol := p.cfg.Policy
	v := policyView{view: p.view(r, s, "Policy", "policy"), Name: clean(pol.Name(), 300), Hash: pol.Hash().String(), Document: pol.String(), Looked: decisionsLooked}
	for _, agent := range p.agents() {
		if t, ok := pol.Table(agent); ok {
			v.Tables = append(v.Tables, tableOf(agent, t))
		}
	}
	var err error
	if power, ok := p.cfg.Store.(ledger.Pinner); ok {
		pin, err := power.Pinned(r.Context())
		if err != nil {
			p.broken(w, r, s, err)
			return
		}
		if v.Unpinned = pin.Denies(pol.Hash()); !pin.Policy.IsZero() {
			v.Pin = pin.Policy.String() + ", by " + clean(pin.By, 100) + " on " + p.moment(pin.At).Text
		}
	}
	if v.Rules, v.Other, err = p.lastDecisions(r.Context(), decisionsLooked, 3); err != nil {
		p.broken(w, r, s, err)
		return
	}
	p.render(w, r, http.StatusOK, "policy", v)
}

// tableOf tells the keys of a table that are set, by the names of the document.
func tableOf(agent string, t policy.Table) tableView {
	v := tableView{Name: agent}
	add := func(key, value string) {
		if value != "" {
			v.Rows = append(v.Rows, [2]string{key, clean(value, 1000)})
		}
	}
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		b, _ := json.Marshal(n) // a number has no failure
		return string(b)
	}
	yes := func(on bool) string {
		if on {
			return "yes"
		}
		return ""
	}
	list := func(l []string) string { return strings.Join(l, ", ") }
	add("max_payment", t.MaxPayment)
	add("caps", list(t.Caps))
	add("approve_above", t.ApproveAbove)
	add("approve_above_total", list(t.ApproveAboveTotal))
	add("allow", list(t.Allow))
	add("deny", list(t.Deny))
	add("hours", list(t.Hours))
	add("new_payee", t.NewPayee)
	add("price_jump", t.PriceJump)
	add("approvers", list(t.Approvers))
	add("quorum", number(t.Quorum))
	add("mode", t.Mode)
	add("timezone", t.Timezone)
	add("max_validity", t.MaxValidity)
	add("duplicate_window", t.DuplicateWindow)
	add("approval_ttl", t.ApprovalTTL)
	add("max_pending", number(t.MaxPending))
	add("chat_approval", yes(t.ChatApproval))
	add("frozen", yes(t.Frozen))
	return v
}

package policy

import (
	"maps"
	"slices"
)

// Config is a policy as Go values. Its texts are those of the document: see
// docs/policy.md.
type Config struct {
	Name   string // of the policy, for people
	Org    Org
	Tables map[string]Table // by agent; Default judges agents without a table
}

// Org applies to every agent on the ledger.
type Org struct {
	Name     string
	Caps     []string // such as "$50 / 24h"; over the payments of all agents
	Timezone string   // of calendar windows; empty: UTC
	Frozen   bool     // denies everything
}

// Table is one agent's policy. An empty text, a nil slice, a 0 and a false are
// keys that are not given: they are inherited, or have their defaults.
type Table struct {
	From string // the table to inherit from; Deny and Rules add, other keys replace

	MaxPayment   string   // such as "$10"; empty: "$1". "$0" is a real limit
	Caps         []string // such as "$20 / 24h"; []string{"none"} for no cap
	ApproveAbove string   // such as "$5"; empty: no person is asked

	// ApproveAboveTotal asks a person where a payment would take a sum or a
	// number above one of these, such as "$15 / 24h per host".
	ApproveAboveTotal []string

	Allow    []string // such as "host:feed.example"; none allows nothing
	Deny     []string
	Frozen   bool
	Timezone string // of calendar windows, such as "Europe/Berlin"; empty: "UTC"

	MaxValidity     string // "10s" to "600s"; empty: "60s"
	DuplicateWindow string // empty: "10m"
	ApprovalTTL     string // empty: "24h"
	MaxPending      int    // 0: 20
	ChatApproval    bool   // may the agent's own host rule on approvals

	Approvers []string // who may rule, each with a credential of their own; none: whoever can open the ledger
	Quorum    int      // how many of Approvers have to say yes; 0: 1

	Hours     []string // when it may pay, such as "Mon-Fri 08:00-20:00 Europe/Berlin"; none: always
	NewPayee  string   // "approve" or "deny" the first payment to a payee on an origin; empty: as any other
	PriceJump string   // such as "3x": asks where a place costs more than that multiple of the last time; empty: never
	Mode      string   // "enforce" or "shadow": decide and record, never block; empty: "enforce"

	// Rules are checked in their order after those above. They can deny and
	// ask, and never allow. They have no text in a document.
	Rules []Rule
}

func (t Table) clone() Table {
	t.Caps, t.Allow, t.Deny, t.Rules = slices.Clone(t.Caps), slices.Clone(t.Allow), slices.Clone(t.Deny), slices.Clone(t.Rules)
	t.ApproveAboveTotal, t.Hours, t.Approvers = slices.Clone(t.ApproveAboveTotal), slices.Clone(t.Hours), slices.Clone(t.Approvers)
	return t
}

// clone shares nothing with c that can be changed.
func (c Config) clone() Config {
	c.Org.Caps = slices.Clone(c.Org.Caps)
	c.Tables = maps.Clone(c.Tables)
	for name, t := range c.Tables {
		c.Tables[name] = t.clone()
	}
	return c
}

// New makes a policy of Go values. Its errors name the field by its key in the
// document, such as policy.default.max_payment.
func New(c Config) (*Policy, error) {
	c = c.clone()
	d := document{name: c.Name, org: source{
		name: "org", caps: list(c.Org.Caps), timezone: text(c.Org.Timezone), frozen: flag{on: c.Org.Frozen, set: c.Org.Frozen},
	}, orgName: c.Org.Name, errs: errorList{}}
	for _, name := range slices.Sorted(maps.Keys(c.Tables)) {
		t := c.Tables[name]
		d.tables = append(d.tables, &source{
			name: name, from: text(t.From),
			maxPayment: text(t.MaxPayment), approveAbove: text(t.ApproveAbove), timezone: text(t.Timezone),
			caps: list(t.Caps), allow: list(t.Allow), deny: list(t.Deny), frozen: flag{on: t.Frozen, set: t.Frozen},
			maxValidity: text(t.MaxValidity), duplicateWindow: text(t.DuplicateWindow), approvalTTL: text(t.ApprovalTTL),
			maxPending: number{n: int64(t.MaxPending), set: t.MaxPending != 0}, chat: flag{on: t.ChatApproval, set: t.ChatApproval},
			approveTotal: list(t.ApproveAboveTotal), hours: list(t.Hours), newPayee: text(t.NewPayee), priceJump: text(t.PriceJump),
			mode: text(t.Mode), approvers: list(t.Approvers), quorum: number{n: int64(t.Quorum), set: t.Quorum != 0},
			rules: t.Rules,
		})
	}
	p, err := d.compile()
	if err != nil {
		return nil, err
	}
	p.hash = hashOf([]byte(p.String()))
	return p, nil
}

func text(s string) value { return value{text: s, set: s != ""} }

func list(s []string) values {
	out := values{set: s != nil}
	for _, v := range s {
		out.list = append(out.list, value{text: v, set: true})
	}
	return out
}

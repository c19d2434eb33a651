// Package policy decides about payments: whether one is allowed, put to a
// person or denied, and under which caps. It is pure: it has no I/O, no clock
// and no state. A [Policy] is made by [Parse] from a document or by [New] from
// Go values; [Policy.Evaluate] gives a [Verdict] with every reason. Caps are
// named here and enforced by the ledger, which judges them by [Verdict.Apply]
// in the step that reserves.
//
// docs/policy.md gives the grammar, every key and every code.
package policy

import (
	"maps"
	"slices"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Policy is an immutable set of rules for all agents on a ledger. It is safe
// for concurrent use. A nil or zero Policy denies everything.
type Policy struct {
	file   string // name given to Parse
	org    string
	frozen bool // by [org]
	caps   []Limit
	tables map[string]*table
	hash   payment.Hash

	doc      *document // as given
	capLines []int     // where the caps of [org] stand
}

// table is one agent's rules, ready to be evaluated.
type table struct {
	name   string
	shared bool
	parsed *parsed // with what it inherits

	frozen  bool
	deny    [][]entry
	allow   allowList
	listed  bool // there is an allow list
	max     maxPayment
	asks    bool
	approve approveAbove
	caps    []Limit // Scope has its kind and agent; host and payee come from the payment
	rules   []Rule

	hostCaps  bool
	runCaps   bool
	payeeCaps int // how many caps are per payee
	made      limitsMade

	maxValidity     time.Duration
	duplicateWindow time.Duration
	approvalTTL     time.Duration
	maxPending      int
	chat            bool
	approvers       []string
	quorum          int

	totals []Limit // like caps
	hours  hours
	payee  value // new_payee
	jump   priceJump
	shadow bool

	jumpSet bool

	// Where things stand in the document, for Lint.
	line, maxLine, approveLine, capsLine, allowLine int
	capLines                                        []int
	none                                            bool // caps = ["none"]
}

// Default is the name of the table that judges agents without one of their own.
const Default = "default"

// Name is the name given to Parse, or that of New's Config.
func (p *Policy) Name() string {
	if p == nil {
		return ""
	}
	return p.file
}

// Org is the organisation's name, or empty.
func (p *Policy) Org() string {
	if p == nil {
		return ""
	}
	return p.org
}

// Hash is the SHA-256 of the document's bytes. A policy of Go values has that
// of its String, in which a Rule is named by its type only.
func (p *Policy) Hash() payment.Hash {
	if p == nil {
		return payment.Hash{}
	}
	return p.hash
}

// Agents are the names of the tables, sorted; Default is among them where
// there is such a table.
func (p *Policy) Agents() []string {
	if p == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(p.tables))
}

// find returns the table that judges agent, or nil.
func (p *Policy) find(agent string) *table {
	if p == nil {
		return nil
	}
	if t, ok := p.tables[agent]; ok {
		return t
	}
	return p.tables[Default]
}

// MaxPayment is the most that one payment of agent may cost; 0 where no table
// judges it.
func (p *Policy) MaxPayment(agent string) payment.USD {
	if t := p.find(agent); t != nil {
		return t.max.max
	}
	return 0
}

// ChatApproval reports whether the agent's own host may rule on approvals.
func (p *Policy) ChatApproval(agent string) bool {
	t := p.find(agent)
	return t != nil && t.chat
}

// Shadow reports whether the table that judges agent is in shadow: what it says
// is recorded, and does not block.
func (p *Policy) Shadow(agent string) bool {
	t := p.find(agent)
	return t != nil && t.shadow
}

// Table returns the table that judges agent, with what it inherits and with
// every default written out, and false where there is none.
func (p *Policy) Table(agent string) (Table, bool) {
	t := p.find(agent)
	if t == nil {
		return Table{}, false
	}
	return t.describe(), true
}

// Limits are the caps of agent and org scope that apply to every payment of
// agent, those in shadow among them, the agent's first. Caps per host and per
// payee have no scope without a payment; Evaluate lists them.
func (p *Policy) Limits(agent string) []Limit {
	if p == nil {
		return nil
	}
	var out []Limit
	if t := p.find(agent); t != nil {
		for _, l := range t.caps {
			if l.Scope.Kind == ScopeAgent {
				out = append(out, l)
			}
		}
	}
	return append(out, p.caps...)
}

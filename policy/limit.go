package policy

import (
	"slices"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Scope says whose payments a cap counts. Scopes are equal when they are ==.
type Scope struct {
	Kind ScopeKind

	// Shared says that Agent names the default table: all payments that were
	// judged by it count, whoever made them.
	Shared bool

	Payee payment.Address // ScopePayee
	Agent string          // of every kind but ScopeOrg and ScopeBudget: the policy table whose payments count
	Host  string          // ScopeHost: the normalised name, without a port
	Name  string          // ScopeCategory, ScopeRun and ScopeBudget: which one
}

// ScopeKind is the kind of a scope.
type ScopeKind uint8

// The kinds of scopes.
const (
	ScopeAgent    ScopeKind = iota + 1
	ScopeOrg                // every payment on the ledger
	ScopeHost               // an agent's payments to one host
	ScopePayee              // an agent's payments that have one recipient among theirs
	ScopeCategory           // an agent's payments to services of one category, which only a directory tells
	ScopeRun                // an agent's payments of one run: of the outermost budget, else of the client
	ScopeBudget             // the payments of one budget, those of its children among them
)

// String is the scope as a reason names it, such as per host.
func (k ScopeKind) String() string {
	return [...]string{"", "agent", "org", "host", "payee", "category", "run", "budget"}[min(int(k), 7)]
}

// Key is a text that is equal for equal scopes and different for others.
func (s Scope) Key() string {
	agent := "agent:" + s.Agent
	if s.Shared {
		agent = "agent:default"
	}
	switch s.Kind {
	case ScopeOrg:
		return "org"
	case ScopeHost:
		return agent + " host:" + s.Host
	case ScopePayee:
		return agent + " payee:" + s.Payee.Lower()
	case ScopeCategory, ScopeRun:
		return agent + " " + s.Kind.String() + ":" + s.Name
	case ScopeBudget:
		return "budget:" + s.Name
	}
	return agent
}

// Facts are what a stored payment is counted by.
type Facts struct {
	Agent  string
	Shared bool // it was judged by the default table
	Host   string
	Payees []payment.Address // every recipient

	Run     string             // empty where no cap asked for it
	Budgets []payment.BudgetID // those that it counts in, the outermost first
}

// Covers reports whether a payment with facts f counts in s.
func (s Scope) Covers(f Facts) bool {
	switch s.Kind {
	case ScopeOrg:
		return true
	case ScopeBudget:
		return slices.Contains(f.Budgets, payment.BudgetID(s.Name))
	}
	if s.Shared && !f.Shared || !s.Shared && s.Agent != f.Agent {
		return false
	}
	switch s.Kind {
	case ScopeAgent:
		return true
	case ScopeHost:
		return s.Host == f.Host
	case ScopePayee:
		return slices.Contains(f.Payees, s.Payee)
	case ScopeRun:
		return s.Name != "" && s.Name == f.Run
	}
	return false
}

// Limit is a cap applied to one payment: what the ledger checks and reserves
// in one step with the payment.
type Limit struct {
	Scope  Scope
	Window Window

	// A limit is on the sum, USD, or where Counting is set on the number of
	// payments, Count. 0 is a real limit.
	Counting bool
	USD      payment.USD
	Count    int64

	// Asks says that a payment above the limit is put to a person, instead of
	// denied.
	Asks bool

	// Shadow says that it is of a table in shadow: to exceed it is told and
	// changes nothing.
	Shadow bool

	Text string // the cap as the document wrote it, such as $10 / 24h
}

// Use is what counts against a limit at one instant.
type Use struct {
	Limit Limit
	USD   payment.USD // spent and held together; saturates at payment.MaxUSD
	Count int64
	Held  payment.USD // the part of USD that is held; filled by Store.Use only

	// ResetsAt is when the oldest counted payment ages out or the calendar
	// window ends; zero where nothing will change it. Filled by Store.Use,
	// and where the limit is what denies.
	ResetsAt time.Time
}

// Fits reports whether a further payment of cost fits under the limit.
func (u Use) Fits(cost payment.USD) bool {
	if u.Limit.Counting {
		return u.Count >= 0 && u.Count < u.Limit.Count
	}
	sum, ok := u.USD.Add(cost)
	return ok && sum <= u.Limit.USD
}

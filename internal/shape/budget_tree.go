package shape

import (
	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// Allowance is one budget of the tree.
type Allowance struct {
	ID           payment.BudgetID `json:"id"`
	Name         string           `json:"name"`
	Status       string           `json:"status"` // open or ended
	LimitUSD     payment.USD      `json:"limitUsd"`
	SpentUSD     payment.USD      `json:"spentUsd"` // held money is in it
	HeldUSD      payment.USD      `json:"heldUsd"`
	GivenUSD     payment.USD      `json:"givenUsd"` // what open budgets taken from it may still spend
	RemainingUSD payment.USD      `json:"remainingUsd"`
	Count        int64            `json:"count"`
	GrantedBy    *string          `json:"grantedBy"` // null: it ends with a process
	CreatedAt    *Time            `json:"createdAt"`
	ExpiresAt    *Time            `json:"expiresAt"`
	EndedAt      *Time            `json:"endedAt"`
	Why          *string          `json:"why"` // it ended
	Budgets      []Allowance      `json:"budgets"`
}

// AllowancesOf is the shape of a tree of budgets.
func AllowancesOf(list []*canopy.BudgetNode) []Allowance {
	out := make([]Allowance, 0, len(list))
	for _, n := range list {
		a := Allowance{
			ID: n.ID, Name: n.Name, Status: "open", LimitUSD: n.Limit, SpentUSD: n.Spent, HeldUSD: n.Held, GivenUSD: n.Given,
			RemainingUSD: n.Left, Count: n.Payments, CreatedAt: at(n.CreatedAt), ExpiresAt: at(n.ExpiresAt), EndedAt: at(n.EndedAt),
			Budgets: AllowancesOf(n.Children),
		}
		if n.Granted {
			a.GrantedBy = &n.By
		}
		if !n.EndedAt.IsZero() {
			a.Status, a.Why = "ended", &n.Why
		}
		out = append(out, a)
	}
	return out
}

// Grant is what canopy budget grant prints: the only place where the token is.
type Grant struct {
	Status    string           `json:"status"` // granted
	ID        payment.BudgetID `json:"id"`
	Name      string           `json:"name"`
	Agent     string           `json:"agent"`
	Parent    *string          `json:"parent"`
	LimitUSD  payment.USD      `json:"limitUsd"`
	ExpiresAt *Time            `json:"expiresAt"`
	Token     string           `json:"token"`
}

// GrantOf is the shape of a budget that was granted.
func GrantOf(b ledger.Budget, token string) Grant {
	g := Grant{Status: "granted", ID: b.ID, Name: b.Name, Agent: b.Agent, LimitUSD: b.Limit, ExpiresAt: at(b.ExpiresAt), Token: token}
	if b.Parent != "" {
		g.Parent = new(string(b.Parent))
	}
	return g
}

// BudgetEnd is what canopy budget end prints.
type BudgetEnd struct {
	Status  string           `json:"status"` // ended
	ID      payment.BudgetID `json:"id"`
	Name    string           `json:"name"`
	EndedAt *Time            `json:"endedAt"`
	Why     string           `json:"why"`
}

// BudgetEndOf is the shape of a budget that has ended.
func BudgetEndOf(b ledger.Budget) BudgetEnd {
	return BudgetEnd{"ended", b.ID, b.Name, at(b.EndedAt), b.Why}
}

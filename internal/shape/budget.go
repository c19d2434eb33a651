package shape

import (
	"fmt"
	"strings"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Budget is the result of canopy_get_budget: the cap in dollars of agent or org
// scope with the least remaining. Without one the figures but spent are null.
type Budget struct {
	CapUSD         *payment.USD `json:"capUsd"`
	SpentUSD       payment.USD  `json:"spentUsd"` // held money is in it
	RemainingUSD   *payment.USD `json:"remainingUsd"`
	PeriodHours    *Hours       `json:"periodHours"` // null for calendar windows and ever
	PeriodResetsAt *Time        `json:"periodResetsAt"`
	HeldUSD        payment.USD  `json:"heldUsd"`
	Caps           []Cap        `json:"caps"`    // all of them
	Budgets        []Allowance  `json:"budgets"` // of the work, or all open ones of the agent
	Able
}

// Cap is one cap and what counts against it. A cap in dollars has no counts,
// and a cap on the number of payments no capUsd and no remainingUsd.
type Cap struct {
	Cap          string       `json:"cap"`   // as the policy wrote it
	Scope        string       `json:"scope"` // agent or org
	CapUSD       *payment.USD `json:"capUsd"`
	SpentUSD     payment.USD  `json:"spentUsd"`
	HeldUSD      payment.USD  `json:"heldUsd"`
	RemainingUSD *payment.USD `json:"remainingUsd"`
	MaxCount     *int64       `json:"maxCount"`
	Count        int64        `json:"count"`
	PeriodHours  *Hours       `json:"periodHours"`
	ResetsAt     *Time        `json:"resetsAt"`
}

// Hours is a length of time as a JSON number of hours.
type Hours time.Duration

// MarshalJSON writes hours with at most four decimals, as 24 or 0.25.
func (h Hours) MarshalJSON() ([]byte, error) {
	whole := time.Duration(h) / time.Hour
	s := fmt.Sprintf("%d.%04d", whole, (time.Duration(h)-whole*time.Hour)/(time.Hour/10_000))
	return []byte(strings.TrimRight(strings.TrimRight(s, "0"), ".")), nil
}

// BudgetOf is the shape of b; cannot is what canopy.Client.CannotPay returns.
func BudgetOf(b canopy.Budget, cannot []policy.Reason) Budget {
	out := Budget{SpentUSD: b.Spent, HeldUSD: b.Held, Caps: make([]Cap, 0, len(b.Caps)), Budgets: AllowancesOf(b.Budgets), Able: AbleOf(cannot)}
	if b.HasCap {
		out.CapUSD, out.RemainingUSD = &b.Cap, &b.Remaining
		out.PeriodHours, out.PeriodResetsAt = hours(b.Window), after(b.ResetsAt)
	}
	for _, u := range b.Caps {
		out.Caps = append(out.Caps, capOf(u))
	}
	return out
}

func capOf(u policy.Use) Cap {
	c := Cap{
		Cap: u.Limit.String(), Scope: u.Limit.Scope.Kind.String(), SpentUSD: u.USD, HeldUSD: u.Held, Count: u.Count,
		PeriodHours: hours(u.Limit.Window), ResetsAt: after(u.ResetsAt),
	}
	if u.Limit.Counting {
		c.MaxCount = &u.Limit.Count
		return c
	}
	left, _ := u.Limit.USD.Sub(min(u.USD, u.Limit.USD))
	c.CapUSD, c.RemainingUSD = &u.Limit.USD, &left
	return c
}

func hours(w policy.Window) *Hours {
	if w.Kind != policy.Rolling {
		return nil
	}
	h := Hours(w.Length)
	return &h
}

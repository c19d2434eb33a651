package ledger

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Historian is an optional power of a Store: it tells what was spent and who was
// paid before without reading every payment. Every store of this module has it.
type Historian interface {
	// Spending sums what counts of the payments that match, the largest sum
	// first, at most q.Limit sums where that is not 0.
	Spending(ctx context.Context, q SpendingQuery) ([]Spending, error)

	// PaidHost returns at most limit payments of the agent to a host that count,
	// those that count longest first. limit is 1 at least.
	PaidHost(ctx context.Context, agent, host string, limit int) ([]Entry, error)

	// PaidPayee is the same for the payments of all agents that have payee among
	// their recipients.
	PaidPayee(ctx context.Context, payee payment.Address, limit int) ([]Entry, error)
}

// SpendingQuery selects payments by when they were asked for, in whole days of
// UTC, and says by what they are told apart.
type SpendingQuery struct {
	Since, Until time.Time // the days of both are in it; zero for no bound
	Agent        string    // "" for every agent

	Days, Agents, Hosts bool // a sum for each
	Limit               int  // 0 for all
}

// Spending is what payments that count come to: those in flight, in doubt and
// settled, each for what it counts in every cap.
type Spending struct {
	Day   time.Time // its beginning in UTC; zero where days are not told apart
	Agent string    // empty where agents are not told apart
	Host  string    // empty for transfers, and where hosts are not told apart
	USD   payment.USD
	Count int64
}

const dayMicros = int64(24 * time.Hour / time.Microsecond)

// SpendingDay numbers the day of UTC that at is in.
func SpendingDay(at time.Time) int64 {
	us := at.UnixMicro()
	day := us / dayMicros
	if us%dayMicros < 0 {
		day--
	}
	return day
}

// SpendingDays are the first and the last day that q selects.
func (q SpendingQuery) SpendingDays() (first, last int64) {
	first, last = -1<<31, 1<<31
	if !q.Since.IsZero() {
		first = SpendingDay(q.Since)
	}
	if !q.Until.IsZero() {
		last = SpendingDay(q.Until)
	}
	return first, last
}

// DayOf is the beginning of the day that SpendingDay numbers.
func DayOf(day int64) time.Time { return time.UnixMicro(day * dayMicros).UTC() }

// sortSpending puts the largest sum first, and cuts to limit.
func sortSpending(all []Spending, limit int) []Spending {
	slices.SortFunc(all, func(a, b Spending) int {
		return cmp.Or(cmp.Compare(b.USD, a.USD), cmp.Compare(b.Count, a.Count), a.Day.Compare(b.Day), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Host, b.Host))
	})
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	return all
}

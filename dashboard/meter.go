package dashboard

import (
	"context"
	"strconv"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// meter is one cap with what counts against it, as words and as a bar of 1000
// parts.
type meter struct {
	Cap   string // as the document wrote it
	Scope string
	Used  string // spent and held
	Held  string // the part that is held; empty for none
	Left  string
	This  string // what the payment asked about would add; empty for none
	Full  bool   // it does not fit

	Spent, Holds, Adds int // the parts of the bar
	At                 [2]int
	Resets             moment
}

// meters tell the uses of caps, and what cost would add to each; cost 0 where
// nothing is asked.
func (p *Page) meters(uses []policy.Use, cost payment.USD, asked bool) []meter {
	out := make([]meter, 0, len(uses))
	for _, u := range uses {
		l := u.Limit
		m := meter{Cap: clean(l.String(), 100), Scope: scopeWords(l.Scope), Resets: p.moment(u.ResetsAt), Full: asked && !u.Fits(cost)}
		if l.Counting {
			m.Used, m.Left = number(u.Count, "payment"), strconv.FormatInt(max(0, l.Count-u.Count), 10)
			m.Spent = parts(u.Count, l.Count)
			if asked {
				m.This, m.Adds = "1", min(parts(1, l.Count), 1000-m.Spent)
			}
		} else {
			left, _ := l.USD.Sub(min(u.USD, l.USD))
			m.Used, m.Left = u.USD.String(), left.String()
			m.Spent, m.Holds = parts(int64(u.USD-min(u.Held, u.USD)), int64(l.USD)), parts(int64(u.Held), int64(l.USD))
			m.Holds = min(m.Holds, 1000-m.Spent)
			if u.Held > 0 {
				m.Held = u.Held.String()
			}
			if asked {
				m.This, m.Adds = cost.String(), min(parts(int64(cost), int64(l.USD)), 1000-m.Spent-m.Holds)
			}
		}
		m.At = [2]int{m.Spent, m.Spent + m.Holds}
		out = append(out, m)
	}
	return out
}

// parts is how many of 1000 n is of all, rounded up so that something is seen
// of it, and at most 1000.
func parts(n, all int64) int {
	if n <= 0 {
		return 0
	}
	if n >= all {
		return 1000
	}
	for all > 1<<50 {
		n, all = n>>10, all>>10
	}
	return int(min(1000, (n*1000+all-1)/all))
}

func scopeWords(s policy.Scope) string {
	who := "agent " + clean(s.Agent, 100)
	if s.Shared {
		who = "agents without a policy of their own"
	}
	switch s.Kind {
	case policy.ScopeOrg:
		return "everybody on this ledger"
	case policy.ScopeHost:
		return who + ", at " + clean(s.Host, 255)
	case policy.ScopePayee:
		return who + ", to " + s.Payee.String()
	case policy.ScopeAgent:
		return who
	}
	return who + ", " + clean(s.Kind.String(), 40)
}

// uses is what counts against limits now.
func (p *Page) uses(ctx context.Context, limits []policy.Limit) ([]policy.Use, error) {
	if len(limits) == 0 {
		return nil, nil
	}
	return p.cfg.Store.Use(ctx, limits, p.cfg.Now())
}

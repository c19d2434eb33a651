package dashboard

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// What the pictures have: days, agents that are told apart by colour and
// pattern, and bars.
const (
	chartDays   = 30
	chartSeries = 5
	chartBars   = 12
)

// spendingView is what was spent, as pictures with a table beside each.
type spendingView struct {
	view
	Agent  string // of one; empty for all
	Agents []string
	Days   dayChart
	Hosts  barChart
	Whom   barChart
	Caps   []agentCaps
	Total  string

	Budgets []*budgetView
	More    int  // budgets that are not shown
	None    bool // the store cannot tell
}

// agentCaps are the caps of one agent, with what counts against them.
type agentCaps struct {
	Agent string
	Caps  []meter
}

func (p *Page) spendingPage(w http.ResponseWriter, r *http.Request, s *session) {
	v := spendingView{view: p.view(r, s, "Spending", "spending"), Agents: p.agents()}
	if v.Agent = r.URL.Query().Get("agent"); v.Agent != "" && policy.CheckName(v.Agent) != nil {
		p.fail(w, r, s, http.StatusBadRequest, "No agent can have that name.", "")
		return
	}
	var err error
	if v.Caps, err = p.capsOf(r, v.Agent); err != nil {
		p.broken(w, r, s, err)
		return
	}
	if v.Budgets, v.More, err = p.budgets(r.Context(), v.Agent); err != nil {
		p.broken(w, r, s, err)
		return
	}
	h, ok := p.cfg.Store.(ledger.Historian)
	if !ok {
		v.None = true
		p.render(w, r, http.StatusOK, "spending", v)
		return
	}
	today := ledger.DayOf(ledger.SpendingDay(p.cfg.Now()))
	q := ledger.SpendingQuery{Since: today.AddDate(0, 0, 1-chartDays), Agent: v.Agent}
	ask := func(days, agents, hosts bool, limit int) []ledger.Spending {
		if err != nil {
			return nil
		}
		q := q
		q.Days, q.Agents, q.Hosts, q.Limit = days, agents, hosts, limit
		var all []ledger.Spending
		all, err = h.Spending(r.Context(), q)
		return all
	}
	byHost := ask(false, false, true, chartBars)
	byDay := ask(true, true, false, 0)
	if err != nil {
		p.broken(w, r, s, err)
		return
	}
	byAgent, total := agentsOf(byDay)
	v.Total = total.String()
	v.Days = daysOf(byDay, byAgent, today)
	v.Hosts = barsOf(byHost, func(s ledger.Spending) string { return cmp.Or(clean(s.Host, 255), "direct transfers") })
	v.Whom = barsOf(byAgent[:min(chartBars, len(byAgent))], func(s ledger.Spending) string { return clean(s.Agent, 100) })
	p.render(w, r, http.StatusOK, "spending", v)
}

// agentsOf sums days by agent, the largest sum first, and all of them.
func agentsOf(days []ledger.Spending) (all []ledger.Spending, total payment.USD) {
	at := map[string]int{}
	for _, d := range days {
		i, ok := at[d.Agent]
		if !ok {
			i = len(all)
			at[d.Agent], all = i, append(all, ledger.Spending{Agent: d.Agent})
		}
		all[i].USD, _ = all[i].USD.Add(d.USD)
		all[i].Count += d.Count
		total, _ = total.Add(d.USD)
	}
	slices.SortFunc(all, func(a, b ledger.Spending) int {
		return cmp.Or(cmp.Compare(b.USD, a.USD), cmp.Compare(a.Agent, b.Agent))
	})
	return all, total
}

// capsOf are the caps of an agent, or of each that has a table and of the whole
// ledger.
func (p *Page) capsOf(r *http.Request, agent string) ([]agentCaps, error) {
	agents := p.agents()
	if agent != "" {
		agents = []string{agent}
	}
	var out []agentCaps
	var org []policy.Limit
	for _, name := range agents {
		var own []policy.Limit
		for _, l := range p.cfg.Policy.Limits(name) {
			switch {
			case l.Scope.Kind == policy.ScopeOrg && !slices.Contains(org, l):
				org = append(org, l)
			case l.Scope.Kind == policy.ScopeAgent:
				own = append(own, l)
			}
		}
		uses, err := p.uses(r.Context(), own)
		if err != nil {
			return nil, err
		}
		if len(uses) > 0 {
			out = append(out, agentCaps{clean(name, 100), p.meters(uses, 0, false)})
		}
	}
	uses, err := p.uses(r.Context(), org)
	if err != nil || len(uses) == 0 {
		return out, err
	}
	return append([]agentCaps{{"", p.meters(uses, 0, false)}}, out...), nil
}

// dayChart is spending by day, each day's agents on top of each other.
type dayChart struct {
	Series []string // the legend
	Days   []dayBar
	Lines  []gridLine
	Any    bool
}

type dayBar struct {
	X      int
	Label  string // of the axis; empty for most
	Day    string
	Total  string
	Count  int64
	Pieces []piece
}

// piece is one agent's part of a day, from Y down.
type piece struct {
	Series        int
	X, Y, W, H    int
	Agent, Amount string
}

type gridLine struct {
	Y    int
	Text string
}

// The picture is 960 by 300: the days are 28 apart, right of the amounts.
const (
	chartHeight = 240
	chartLeft   = 96
	chartStep   = 28
)

func daysOf(all, agents []ledger.Spending, today time.Time) dayChart {
	series := map[string]int{}
	c := dayChart{}
	for i, a := range agents {
		if i == chartSeries {
			c.Series = append(c.Series, "others")
			break
		}
		series[a.Agent] = i
		c.Series = append(c.Series, clean(a.Agent, 40))
	}
	type day struct {
		parts [chartSeries + 1]payment.USD
		total payment.USD
		count int64
	}
	days := make([]day, chartDays)
	var most payment.USD
	for _, s := range all {
		i := chartDays - 1 - int(today.Sub(s.Day)/(24*time.Hour))
		if i < 0 || i >= chartDays {
			continue
		}
		at, ok := series[s.Agent]
		if !ok {
			at = chartSeries
		}
		d := &days[i]
		d.parts[at], _ = d.parts[at].Add(s.USD)
		d.total, _ = d.total.Add(s.USD)
		d.count += s.Count
		most, c.Any = max(most, d.total), true
	}
	top := roundUp(most)
	c.Lines = gridOf(top, chartHeight)
	for i, d := range days {
		at := today.AddDate(0, 0, i+1-chartDays)
		b := dayBar{X: chartLeft + i*chartStep, Day: at.Format(time.DateOnly), Total: d.total.String(), Count: d.count}
		if (chartDays-1-i)%7 == 0 {
			b.Label = at.Format("Jan 2")
		}
		y := chartHeight
		for k, u := range d.parts {
			h := scaled(u, top, chartHeight)
			if h == 0 {
				continue
			}
			y = max(0, y-h)
			name := "others"
			if k < len(c.Series) {
				name = c.Series[k]
			}
			b.Pieces = append(b.Pieces, piece{k, b.X + 3, y, chartStep - 6, h, name, u.String()})
		}
		c.Days = append(c.Days, b)
	}
	return c
}

// roundUp is an amount not below u that an axis can end with.
func roundUp(u payment.USD) payment.USD {
	for step := payment.USD(100); step < payment.MaxUSD/1000; step *= 10 {
		for _, m := range []payment.USD{10, 12, 16, 20, 24, 32, 40, 60, 80} {
			if step*m >= u {
				return step * m
			}
		}
	}
	return max(u, 1)
}

// gridOf are the lines of an axis that ends at top.
func gridOf(top payment.USD, height int) []gridLine {
	var out []gridLine
	for i := range 5 {
		out = append(out, gridLine{height - height*i/4, (top / 4 * payment.USD(i)).String()})
	}
	out[4].Text = top.String()
	return out
}

// scaled is u of top as a part of height, something where u is not 0.
func scaled(u, top payment.USD, height int) int {
	if u <= 0 || top <= 0 {
		return 0
	}
	for top > payment.MaxUSD/1024 {
		u, top = u/1024, top/1024
	}
	return max(1, int(u*payment.USD(height)/top))
}

// barChart is sums as bars, the largest first.
type barChart struct {
	Bars   []bar
	Height int
}

type bar struct {
	Name, Amount, Count string
	Y, W                int
}

// The bars are 32 apart and 560 long at most, right of their names.
const (
	barStep  = 34
	barWidth = 560
)

func barsOf(all []ledger.Spending, name func(ledger.Spending) string) barChart {
	c := barChart{Height: max(1, len(all))*barStep + 6}
	for i, s := range all {
		c.Bars = append(c.Bars, bar{name(s), s.USD.String(), number(s.Count, "payment"), i*barStep + 6, scaled(s.USD, all[0].USD, barWidth)})
	}
	return c
}

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/canopy-go/canopy/internal/host"
	"github.com/canopy-go/canopy/payment"
)

// Finding is something about a policy that a person should know: it loads, and
// may not do what was meant.
type Finding struct {
	Level Level
	Code  string // stable, in snake case; docs/policy.md lists them
	Table string // the agent's table; empty for the document and [org]
	Line  int    // from 1; 0 where it has none
	Text  string // one line
}

// Level says how grave a finding is.
type Level uint8

// The levels.
const (
	Note    Level = iota // what the policy comes to
	Warning              // probably not what was meant
	Fault                // no payment, or none of some kind, can ever pass
)

// String is the level's name.
func (l Level) String() string { return [...]string{"note", "warning", "error"}[min(int(l), 2)] }

// MarshalText writes l as String does.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// String is the finding in one line, without the file.
func (f Finding) String() string {
	s := f.Level.String() + ": "
	if f.Line > 0 {
		s = fmt.Sprintf("line %d: ", f.Line) + s
	}
	if f.Table != "" {
		s += "[" + tableKey(f.Table) + "] "
	}
	return s + f.Text + " (" + f.Code + ")"
}

// large is what an agent may spend in a day, at any seller, without a warning.
const large = 100 * payment.Dollar

// compared is how many entries of a list are looked at.
const compared = 500

// Lint tells what is odd about p, by line, and what each agent can spend in a
// day at worst. Inherited entries are told once, for the table that has them.
func Lint(p *Policy) []Finding {
	l := &linter{p: p, said: map[Finding]bool{}}
	if p == nil || len(p.tables) == 0 {
		l.add(Finding{Level: Fault, Code: "no_table", Text: "there is no [policy.NAME] table: every payment is denied"})
		return l.found
	}
	l.document()
	for _, name := range p.Agents() {
		t := p.tables[name]
		l.lists(t)
		l.limits(t)
		l.habits(t)
	}
	slices.SortStableFunc(l.found, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return l.found
}

type linter struct {
	p     *Policy
	found []Finding
	said  map[Finding]bool // without the table: what is inherited is said once
}

func (l *linter) add(f Finding) {
	key := f
	if f.Line > 0 {
		key.Table = ""
	}
	if !l.said[key] {
		l.said[key] = true
		l.found = append(l.found, f)
	}
}

// document looks at what is about all agents.
func (l *linter) document() {
	p := l.p
	if p.frozen {
		l.add(Finding{Level: Note, Code: "frozen", Line: p.doc.org.frozen.line, Text: "[org] is frozen: every payment is denied"})
	}
	if p.tables[Default] == nil {
		l.add(Finding{Level: Note, Code: "no_default", Text: "there is no [policy.default]: agents without a table of their own are denied"})
	}
	byFold := map[string]string{}
	for _, name := range p.Agents() {
		fold := strings.ToLower(name)
		if other, ok := byFold[fold]; ok {
			l.add(Finding{Level: Warning, Code: "alike_names", Table: name, Line: p.tables[name].line, Text: "differs from [policy." + keyText(other) + "] by capitals only: they are two agents"})
		}
		byFold[fold] = name
	}
	if !hasSum(p.caps) {
		l.add(Finding{Level: Note, Code: "no_org_cap", Text: "[org] has no cap in dollars: what all agents spend together is bounded only by the sum of their own caps"})
	}
	l.neverBinds(nil, p.caps, p.capLines)
	if worst, by, ok := perDay(p.caps, payment.MaxUSD); ok {
		l.add(Finding{Level: Note, Code: "worst_case", Text: fmt.Sprintf("all agents together can spend at most %v in a day, by %s of [org]", worst, quoteCap(by))})
	}
}

// lists looks at whom t allows and denies.
func (l *linter) lists(t *table) {
	warn := func(level Level, code string, line int, text string) {
		l.add(Finding{Level: level, Code: code, Table: t.name, Line: line, Text: text})
	}
	switch {
	case t.frozen:
		warn(Note, "frozen", t.parsed.frozen.line, "is frozen: every payment is denied")
	case !t.listed:
		warn(Fault, "allows_nothing", t.line, `has no allow list: every payment is denied; name sellers, or "*" for all`)
	case len(t.allow.to) == 0:
		warn(Fault, "allows_nothing", t.allowLine, "names no destination in allow: every payment is denied")
	}
	allow := t.allow.to[:min(len(t.allow.to), compared)]
	for i := range allow {
		e := &allow[i]
		if e.hasHost {
			l.host(t, e)
		}
		for j := range allow {
			if o := &allow[j]; i != j && o.makes(e) && (j < i || !e.makes(o)) {
				warn(Warning, "redundant", e.line, fmt.Sprintf("allow %q adds nothing: %q admits it already", e.text, o.text))
				break
			}
		}
		if e.shut(t.allow.chains) || e.shut(t.allow.assets) {
			warn(Fault, "never_matches", e.line, fmt.Sprintf("allow %q never matches: the chain: and asset: entries of the list leave its own out", e.text))
		}
		for _, list := range t.deny {
			list = list[:min(len(list), compared)]
			for j := range list {
				if d := &list[j]; d.covers(e) {
					warn(Fault, "shadowed", e.line, fmt.Sprintf("allow %q never matches: deny %q denies all of it", e.text, d.text))
				}
			}
		}
	}
	var denies []*entry
	for _, list := range t.deny {
		list = list[:min(len(list), compared)]
		for i := range list {
			e := &list[i]
			if k := slices.IndexFunc(denies, func(d *entry) bool { return d.covers(e) }); k >= 0 {
				warn(Warning, "redundant", e.line, fmt.Sprintf("deny %q adds nothing: %q denies it already", e.text, denies[k].text))
			}
			denies = append(denies, e)
		}
	}
}

// host looks at the host of an allow entry.
func (l *linter) host(t *table, e *entry) {
	h := e.named
	if e.below && (e.host.Broad() || !strings.Contains(h.Name, ".") || commonSuffix(h.Name)) {
		l.add(Finding{Level: Warning, Code: "broad_host", Table: t.name, Line: e.line, Text: fmt.Sprintf("allow %q admits names that anybody can register", e.text)})
	}
	if why := host.Suspicious(h.Name); why != "" {
		l.add(Finding{Level: Warning, Code: "suspicious_host", Table: t.name, Line: e.line, Text: fmt.Sprintf("allow %q may not be what it looks like: %s", e.text, why)})
	}
}

// covers reports whether e matches whatever o matches.
func (e *entry) covers(o *entry) bool {
	if e.everything {
		return true
	}
	if o.everything || e.hasHost && !e.coversHost(o) || e.hasAddress && (!o.hasAddress || o.address != e.address) {
		return false
	}
	chain := o.chain
	if chain == "" {
		chain = o.asset.chain
	}
	return (e.chain == "" || e.chain == chain) && (e.asset == token{} || e.asset == o.asset)
}

func (e *entry) coversHost(o *entry) bool {
	if !o.hasHost {
		return false
	}
	h := o.named
	if o.below {
		h.Name = "?." + h.Name // stands for every name below
	}
	return e.host.Match(h)
}

// makes reports whether e, in an allow list, makes o superfluous there: it
// admits every recipient that o admits.
func (e *entry) makes(o *entry) bool {
	return e.covers(o) && (e.everything || (e.splits || !o.splits) && (e.splits || e.hasAddress || !o.hasAddress))
}

// shut reports whether entries that narrow leave out all that e admits.
func (e *entry) shut(narrow []entry) bool {
	chain := e.chain
	if chain == "" {
		chain = e.asset.chain
	}
	if len(narrow) == 0 || chain == "" {
		return false
	}
	return !slices.ContainsFunc(narrow, func(n entry) bool {
		if n.asset != (token{}) {
			return n.asset.chain == chain && (e.asset == token{} || e.asset == n.asset)
		}
		return n.chain == chain
	})
}

// limits looks at t's amounts.
func (l *linter) limits(t *table) {
	warn := func(level Level, code string, line int, text string) {
		l.add(Finding{Level: level, Code: code, Table: t.name, Line: line, Text: text})
	}
	if t.max.max == 0 {
		warn(Warning, "zero_limit", t.maxLine, `max_payment is $0: nothing that costs money is paid, only proofs of who asks`)
	}
	if t.duplicateWindow == 0 {
		warn(Warning, "no_duplicate_guard", t.parsed.duplicates.line, `duplicate_window is 0: an equal call pays again at once`)
	}
	if t.none && !hasSum(l.p.caps) {
		warn(Warning, "no_cap", t.capsLine, `caps = ["none"] and no cap of [org]: nothing bounds what is spent`)
	}
	all := slices.Concat(t.caps, l.p.caps)
	lowest := -1
	for i, c := range all {
		switch {
		case c.Counting && c.Count == 0:
			warn(Fault, "zero_limit", l.lineOf(t, i), fmt.Sprintf("cap %s admits no payment", quoteCap(c)))
		case c.Counting:
		case c.USD == 0:
			warn(Fault, "zero_limit", l.lineOf(t, i), fmt.Sprintf("cap %s admits no payment", quoteCap(c)))
		case lowest < 0 || c.USD < all[lowest].USD:
			lowest = i
		}
	}
	if lowest >= 0 && all[lowest].USD < t.max.max {
		c := all[lowest]
		warn(Warning, "above_cap", t.maxLine, fmt.Sprintf("max_payment %s is above the cap %s: no payment above %v passes", t.max.text, quoteCap(c), c.USD))
		if t.asks && t.approve.above >= c.USD {
			warn(Warning, "never_asks", t.approveLine, fmt.Sprintf("approve_above %s never asks: the cap %s denies such a payment first", t.approve.text, quoteCap(c)))
		}
	}
	l.neverBinds(t, all, slices.Concat(t.capLines, make([]int, len(l.p.caps))))
	l.worst(t, all)
}

// lineOf is where the i-th of t's caps and then [org]'s stands.
func (l *linter) lineOf(t *table, i int) int {
	if i < len(t.capLines) {
		return t.capLines[i]
	}
	return l.p.capLines[i-len(t.capLines)]
}

// worst tells what t's agent can spend in a day.
func (l *linter) worst(t *table, all []Limit) {
	who := "agent " + t.name
	if t.shared {
		who = "all agents without a table together"
	}
	max, text := t.max.max, who+" can spend without end, "+t.max.text+" at a time"
	if t.shadow {
		all, max, text = l.p.caps, payment.MaxUSD, who+" can spend without end, any amount at a time"
	}
	worst, by, ok := perDay(all, max)
	if ok {
		text = fmt.Sprintf("%s can spend at most %v in a day, by %s", who, worst, quoteCap(by))
	}
	l.add(Finding{Level: Note, Code: "worst_case", Table: t.name, Text: text})
	if !ok || worst > large {
		for i := range t.allow.to {
			if t.allow.to[i].everything {
				l.add(Finding{Level: Warning, Code: "allow_all", Table: t.name, Line: t.allow.to[i].line, Text: `allow "*" lets it pay every seller there is: ` + text})
			}
		}
	}
}

func quoteCap(l Limit) string { return fmt.Sprintf("%q", l.String()) }

// perDay is the least that caps leave to be spent within 24 hours, where one
// payment costs at most max, and the cap that says so; false where none does.
func perDay(caps []Limit, max payment.USD) (payment.USD, Limit, bool) {
	worst, by, ok := payment.MaxUSD, Limit{}, false
	for _, c := range caps {
		if c.Scope.Kind != ScopeAgent && c.Scope.Kind != ScopeOrg {
			continue
		}
		amount := c.USD
		if c.Counting {
			amount = times(max, c.Count)
		}
		if c.Window.Kind == Rolling && c.Window.Length < 24*time.Hour {
			amount = times(amount, int64((24*time.Hour+c.Window.Length-1)/c.Window.Length))
		}
		if amount < worst {
			worst, by, ok = amount, c, true
		}
	}
	return worst, by, ok
}

// times is u, n times, or MaxUSD where that cannot be counted.
func times(u payment.USD, n int64) payment.USD {
	if u < 0 || n < 0 || n > 0 && u > (payment.MaxUSD-1)/payment.USD(n) {
		return payment.MaxUSD
	}
	return u * payment.USD(n)
}

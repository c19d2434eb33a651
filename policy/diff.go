package policy

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Difference is one thing in which a policy differs from another: a key of a
// table, with what it inherits and its default, or one entry of a list.
type Difference struct {
	Table  string // the agent's table; empty for [org]
	Key    string // such as max_payment; empty where one policy has no such table
	Was    string // as a document writes it; empty where there was none
	Is     string
	Effect Effect
}

// Effect is what a difference does to what may be paid.
type Effect uint8

// The effects. A difference by itself never loosens where it is Tighter, and may
// do both where it is Mixed.
const (
	Mixed Effect = iota
	Tighter
	Looser
)

// String is the effect as people read it.
func (e Effect) String() string { return [...]string{"mixed", "tighter", "looser"}[min(int(e), 2)] }

// MarshalText writes e as String does.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// Diff tells how b differs from a in what it decides, in the order of tables and
// keys: spelling, order and comments are no difference. An agent without a table
// is judged by the default one, so that a table that one of them lacks is
// compared with the default table there, if there is one. Go Rules are compared
// by their number alone.
func Diff(a, b *Policy) []Difference {
	d := &differ{}
	d.org(orEmpty(a), orEmpty(b))
	names := map[string]bool{}
	for _, p := range []*Policy{a, b} {
		for _, n := range p.Agents() {
			names[n] = true
		}
	}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		d.tables(n, a, b)
	}
	return d.found
}

func orEmpty(p *Policy) *Policy {
	if p == nil {
		return &Policy{doc: &document{}}
	}
	return p
}

// differ collects what differs in one table.
type differ struct {
	table string
	found []Difference
}

func (d *differ) say(key, was, is string, e Effect) {
	if was != is {
		d.found = append(d.found, Difference{Table: d.table, Key: key, Was: was, Is: is, Effect: e})
	}
}

func (d *differ) org(a, b *Policy) {
	d.say("name", a.org, b.org, Mixed)
	d.flag("frozen", a.frozen, b.frozen, Tighter)
	d.caps("caps", a.caps, b.caps)
}

// tables compares what judges an agent.
func (d *differ) tables(name string, a, b *Policy) {
	d.table = name
	was, is := a.find(name), b.find(name)
	switch {
	case was == nil:
		d.found = append(d.found, Difference{Table: name, Is: "a table of its own", Effect: Looser})
		return
	case is == nil:
		d.found = append(d.found, Difference{Table: name, Was: whose(was, name), Effect: Tighter})
		return
	case was.name != is.name:
		// The counters of the caps are others too.
		d.found = append(d.found, Difference{Table: name, Was: whose(was, name), Is: whose(is, name), Effect: Mixed})
	}
	d.judged(was, is)
}

func whose(t *table, name string) string {
	if t.name == name {
		return "a table of its own"
	}
	return "the table " + t.name
}

// judged compares two tables key by key.
func (d *differ) judged(a, b *table) {
	d.flag("frozen", a.frozen, b.frozen, Tighter)
	if a.max.max != b.max.max {
		d.say("max_payment", a.max.text, b.max.text, lower(a.max.max, b.max.max))
	}
	d.caps("caps", a.caps, b.caps)
	if a.asks != b.asks || a.approve.above != b.approve.above {
		d.optional("approve_above", a.approve.text, b.approve.text, a.asks, b.asks, lower(a.approve.above, b.approve.above))
	}
	d.caps("approve_above_total", a.totals, b.totals)
	d.allow(a, b)
	d.list("deny", slices.Concat(a.deny...), slices.Concat(b.deny...), Tighter)
	d.hours(&a.hours, &b.hours)
	d.say("new_payee", a.payee.text, b.payee.text, opposite(lower(strictness[a.payee.text], strictness[b.payee.text])))
	if a.jumpSet != b.jumpSet || a.jump.times != b.jump.times {
		d.optional("price_jump", a.jump.text, b.jump.text, a.jumpSet, b.jumpSet, lower(a.jump.times, b.jump.times))
	}
	d.people(a, b)
	d.length("max_validity", a.maxValidity, b.maxValidity, lower(a.maxValidity, b.maxValidity))
	d.length("duplicate_window", a.duplicateWindow, b.duplicateWindow, lower(b.duplicateWindow, a.duplicateWindow))
	d.length("approval_ttl", a.approvalTTL, b.approvalTTL, lower(a.approvalTTL, b.approvalTTL))
	d.say("max_pending", strconv.Itoa(a.maxPending), strconv.Itoa(b.maxPending), lower(a.maxPending, b.maxPending))
	d.flag("chat_approval", a.chat, b.chat, Looser)
	if a.shadow != b.shadow {
		e := Looser
		if a.shadow {
			e = Tighter
		}
		d.say("mode", mode(a), mode(b), e)
	}
	d.say("rules", count(len(a.rules)), count(len(b.rules)), Mixed)
}

func (d *differ) hours(a, b *hours) {
	less, more := b.within(a), a.within(b)
	switch {
	case a.set != b.set:
		d.optional("hours", a.String(), b.String(), a.set, b.set, Mixed)
	case less && more:
	case less:
		d.say("hours", a.String(), b.String(), Tighter)
	case more:
		d.say("hours", a.String(), b.String(), Looser)
	default:
		d.say("hours", a.String(), b.String(), Mixed)
	}
}

// strictness is that of new_payee.
var strictness = map[string]int{"": 0, askNew: 1, denyNew: 2}

func mode(t *table) string {
	if t.shadow {
		return shadow
	}
	return enforce
}

// people compares who may rule: without names whoever opens the ledger may, so
// that the first name tightens, and one beside others loosens.
func (d *differ) people(a, b *table) {
	e := Looser
	if len(a.approvers) == 0 || len(b.approvers) == 0 {
		e = Tighter
	}
	named := func(list []string, name string) bool {
		return slices.ContainsFunc(list, func(n string) bool { return strings.EqualFold(n, name) })
	}
	for _, n := range a.approvers {
		if !named(b.approvers, n) {
			d.say("approvers", n, "", opposite(e))
		}
	}
	for _, n := range b.approvers {
		if !named(a.approvers, n) {
			d.say("approvers", "", n, e)
		}
	}
	if len(a.approvers) > 0 && len(b.approvers) > 0 {
		d.say("quorum", strconv.Itoa(a.quorum), strconv.Itoa(b.quorum), lower(b.quorum, a.quorum))
	}
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n) + " Go rules"
}

// lower is the effect of a limit that goes from one figure to another, where a
// lower one is tighter.
func lower[T cmp.Ordered](was, is T) Effect {
	switch {
	case is < was:
		return Tighter
	case is > was:
		return Looser
	}
	return Mixed
}

func opposite(e Effect) Effect { return [...]Effect{Mixed, Looser, Tighter}[e] }

// flag compares a key whose true has an effect.
func (d *differ) flag(key string, was, is bool, e Effect) {
	if !is {
		e = opposite(e)
	}
	d.say(key, strconv.FormatBool(was), strconv.FormatBool(is), e)
}

func (d *differ) length(key string, was, is time.Duration, e Effect) {
	d.say(key, formatLength(was), formatLength(is), e)
}

// optional compares a limit that may be absent, and then limits nothing.
func (d *differ) optional(key, was, is string, had, has bool, e Effect) {
	switch {
	case had && !has:
		e = Looser
	case has && !had:
		e = Tighter
	}
	d.say(key, was, is, e)
}

// caps compares limits: those of one window, scope and kind by their figure.
func (d *differ) caps(key string, a, b []Limit) {
	rest := slices.Clone(b)
	for _, was := range a {
		i := slices.IndexFunc(rest, func(l Limit) bool { return alike(l, was) })
		if i < 0 {
			d.say(key, was.String(), "", Looser)
			continue
		}
		is := rest[i]
		rest = slices.Delete(rest, i, i+1)
		if is.USD != was.USD || is.Count != was.Count {
			d.say(key, was.String(), is.String(), lower(int64(was.USD)+was.Count, int64(is.USD)+is.Count))
		}
	}
	for _, is := range rest {
		d.say(key, "", is.String(), Tighter)
	}
}

// alike reports whether two caps differ at most in their figure.
func alike(a, b Limit) bool {
	return a.Window == b.Window && a.Scope.Kind == b.Scope.Kind && a.Counting == b.Counting
}

// list compares entries of which each that is there has an effect.
func (d *differ) list(key string, a, b []entry, e Effect) {
	for i := range a {
		if !holds(b, &a[i]) {
			d.say(key, a[i].text, "", opposite(e))
		}
	}
	for i := range b {
		if !holds(a, &b[i]) {
			d.say(key, "", b[i].text, e)
		}
	}
}

// holds reports whether list has an entry that matches what e does.
func holds(list []entry, e *entry) bool {
	return slices.ContainsFunc(list, func(o entry) bool { return o.splits == e.splits && o.covers(e) && e.covers(&o) })
}

// allow compares the allow lists. Entries of chain: or asset: alone narrow the
// others: the first of its kind tightens, and one beside another loosens.
func (d *differ) allow(a, b *table) {
	d.list("allow", a.allow.to, b.allow.to, Looser)
	for _, n := range [][2][]entry{{a.allow.chains, b.allow.chains}, {a.allow.assets, b.allow.assets}} {
		e := Looser
		if len(n[0]) == 0 || len(n[1]) == 0 {
			e = Tighter
		}
		d.list("allow", n[0], n[1], e)
	}
}

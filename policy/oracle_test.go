package policy_test

import (
	"fmt"
	"math/big"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// The oracle is a second reading of the policy document, as slow and as plain
// as can be: maps, texts and big integers. It shares no code with the package
// and speaks of deals, not payments.

type oracle struct {
	org    map[string]any
	tables map[string]map[string]any
}

type deal struct {
	agent, host string
	run         string // empty for none
	port        int
	chain       string
	token       string // lower case, 0x
	units       *big.Int
	decimals    int
	fee         int64
	to          []string // lower case, 0x
	verb, path  string   // of a request; the path without its query
}

// past is a deal that was authorized before.
type past struct {
	deal
	from, until time.Time
	live        bool
}

type opinion struct {
	status  string
	reasons []string // code: text of those whose text is fixed
	limits  []string
}

func readOracle(doc string) oracle {
	var all struct {
		Org    map[string]any
		Policy map[string]map[string]any
	}
	if err := toml.Unmarshal([]byte(doc), &all); err != nil {
		panic(err)
	}
	return oracle{all.Org, all.Policy}
}

// keys are the keys of a table after inheritance; ok is false for a circle or
// an unknown name.
func (o oracle) keys(name string) (out map[string]any, ok bool) {
	var chain []map[string]any
	for steps := 0; ; steps++ {
		t, found := o.tables[name]
		if !found || steps > len(o.tables) {
			return nil, false
		}
		chain = append(chain, t)
		from, has := t["from"]
		if !has {
			break
		}
		name = from.(string)
	}
	out = map[string]any{}
	var denies []any
	for i := len(chain) - 1; i >= 0; i-- {
		if l, named := chain[i]["approvers"]; named && len(l.([]any)) == 0 {
			delete(out, "quorum")
		}
		for k, v := range chain[i] {
			if k == "deny" {
				denies = append(denies, v.([]any)...)
			} else {
				out[k] = v
			}
		}
	}
	out["deny"] = denies
	return out, true
}

func micros(text string) *big.Int {
	whole, frac, _ := strings.Cut(strings.TrimPrefix(text, "$"), ".")
	n, ok := new(big.Int).SetString(whole+(frac + "000000")[:6], 10)
	if !ok {
		panic(text)
	}
	return n
}

func textOf(t map[string]any, key, absent string) string {
	if v, ok := t[key]; ok {
		return v.(string)
	}
	return absent
}

func listOf(t map[string]any, key string) []string {
	var out []string
	if text, ok := t[key].(string); ok {
		return []string{text}
	}
	list, _ := t[key].([]any)
	for _, v := range list {
		out = append(out, v.(string))
	}
	return out
}

// valid reports whether the document may be loaded. The texts in it are well
// formed; what is asked is whether they agree.
func (o oracle) valid() bool {
	dollars := func(caps []string) bool {
		for _, c := range caps {
			if strings.HasPrefix(c, "$") && !strings.Contains(c, "per") {
				return true
			}
		}
		return false
	}
	for name := range o.tables {
		t, ok := o.keys(name)
		if !ok {
			return false
		}
		named := listOf(t, "approvers")
		if q, has := t["quorum"]; has && len(named) < int(q.(int64)) {
			return false
		}
		if slices.Contains(named, name) {
			return false
		}
		if above, has := t["approve_above"]; has && micros(textOf(t, "max_payment", "$1")).Cmp(micros(above.(string))) <= 0 {
			return false
		}
		caps := listOf(t, "caps")
		if !(len(caps) == 1 && caps[0] == "none") && !dollars(caps) && !dollars(listOf(o.org, "caps")) {
			return false
		}
	}
	return true
}

// table is the name of the table that judges an agent, and its keys.
func (o oracle) table(agent string) (string, map[string]any) {
	if _, ok := o.tables[agent]; !ok {
		agent = "default"
	}
	t, ok := o.keys(agent)
	if !ok {
		return "", nil
	}
	return agent, t
}

// cost is what a deal costs in millionths, rounded up, with its fee.
func (d deal) cost() *big.Int {
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.decimals-6)), nil)
	n := new(big.Int).Add(d.units, new(big.Int).Sub(scale, big.NewInt(1)))
	n.Div(n, scale)
	return n.Add(n, big.NewInt(d.fee))
}

func hostMatches(pattern, name string, port int) bool {
	if name == "" {
		return false
	}
	if h, p, ok := strings.Cut(pattern, ":"); ok {
		if p != strconv.Itoa(port) {
			return false
		}
		pattern = h
	}
	if strings.HasPrefix(pattern, "*.") {
		return strings.HasSuffix(name, pattern[1:]) && len(name) > len(pattern)-1
	}
	return pattern == name
}

// parts splits an entry into what it says of host, address, chain, asset and
// splits.
func parts(entry string) map[string]string {
	out := map[string]string{}
	for _, p := range strings.Split(entry, " ") {
		kind, value, _ := strings.Cut(p, ":")
		out[kind] = strings.ToLower(value)
	}
	return out
}

// matches reports whether all parts of an entry hold for d and one recipient.
func matches(entry map[string]string, d deal, to string) bool {
	for kind, value := range entry {
		switch kind {
		case "host":
			if !hostMatches(value, d.host, d.port) {
				return false
			}
		case "address":
			if value != to {
				return false
			}
		case "chain":
			if value != d.chain {
				return false
			}
		case "asset":
			if value != d.chain+"/"+d.token {
				return false
			}
		}
	}
	return true
}

func (o oracle) admitted(allow []string, d deal, i int) bool {
	for _, text := range allow {
		e := parts(text)
		_, host := e["host"]
		_, address := e["address"]
		_, splits := e["splits"]
		switch {
		case text == "*":
			return true
		case address && matches(e, d, d.to[i]): // it holds for this recipient
			return true
		case host && !address && matches(e, d, d.to[i]) && (i == 0 || splits):
			return true
		case host && splits && matches(e, d, d.to[0]):
			return true
		}
	}
	return false
}

// narrowed reports whether entries of one kind that name no destination leave
// d out.
func narrowed(allow []string, d deal, kind string) bool {
	any, hit := false, false
	for _, text := range allow {
		e := parts(text)
		_, isAsset := e["asset"]
		if strings.Contains(text, "host:") || strings.Contains(text, "address:") || text == "*" || isAsset != (kind == "asset") {
			continue
		}
		any = true
		hit = hit || matches(e, d, "")
	}
	return any && !hit
}

// written is an amount of millionths as reasons write it.
func written(n *big.Int) string {
	if !n.IsInt64() || n.Cmp(big.NewInt(1<<63-1)) == 0 {
		return "more than can be counted"
	}
	s := fmt.Sprintf("%07d", n)
	whole, frac := s[:len(s)-6], strings.TrimRight(s[len(s)-6:], "0")
	for len(frac) < 2 {
		frac += "0"
	}
	return "$" + whole + "." + frac
}

func (o oracle) judge(d deal, now time.Time, before []past) opinion {
	var out opinion
	rank := 2
	say := func(status int, reason string) {
		rank = min(rank, status)
		out.reasons = append(out.reasons, reason)
	}
	if f, _ := o.org["frozen"].(bool); f {
		say(0, "frozen")
	}
	name, t := o.table(d.agent)
	if t == nil {
		say(0, "no_policy")
		out.status = "denied"
		return out
	}
	if f, _ := t["frozen"].(bool); f {
		say(0, "frozen")
	}
	hard := say
	if textOf(t, "mode", "enforce") == "shadow" {
		say = func(status int, reason string) {
			out.reasons = append(out.reasons, reason+" (shadow of "+[]string{"denied", "pending_approval"}[status]+")")
		}
	}
	if texts := listOf(t, "hours"); len(texts) > 0 && !isOpen(texts, textOf(t, "timezone", "UTC"), now) {
		say(0, "outside_hours")
	}
	for _, text := range listOf(t, "deny") {
		hit := text == "*"
		for _, to := range d.to {
			hit = hit || matches(parts(text), d, to)
		}
		if hit {
			say(0, "denied_destination: "+text)
		}
	}
	allow := listOf(t, "allow")
	if _, listed := t["allow"]; !listed {
		say(0, "not_allowed")
	} else {
		for i := range d.to {
			switch {
			case o.admitted(allow, d, i):
			case i == 0:
				say(0, "not_allowed")
			case !slices.Contains(d.to[1:i], d.to[i]):
				say(0, "split_not_allowed")
			}
		}
		for _, kind := range [][2]string{{"chain", "chain"}, {"asset", "token"}} {
			if narrowed(allow, d, kind[0]) {
				say(0, kind[1]+"_not_allowed")
			}
		}
	}
	cost := d.cost()
	if d.units.Sign() == 0 {
		hard(0, "zero_amount")
	}
	if !cost.IsInt64() {
		cost = big.NewInt(1<<63 - 1)
		hard(0, "amount_overflow")
	}
	o.habits(name, t, d, cost, before, say)
	if most := textOf(t, "max_payment", "$1"); cost.Cmp(micros(most)) > 0 {
		say(0, "max_payment: Amount "+written(cost)+" exceeds the maximum of "+most+" per payment")
	}
	o.caps(name, t, d, cost, now, before, &out, say, hard)
	if above, ok := t["approve_above"]; ok && cost.Cmp(micros(above.(string))) > 0 {
		say(1, "approval_threshold: Amount "+written(cost)+" exceeds approval threshold of "+above.(string))
	}
	out.status = []string{"denied", "pending_approval", "allowed"}[rank]
	sort.Strings(out.reasons)
	sort.Strings(out.limits)
	return out
}

func (o oracle) caps(name string, t map[string]any, d deal, cost *big.Int, now time.Time, before []past, out *opinion, soft, hard func(int, string)) {
	say, asks := soft, false
	one := func(text, scope, zone string, counted func(past) bool) {
		what, when, _ := strings.Cut(text, " / ")
		window, _, _ := strings.Cut(when, " ")
		sum, count := new(big.Int), int64(0)
		for _, b := range before {
			if counted(b) && inWindow(window, zone, b, now) {
				sum.Add(sum, b.cost())
				count++
			}
		}
		out.limits = append(out.limits, text+" | "+scope)
		if asks {
			out.limits[len(out.limits)-1] += " asks"
			say = func(_ int, reason string) {
				_, rest, _ := strings.Cut(reason, " exceeded: ")
				soft(1, "approval_total: Approval total exceeded: "+rest)
			}
		}
		if n, unit, ok := strings.Cut(what, " "); ok && strings.HasPrefix(unit, "payment") {
			most, _ := strconv.ParseInt(n, 10, 64)
			if count+1 > most {
				say(0, fmt.Sprintf("count_exceeded: Payment count exceeded: %d + 1 > %s", count, text))
			}
			return
		}
		if new(big.Int).Add(sum, cost).Cmp(micros(what)) > 0 {
			say(0, "cap_exceeded: Spend cap exceeded: "+written(sum)+" + "+written(cost)+" > "+text)
		}
	}
	mine := func(b past) bool {
		judged, _ := o.table(b.agent)
		return judged == name
	}
	caps := listOf(t, "caps")
	for i, text := range append(caps, listOf(t, "approve_above_total")...) {
		asks = i >= len(caps)
		zone := textOf(t, "timezone", "UTC")
		switch {
		case text == "none":
		case strings.HasSuffix(text, "per host"):
			if d.host != "" {
				one(text, "agent:"+name+" host:"+d.host, zone, func(b past) bool { return mine(b) && b.host == d.host })
			}
		case strings.HasSuffix(text, "per run"):
			if d.run != "" {
				one(text, "agent:"+name+" run:"+d.run, zone, func(b past) bool { return mine(b) && b.run == d.run })
			}
		case strings.HasSuffix(text, "per payee"):
			done := map[string]bool{}
			for _, to := range d.to {
				if done[to] {
					continue
				}
				done[to] = true
				one(text, "agent:"+name+" payee:"+to, zone, func(b past) bool {
					return mine(b) && strings.Contains(strings.Join(b.to, " "), to)
				})
			}
		default:
			one(text, "agent:"+name, zone, mine)
		}
	}
	say, asks = hard, false
	for _, text := range listOf(o.org, "caps") {
		one(text, "org", textOf(o.org, "timezone", "UTC"), func(past) bool { return true })
	}
}

// inWindow compares civil dates where the engine compares instants.
func inWindow(window, zone string, b past, now time.Time) bool {
	if b.live || window == "ever" || !b.until.Before(now) {
		return true
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		panic(err)
	}
	number := func(at time.Time) int {
		at = at.In(loc)
		switch window {
		case "day":
			return at.Year()*1000 + at.YearDay()
		case "week":
			y, w := at.ISOWeek()
			return y*100 + w
		}
		return at.Year()*12 + int(at.Month())
	}
	switch window {
	case "day", "week", "month":
		return number(b.from) <= number(now) && number(b.until) >= number(now)
	}
	n, _ := strconv.Atoi(window[:len(window)-1])
	unit := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[window[len(window)-1]]
	return now.Sub(b.until) < time.Duration(n)*unit
}

// isOpen asks the clock on the wall of each text's zone.
func isOpen(texts []string, zone string, now time.Time) bool {
	for _, text := range texts {
		text = strings.ReplaceAll(text, ",", " ")
		words := strings.Fields(text)
		in := zone
		if last := words[len(words)-1]; strings.ContainsAny(last, "/U") {
			in, words = last, words[:len(words)-1]
		}
		loc, err := time.LoadLocation(in)
		if err != nil {
			panic(err)
		}
		clock := now.In(loc)
		today, minute := clock.Weekday(), clock.Format("15:04")
		yesterday := (today + 6) % 7
		days, fresh := "", true // the names of the days that are meant
		for i, w := range words {
			if w[0] >= '0' && w[0] <= '9' {
				fresh = true
				on := func(d time.Weekday) bool { return days == "" || strings.Contains(days, d.String()[:3]) }
				from, to, _ := strings.Cut(w, "-")
				if from < to && on(today) && from <= minute && minute < to {
					return true
				}
				if from > to && (on(today) && from <= minute || on(yesterday) && minute < to) {
					return true
				}
				continue
			}
			if fresh {
				days, fresh = "", false
			}
			from, to, ranged := strings.Cut(w, "-")
			days += from
			for d := time.Sunday; ranged && from != to; d = (d + 1) % 7 {
				if d.String()[:3] == from {
					from = ((d + 1) % 7).String()[:3]
					days += from
				}
			}
			if i == len(words)-1 && strings.Contains(days, today.String()[:3]) {
				return true
			}
		}
	}
	return false
}

// people are who rules on what an agent asks for, and how many of them must.
func (o oracle) people(agent string) string {
	_, t := o.table(agent)
	named := listOf(t, "approvers")
	quorum := min(1, len(named))
	if q, ok := t["quorum"]; ok {
		quorum = int(q.(int64))
	}
	return fmt.Sprint(named, quorum, textOf(t, "mode", "") == "shadow")
}

// habits are the rules about what was paid before.
func (o oracle) habits(name string, t map[string]any, d deal, cost *big.Int, before []past, say func(int, string)) {
	mine := func(b past) bool {
		judged, _ := o.table(b.agent)
		return judged == name && b.host == d.host && b.port == d.port
	}
	if what, ok := t["new_payee"]; ok {
		known := map[string]bool{}
		for _, b := range before {
			for _, to := range b.to {
				known[to] = known[to] || mine(b)
			}
		}
		for _, to := range d.to {
			if !known[to] {
				known[to] = true
				say(map[any]int{"deny": 0, "approve": 1}[what], "new_payee: "+to)
			}
		}
	}
	jump, ok := t["price_jump"]
	if !ok || d.host == "" {
		return
	}
	var last *past
	for i, b := range before {
		if mine(b) && b.verb == d.verb && b.path == d.path && (last == nil || !b.from.Before(last.from)) {
			last = &before[i]
		}
	}
	if last == nil {
		return
	}
	most, _ := new(big.Rat).SetString(strings.TrimSuffix(jump.(string), "x"))
	most.Mul(most, new(big.Rat).SetInt(last.cost()))
	if new(big.Rat).SetInt(cost).Cmp(most) > 0 {
		say(1, "price_jump: Price jumped: "+written(cost)+" is more than "+jump.(string)+" the "+written(last.cost())+" paid before")
	}
}

package policy_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// The worlds in which documents and payments are drawn: small, so that they
// meet.
var (
	worldHosts  = []string{"a.example", "b.example", "x.a.example", "y.x.a.example", "ba.example", "10.0.0.1"}
	worldNames  = []string{"a.example", "b.example", "x.a.example", "*.a.example", "*.example", "a.example:8443", "*.x.a.example:443", "10.0.0.1"}
	worldAddrs  = []string{"0x00000000000000000000000000000000000000aa", "0x00000000000000000000000000000000000000bb", "0x00000000000000000000000000000000000000cc", "0x00000000000000000000000000000000000000dd"}
	worldAssets = []payment.Asset{
		payment.KnownAssets().On(payment.Base)[0], payment.KnownAssets().On(payment.Tempo)[0],
		payment.KnownAssets().On("eip155:4326")[0], // 18 decimals
	}
	worldAgents  = []string{"default", "ana", "ben", "cleo", "nobody"}
	worldAmounts = []string{"$0", "$0.5", "$1", "$1.000001", "$2", "$5", "$7.50", "$10", "$20"}
	worldWindows = []string{"90s", "1h", "24h", "7d", "day", "week", "month", "ever"}
	worldJumps   = []string{"3x", "1.5x", "1.001x", "10x", "1000x"}
	worldHours   = []string{
		"Mon-Fri 08:00-20:00 Europe/Berlin", "Mon,Wed-Fri 06:30-22:15", "Sat,Sun", "00:00-24:00", "22:00-06:00 America/New_York", "Mon-Sun",
		"Fri-Mon 12:00-11:00, Tue 00:00-00:01", "Mon-Thu 08:00-12:00,13:00-18:00, Fri 08:00-13:00 Asia/Kathmandu", "Sun 20:00-04:00", "02:00-03:00 Europe/Berlin",
	}
	worldZones = []string{"UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Asia/Kathmandu"}
)

type dice struct{ *rand.Rand }

func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

func one[T any](d dice, from []T) T { return from[d.IntN(len(from))] }

func (d dice) entry(deny bool) string {
	if d.chance(5) || !deny && d.chance(15) {
		return "*"
	}
	var parts []string
	host := d.chance(55)
	if host {
		parts = append(parts, "host:"+one(d, worldNames))
	}
	if d.chance(40) {
		parts = append(parts, "address:"+one(d, worldAddrs))
	}
	if len(parts) == 0 || d.chance(15) {
		a := one(d, worldAssets)
		if d.chance(50) {
			parts = append(parts, "chain:"+string(a.Chain))
		} else {
			chain := a.Chain
			if d.chance(20) {
				chain = one(d, worldAssets).Chain
			}
			parts = append(parts, "asset:"+string(chain)+"/"+a.Address.Lower())
		}
	}
	if host && !deny && d.chance(15) {
		parts = append(parts, "splits:any")
	}
	d.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return strings.Join(parts, " ")
}

func (d dice) entries(deny bool) []string {
	out := []string{}
	most := 7
	if deny {
		most = 4
	}
	for range d.IntN(most) {
		out = append(out, d.entry(deny))
	}
	return out
}

func (d dice) caps(org bool) []string {
	if !org && d.chance(25) {
		return []string{"none"}
	}
	out := []string{}
	seen := map[string]bool{}
	for i := range d.IntN(5) {
		window, scope, what := one(d, worldWindows), "", one(d, worldAmounts)
		if d.chance(60) {
			what = one(d, worldAmounts[6:])
		}
		if i == 0 && d.chance(75) { // most documents are valid
			seen[window+"true"] = true
			out = append(out, what+" / "+window)
			continue
		}
		if d.chance(25) {
			what = strconv.Itoa(d.IntN(6)) + " payments"
		}
		if !org && d.chance(40) {
			scope = one(d, []string{" per host", " per payee", " per run"})
		}
		if key := window + scope + strconv.FormatBool(what[0] == '$'); !seen[key] {
			seen[key] = true
			out = append(out, what+" / "+window+scope)
		}
	}
	return out
}

func quoted(list []string) string {
	q := make([]string, len(list))
	for i, s := range list {
		q[i] = strconv.Quote(s)
	}
	return "[" + strings.Join(q, ", ") + "]"
}

// document draws a document, mostly a valid one.
func (d dice) document() string {
	var b strings.Builder
	if d.chance(60) {
		b.WriteString("[org]\n")
		if d.chance(80) {
			fmt.Fprintf(&b, "caps = %s\n", quoted(d.caps(true)))
		}
		if d.chance(30) {
			fmt.Fprintf(&b, "timezone = %q\n", one(d, worldZones))
		}
		if d.chance(5) {
			b.WriteString("frozen = true\n")
		}
	}
	for i, name := range worldAgents[:4] {
		if i == 0 && d.chance(10) || i > 0 && d.chance(50) {
			continue
		}
		fmt.Fprintf(&b, "[policy.%s]\n", name)
		inherits := i > 0 && d.chance(45)
		if inherits {
			from := one(d, worldAgents[:i])
			if d.chance(2) {
				from = one(d, worldAgents)
			}
			fmt.Fprintf(&b, "from = %q\n", from)
		}
		if d.chance(70) {
			fmt.Fprintf(&b, "max_payment = %q\n", one(d, worldAmounts[d.IntN(7):]))
		}
		if d.chance(30) {
			fmt.Fprintf(&b, "approve_above = %q\n", one(d, worldAmounts[:2+d.IntN(4)]))
		}
		if !inherits || d.chance(40) {
			fmt.Fprintf(&b, "caps = %s\n", quoted(d.caps(false)))
		}
		if d.chance(60) || !inherits && d.chance(80) {
			fmt.Fprintf(&b, "allow = %s\n", quoted(d.entries(false)))
		}
		if d.chance(40) {
			fmt.Fprintf(&b, "deny = %s\n", quoted(d.entries(true)))
		}
		if d.chance(6) {
			fmt.Fprintf(&b, "frozen = %v\n", d.chance(70))
		}
		if d.chance(30) {
			fmt.Fprintf(&b, "timezone = %q\n", one(d, worldZones))
		}
		d.habits(&b)
	}
	return b.String()
}

// habits draws the keys that few tables have.
func (d dice) habits(b *strings.Builder) {
	if d.chance(15) {
		totals := quoted(slices.DeleteFunc(d.caps(true), func(string) bool { return d.chance(40) }))
		if !strings.Contains(totals, ",") && totals != "[]" {
			totals = strings.Trim(totals, "[]") // one alone is a text too
		}
		fmt.Fprintf(b, "approve_above_total = %s\n", totals)
	}
	if d.chance(12) {
		if d.chance(50) {
			fmt.Fprintf(b, "hours = %q\n", one(d, worldHours))
		} else {
			fmt.Fprintf(b, "hours = %s\n", quoted([]string{one(d, worldHours), one(d, worldHours)}))
		}
	}
	if d.chance(12) {
		fmt.Fprintf(b, "new_payee = %q\n", one(d, []string{"approve", "approve", "deny"}))
	}
	if d.chance(15) {
		fmt.Fprintf(b, "price_jump = %q\n", one(d, worldJumps))
	}
	if d.chance(10) {
		fmt.Fprintf(b, "mode = %q\n", one(d, []string{"shadow", "enforce"}))
	}
	if d.chance(15) {
		fmt.Fprintf(b, "approvers = %s\n", one(d, []string{"[]", `["eve"]`, `["eve", "max"]`, `["ana", "max", "zoe"]`}))
	}
	if d.chance(3) {
		fmt.Fprintf(b, "quorum = %d\n", 1+d.IntN(3))
	}
}

func (d dice) deal() deal {
	a := one(d, worldAssets)
	out := deal{
		agent: one(d, worldAgents), chain: string(a.Chain), token: a.Address.Lower(), decimals: int(a.Decimals),
		run: one(d, []string{"", "one", "two"}), port: one(d, []int{443, 443, 8443}), to: []string{one(d, worldAddrs)},
	}
	if d.chance(85) {
		out.host = one(d, worldHosts)
		for d.chance(25) {
			out.to = append(out.to, one(d, worldAddrs))
		}
		out.verb, out.path = one(d, []string{"GET", "GET", "POST"}), one(d, []string{"/", "/a", "/a/b"})
	} else {
		out.port = 0
	}
	micro := d.Int64N(2_000_000)
	switch d.IntN(8) {
	case 0:
		micro = d.Int64N(25_000_000)
	case 1, 2:
		micro = micros(one(d, worldAmounts)).Int64() + one(d, []int64{-1, 0, 0, 1})
	}
	out.units = new(big.Int).Mul(big.NewInt(max(0, micro)), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(a.Decimals)-6), nil))
	if a.Decimals > 6 && d.chance(30) {
		out.units.Add(out.units, big.NewInt(d.Int64N(1_000_000)))
	}
	if d.chance(1) {
		out.units.Lsh(big.NewInt(1), uint(60+d.IntN(190)))
	}
	if d.chance(10) {
		out.fee = d.Int64N(50_000)
	}
	return out
}

func (d dice) history(now time.Time) []past {
	var out []past
	for range d.IntN(6) {
		p := past{deal: d.deal(), live: d.chance(10)}
		if !p.cost().IsInt64() {
			continue
		}
		back := time.Duration(d.Int64N(int64(one(d, []time.Duration{2 * time.Minute, 2 * time.Hour, 48 * time.Hour, 40 * 24 * time.Hour}))))
		if d.chance(15) {
			back = one(d, []time.Duration{0, 90 * time.Second, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}) // an edge
		}
		p.until = now.Add(-back)
		p.from = p.until.Add(-time.Duration(d.Int64N(int64(10 * time.Minute))))
		if d.chance(10) {
			p.until = now.Add(time.Duration(d.Int64N(int64(10 * time.Minute))))
		}
		out = append(out, p)
	}
	return out
}

// payment is d as the engine takes it.
func (d deal) payment() payment.Payment {
	p := payment.Payment{Agent: d.agent, Host: d.host, Port: uint16(d.port), Run: d.run}
	p.Terms.FeeBound = payment.USD(d.fee)
	p.Terms.Amount, _ = payment.UnitsFromBig(d.units)
	for _, a := range worldAssets {
		if string(a.Chain) == d.chain && a.Address.Lower() == d.token {
			p.Terms.Asset = a
		}
	}
	if d.host != "" {
		p.Terms.Method, p.Terms.Origin, p.Terms.Target = d.verb, fmt.Sprintf("https://%s:%d", d.host, d.port), d.path+"?q=1"
	}
	for _, to := range d.to {
		p.Terms.Recipients = append(p.Terms.Recipients, payment.Recipient{Address: address(to)})
	}
	return p
}

// uses is what a ledger that holds before would say of limits.
func uses(t interface{ Fatal(...any) }, p *policy.Policy, limits []policy.Limit, before []past, now time.Time) []policy.Use {
	agents := p.Agents()
	var out []policy.Use
	for _, l := range limits {
		u := policy.Use{Limit: l}
		for _, b := range before {
			pay := b.payment()
			f := policy.Facts{Agent: b.agent, Shared: b.agent == "default" || !slices.Contains(agents, b.agent), Host: b.host, Run: b.run}
			for _, r := range pay.Terms.Recipients {
				f.Payees = append(f.Payees, r.Address)
			}
			counts, err := l.Window.Counts(b.from, b.until, b.live, now)
			if err != nil {
				t.Fatal(err)
			}
			if counts && l.Scope.Covers(f) {
				u.USD, _ = u.USD.Add(pay.Terms.Cost())
				u.Count++
			}
		}
		out = append(out, u)
	}
	return out
}

// pastOf is what a ledger that holds before would say of pay, in the scope that
// p names; nil where p asks for nothing.
func pastOf(p *policy.Policy, pay payment.Payment, before []past) *policy.Past {
	s, asks := p.AsksPast(pay.Agent)
	if !asks {
		return nil
	}
	out, at := &policy.Past{}, time.Time{}
	path := func(target string) string { return strings.Split(target, "?")[0] }
	for _, b := range before {
		was := b.payment()
		f := policy.Facts{Agent: b.agent, Shared: b.agent == "default" || !slices.Contains(p.Agents(), b.agent)}
		if !s.Covers(f) || was.Terms.Origin != pay.Terms.Origin {
			continue
		}
		for _, r := range was.Terms.Recipients {
			if slices.ContainsFunc(pay.Terms.Recipients, func(o payment.Recipient) bool { return o.Address == r.Address }) {
				out.Payees = append(out.Payees, r.Address)
			}
		}
		if was.Terms.Method == pay.Terms.Method && path(was.Terms.Target) == path(pay.Terms.Target) && !b.from.Before(at) {
			out.Price, out.Priced, at = was.Terms.Cost(), true, b.from
		}
	}
	return out
}

// answer is a verdict in the oracle's words.
func answer(v policy.Verdict) opinion {
	o := opinion{status: v.Status.String()}
	for _, r := range v.Reasons {
		said := r.Code
		switch r.Code {
		case "denied_destination":
			said += ": " + r.Rule
		case "max_payment", "approval_threshold", "cap_exceeded", "count_exceeded", "price_jump", "approval_total":
			said += ": " + r.Text
		case "new_payee":
			said += ": " + strings.ToLower(r.Scope)
		}
		if r.Shadow {
			said += " (shadow of " + r.Status.String() + ")"
		}
		o.reasons = append(o.reasons, said)
	}
	for _, l := range v.Limits {
		said := l.Text + " | " + l.Scope.Key()
		if l.Asks {
			said += " asks"
		}
		o.limits = append(o.limits, said)
	}
	sort.Strings(o.reasons)
	sort.Strings(o.limits)
	return o
}

// TestOracle compares the engine with the oracle on random documents,
// payments and histories: 100,000 documents, or as many as
// CANOPY_POLICY_CASES says, from the seed that CANOPY_POLICY_SEED names.
func TestOracle(t *testing.T) {
	t.Parallel()
	cases, seed := uint64(100_000), uint64(time.Now().UnixNano())
	if raceEnabled {
		cases /= 20
	}
	if s := os.Getenv("CANOPY_POLICY_CASES"); s != "" {
		cases, _ = strconv.ParseUint(s, 10, 64)
	}
	if s := os.Getenv("CANOPY_POLICY_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]int{}
	const workers = 2
	for w := range uint64(workers) {
		wg.Go(func() {
			tally := map[string]int{}
			for i := w; i < cases && !t.Failed(); i += workers {
				compare(t, dice{rand.New(rand.NewPCG(seed, i))}, fmt.Sprintf("seed %d case %d", seed, i), tally)
			}
			mu.Lock()
			defer mu.Unlock()
			for k, n := range tally {
				seen[k] += n
			}
		})
	}
	wg.Wait()
	t.Logf("seed %d, %d documents: %v", seed, cases, seen)
	for _, k := range []string{"allowed", "pending_approval", "denied", "invalid", "not_allowed", "split_not_allowed", "chain_not_allowed", "token_not_allowed", "denied_destination", "cap_exceeded", "count_exceeded", "frozen", "no_policy", "max_payment", "zero_amount", "amount_overflow", "outside_hours", "new_payee", "price_jump", "approval_total", "shadow"} {
		if cases >= 1000 && uint64(seen[k]) < cases/1000 {
			t.Errorf("the worlds are poor: %s came up %d times in %d documents", k, seen[k], cases)
		}
	}
}

func compare(t *testing.T, d dice, where string, tally map[string]int) {
	doc := d.document()
	o := readOracle(doc)
	p, err := policy.Parse("random.toml", []byte(doc))
	if (err == nil) != o.valid() {
		t.Errorf("%s: Parse says %v, the oracle says valid %v:\n%s", where, err, o.valid(), doc)
		return
	}
	if err != nil {
		tally["invalid"]++
		return
	}
	if again, err := policy.Parse("random.toml", []byte(p.String())); err != nil || again.String() != p.String() {
		t.Errorf("%s: String does not read back: %v\n%s", where, err, p)
	}
	now := time.Unix(1_790_000_000+d.Int64N(400*86400), d.Int64N(1e9))
	if d.chance(20) {
		now = time.Date(2026, one(d, []time.Month{3, 10, 11}), one(d, []int{1, 8, 25, 29}), d.IntN(25), 0, 0, 0, time.UTC)
	}
	before := d.history(now)
	for range 3 {
		offer := d.deal()
		if len(before) > 0 && d.chance(40) { // the same again, at another price
			b := one(d, before).deal
			offer.agent, offer.host, offer.port, offer.verb, offer.path, offer.to = b.agent, b.host, b.port, b.verb, b.path, b.to
		}
		want := o.judge(offer, now, before)
		earlier := pastOf(p, offer.payment(), before)
		left := p.Evaluate(offer.payment(), now, policy.History{Past: earlier})
		known := uses(t, p, left.Limits, before, now)
		d.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
		v := p.Evaluate(offer.payment(), now, policy.History{Uses: known, Past: earlier})
		if got := answer(v); got.status != want.status || !slices.Equal(got.reasons, want.reasons) || !slices.Equal(got.limits, want.limits) {
			t.Errorf("%s at %v\n%s\ndeal %+v\nhistory %+v\ngot  %+v\nwant %+v", where, now, doc, offer, before, got, want)
			return
		}
		if got, want := fmt.Sprint(v.Approvers, v.Quorum, v.Shadow), o.people(offer.agent); got != want {
			t.Errorf("%s: %s ruled by %s, want %s\n%s", where, offer.agent, got, want, doc)
			return
		}
		if applied := left.Apply(known); !equalVerdicts(applied, v) {
			t.Errorf("%s: Apply differs from Evaluate (-evaluate +apply):\n%s", where, cmp.Diff(v, applied))
			return
		}
		tally[v.Status.String()]++
		for _, r := range v.Reasons {
			tally[r.Code]++
			if r.Shadow {
				tally["shadow"]++
			}
		}
	}
}

func equalVerdicts(a, b policy.Verdict) bool {
	ar, br, al, bl := a.Reasons, b.Reasons, a.Limits, b.Limits
	a.Reasons, b.Reasons, a.Limits, b.Limits = nil, nil, nil, nil
	return slices.Equal(ar, br) && slices.Equal(al, bl) && cmp.Equal(a, b)
}

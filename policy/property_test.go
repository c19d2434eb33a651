package policy_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// config is a random document as Go values.
func (d dice) config() policy.Config {
	for {
		doc := d.document()
		o := readOracle(doc)
		if !o.valid() || len(o.tables) == 0 {
			continue
		}
		c := policy.Config{Org: policy.Org{Caps: listOf(o.org, "caps"), Timezone: textOf(o.org, "timezone", "")}, Tables: map[string]policy.Table{}}
		for name, t := range o.tables {
			c.Tables[name] = policy.Table{
				From: textOf(t, "from", ""), MaxPayment: textOf(t, "max_payment", ""), ApproveAbove: textOf(t, "approve_above", ""),
				Caps: listOf(t, "caps"), Allow: listOf(t, "allow"), Deny: listOf(t, "deny"), Timezone: textOf(t, "timezone", ""),
				ApproveAboveTotal: listOf(t, "approve_above_total"), Hours: listOf(t, "hours"), Mode: textOf(t, "mode", ""),
				NewPayee: textOf(t, "new_payee", ""), PriceJump: textOf(t, "price_jump", ""),
			}
		}
		if _, err := policy.New(c); err == nil { // an empty list is an absent one here
			return c
		}
	}
}

func cloned(c policy.Config) policy.Config {
	c.Org.Caps = slices.Clone(c.Org.Caps)
	c.Tables = maps.Clone(c.Tables)
	for n, t := range c.Tables {
		t.Caps, t.Allow, t.Deny = slices.Clone(t.Caps), slices.Clone(t.Allow), slices.Clone(t.Deny)
		t.ApproveAboveTotal, t.Hours = slices.Clone(t.ApproveAboveTotal), slices.Clone(t.Hours)
		c.Tables[n] = t
	}
	return c
}

// tighten makes c stricter in one way, and names it; empty where the draw did
// not fit.
func (d dice) tighten(c policy.Config) string {
	name := one(d, slices.Sorted(maps.Keys(c.Tables)))
	t := c.Tables[name]
	defer func() { c.Tables[name] = t }()
	lower := func(caps []string) string {
		if len(caps) == 0 || caps[0] == "none" {
			return ""
		}
		i := d.IntN(len(caps))
		what, when, _ := strings.Cut(caps[i], " / ")
		if n, ok := strings.CutSuffix(what, " payments"); ok {
			was, _ := strconv.Atoi(n)
			what = strconv.Itoa(d.IntN(was+1)) + " payments"
		} else {
			what = written(micros(fmt.Sprint(d.Int64N(micros(what).Int64()/1_000_000 + 1))))
		}
		was := caps[i]
		caps[i] = what + " / " + when
		return "lower " + was + " to " + caps[i]
	}
	switch d.IntN(14) {
	case 0:
		t.Deny = append(t.Deny, d.entry(true))
		return "deny " + t.Deny[len(t.Deny)-1]
	case 1, 2:
		return lower(t.Caps)
	case 3:
		return lower(c.Org.Caps)
	case 4:
		return shrink(d, &t)
	case 5:
		most := micros("$1")
		if t.MaxPayment != "" {
			most = micros(t.MaxPayment)
		} else if t.From != "" {
			return ""
		}
		t.MaxPayment = written(micros(fmt.Sprint(d.Int64N(most.Int64()/1_000_000 + 1))))
		return "max_payment " + t.MaxPayment
	case 6:
		if t.From == "" && t.Caps != nil && t.Caps[0] != "none" || t.From == "" && t.Caps == nil {
			t.Caps = append(t.Caps, "$3 / 13h per payee")
			return "another cap"
		}
	case 7:
		if t.ApproveAbove == "" && t.From == "" {
			t.ApproveAbove = "$0"
			return "ask"
		}
		t.Frozen = true
		return "freeze"
	case 8:
		return later(d, &t)
	case 9:
		switch {
		case t.NewPayee == "approve":
			t.NewPayee = "deny"
		case t.NewPayee == "" && t.From == "":
			t.NewPayee = one(d, []string{"approve", "deny"})
		default:
			return ""
		}
		return "new_payee " + t.NewPayee
	case 10:
		if t.PriceJump == "" && t.From != "" {
			return ""
		}
		t.PriceJump = "1.001x"
		return "price_jump " + t.PriceJump
	case 11:
		return lower(t.ApproveAboveTotal)
	case 12:
		if t.ApproveAboveTotal == nil && t.From != "" {
			return ""
		}
		t.ApproveAboveTotal = append(t.ApproveAboveTotal, "$1 / 13h per payee")
		return "another total"
	case 13:
		if t.Mode == "shadow" {
			t.Mode = "enforce"
			return "no shadow"
		}
	}
	return ""
}

// later makes the hours of a table shorter, or gives it some.
func later(d dice, t *policy.Table) string {
	switch n := len(t.Hours); {
	case n == 0 && t.From == "":
		t.Hours = []string{one(d, worldHours)}
	case n == 0:
		return ""
	case n > 1:
		t.Hours = t.Hours[:n-1]
	case strings.Contains(t.Hours[0], "08:00-"):
		t.Hours[0] = strings.ReplaceAll(t.Hours[0], "08:00-", "11:00-")
	case strings.Contains(t.Hours[0], "22:00-"):
		t.Hours[0] = strings.ReplaceAll(t.Hours[0], "22:00-", "23:59-")
	case strings.HasPrefix(t.Hours[0], "Mon-Sun"):
		t.Hours[0] = "Tue-Sun"
	default:
		return ""
	}
	return "hours " + strings.Join(t.Hours, "; ")
}

// shrink takes one destination out of an allow list, or narrows it further. To
// take out the last chain: or asset: entry would lift a narrowing, which is no
// shrinking.
func shrink(d dice, t *policy.Table) string {
	if len(t.Allow) < 2 {
		return ""
	}
	i := d.IntN(len(t.Allow))
	gone := t.Allow[i]
	narrows := func(e string) bool {
		return e != "*" && !strings.Contains(e, "host:") && !strings.Contains(e, "address:")
	}
	if narrows(gone) {
		left := 0
		for _, e := range t.Allow {
			if narrows(e) && strings.Contains(e, "asset:") == strings.Contains(gone, "asset:") {
				left++
			}
		}
		if left < 2 {
			return ""
		}
	}
	t.Allow = slices.Delete(t.Allow, i, i+1)
	return "allow without " + gone
}

// TestDenyMonotone is invariant I14: a deny rule more, a cap lowered or an
// allow list shrunk never turns a denial into an allowance, nor a question
// into one; and the order in which lists are written decides nothing.
func TestDenyMonotone(t *testing.T) {
	t.Parallel()
	cases, seed := 5_000, uint64(time.Now().UnixNano())
	if raceEnabled {
		cases /= 10
	}
	if s := os.Getenv("CANOPY_POLICY_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	tightened, differed := 0, 0
	for i := range cases {
		d := dice{rand.New(rand.NewPCG(seed, uint64(i)))}
		c := d.config()
		stricter := cloned(c)
		how := d.tighten(stricter)
		if how == "" {
			continue
		}
		before, err := policy.New(c)
		if err != nil {
			t.Fatal(err)
		}
		after, err := policy.New(stricter)
		if err != nil {
			continue // a maximum below the threshold, or no cap in dollars: refused, which is tight
		}
		shuffled := cloned(c)
		for _, tab := range shuffled.Tables {
			for _, list := range [][]string{tab.Allow, tab.Deny, tab.Caps, tab.ApproveAboveTotal, tab.Hours} {
				d.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			}
		}
		mixed, err := policy.New(shuffled)
		if err != nil {
			t.Fatal(err)
		}
		tightened++
		now := time.Unix(1_790_000_000+d.Int64N(1e7), 0)
		past := d.history(now)
		judge := func(p *policy.Policy, pay payment.Payment) policy.Verdict {
			v := p.Evaluate(pay, now, policy.History{Past: pastOf(p, pay, past)})
			return v.Apply(uses(t, p, v.Limits, past, now))
		}
		for range 10 {
			pay := d.deal().payment()
			was, is, other := judge(before, pay), judge(after, pay), judge(mixed, pay)
			if is.Status > was.Status {
				t.Fatalf("seed %d case %d: %s turned %v into %v for %+v\n%s\nto\n%s", seed, i, how, was.Status, is.Status, pay, before, after)
			}
			if is.Status != was.Status {
				differed++
			}
			if a, b := answer(was), answer(other); a.status != b.status || !slices.Equal(a.reasons, b.reasons) {
				t.Fatalf("seed %d case %d: order matters: %v, %v\n%s\nand\n%s", seed, i, a, b, before, mixed)
			}
		}
	}
	t.Logf("seed %d: %d documents tightened, %d answers became stricter", seed, tightened, differed)
	if tightened < cases/2 || differed < cases/100 {
		t.Errorf("only %d of %d documents were tightened, %d answers differ", tightened, cases, differed)
	}
}

// TestSplitInvariance is invariant I15, and attack 61: whatever a purchase is
// split into, over agents, hosts, payees and rails, each cap holds at every
// instant.
func TestSplitInvariance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		window := rapid.SampledFrom(worldWindows).Draw(rt, "window")
		limit := rapid.Int64Range(0, 30).Draw(rt, "limit")
		p, err := policy.Parse("split.toml", fmt.Appendf(nil, `
[org]
caps = ["$%d / %s"]
[policy.default]
max_payment = "$100"
caps = ["$%d / %s", "$%d / %s per host", "$%d / %s per payee", "7 payments / %s"]
allow = ["*"]
[policy.ana]
from = "default"`, limit, window, max(0, limit-3), window, limit/2, window, limit/3, window, window))
		if err != nil {
			rt.Fatal(err)
		}
		now := time.Unix(1_790_000_000, 0)
		var paid []past
		for _, part := range rapid.SliceOfN(rapid.Int64Range(1, 9_000_000), 1, 30).Draw(rt, "parts") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(12*time.Hour)).Draw(rt, "wait")))
			d := dice{rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "to"), 1))}.deal()
			d.units, d.decimals, d.token, d.chain, d.fee = micros("$0").SetInt64(part), 6, worldAssets[0].Address.Lower(), string(payment.Base), 0
			pay := d.payment()
			v := p.Evaluate(pay, now, policy.History{})
			if v = v.Apply(uses(rt, p, v.Limits, paid, now)); v.Status != payment.Allowed {
				continue
			}
			paid = append(paid, past{deal: d, from: now, until: now.Add(time.Minute)})
			for _, u := range uses(rt, p, v.Limits, paid, now) {
				if !u.Limit.Counting && u.USD > u.Limit.USD || u.Limit.Counting && u.Count > u.Limit.Count {
					rt.Fatalf("%v of %s is used to %v, %d", u.Limit, u.Limit.Scope.Key(), u.USD, u.Count)
				}
			}
		}
	})
}

// TestSaturation is attack 90: sums at the edge of what can be counted never
// make room.
func TestSaturation(t *testing.T) {
	t.Parallel()
	l := policy.Limit{Scope: policy.Scope{Kind: policy.ScopeOrg}, Window: policy.Window{Kind: policy.Ever}, USD: payment.MaxUSD, Text: "all / ever"}
	for _, used := range []payment.USD{-1, payment.MaxUSD - 1, payment.MaxUSD} {
		for _, cost := range []payment.USD{-1, 2, payment.MaxUSD - 1, payment.MaxUSD} {
			v := policy.Verdict{Status: payment.Allowed, Cost: cost, Limits: []policy.Limit{l}}
			if v = v.Apply([]policy.Use{{Limit: l, USD: used}}); v.Status != payment.Denied {
				t.Errorf("%d + %d fits", used, cost)
			}
		}
	}
	c := policy.Limit{Scope: l.Scope, Window: l.Window, Counting: true, Count: 1 << 62}
	v := policy.Verdict{Status: payment.Allowed, Limits: []policy.Limit{c}}
	if v.Apply([]policy.Use{{Limit: c, Count: -1}}).Status != payment.Denied {
		t.Error("a negative count fits")
	}
}

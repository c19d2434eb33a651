package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/canopy-go/canopy/policy"
)

// effects are those of differences.
func effects(ds []policy.Difference) (out map[policy.Effect]int) {
	out = map[policy.Effect]int{}
	for _, d := range ds {
		out[d.Effect]++
	}
	return out
}

func TestDiff(t *testing.T) {
	t.Parallel()
	a := parse(t, `
[org]
caps = ["$50 / 24h"]
[policy.default]
caps = ["$20 / 24h", "5 payments / 1h"]
allow = ["host:Feed.example", "host:b.example splits:any", "chain:eip155:8453"]
deny = ["host:evil.example"]
[policy.trader]
from = "default"
approve_above = "$0.50"
`)
	b := parse(t, `
[org]
caps = ["$50.00 / 24h", "100 payments / day"]
frozen = true
[policy.default]
caps = ["$25 / 24h"]
max_payment = "$0.75"
allow = ["host:feed.example", "host:b.example"]
deny = ["host:evil.example", "host:*.evil.example"]
duplicate_window = "1h"
`)
	want := []policy.Difference{
		{Key: "frozen", Was: "false", Is: "true", Effect: policy.Tighter},
		{Key: "caps", Is: "100 payments / day", Effect: policy.Tighter},
		{Table: "default", Key: "max_payment", Was: "$1", Is: "$0.75", Effect: policy.Tighter},
		{Table: "default", Key: "caps", Was: "$20 / 24h", Is: "$25 / 24h", Effect: policy.Looser},
		{Table: "default", Key: "caps", Was: "5 payments / 1h", Effect: policy.Looser},
		{Table: "default", Key: "allow", Was: "host:b.example splits:any", Effect: policy.Tighter},
		{Table: "default", Key: "allow", Is: "host:b.example", Effect: policy.Looser},
		{Table: "default", Key: "allow", Was: "chain:eip155:8453", Effect: policy.Looser},
		{Table: "default", Key: "deny", Is: "host:*.evil.example", Effect: policy.Tighter},
		{Table: "default", Key: "duplicate_window", Was: "10m", Is: "1h", Effect: policy.Tighter},
		{Table: "trader", Was: "a table of its own", Is: "the table default", Effect: policy.Mixed},
		{Table: "trader", Key: "approve_above", Was: "$0.50", Effect: policy.Looser},
	}
	var got []policy.Difference
	for _, d := range policy.Diff(a, b) {
		if d.Table != "trader" || d.Key == "" || d.Key == "approve_above" {
			got = append(got, d)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", lines(got), lines(want))
	}
	if got := policy.Diff(a, a); len(got) != 0 {
		t.Errorf("with itself: %v", got)
	}
	for _, d := range policy.Diff(nil, a) {
		if d.Table != "" && (d.Key != "" || d.Is == "" || d.Effect != policy.Looser) {
			t.Errorf("from nothing: %+v", d)
		}
	}
	if got := policy.Diff(nil, nil); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

func lines(ds []policy.Difference) (out string) {
	for _, d := range ds {
		out += fmt.Sprintf("\t%+v\n", d)
	}
	return out
}

// What Diff calls tighter is tighter: of random documents that differ by one
// tightening, and of any two of which the second is called tighter in all.
func TestDiffEffects(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	d := dice{rand.New(rand.NewPCG(seed, 7))}
	tightened, compared := 0, 0
	for i := range 3_000 {
		c := d.config()
		changed := cloned(c)
		how := d.tighten(changed)
		a, err := policy.New(c)
		if err != nil {
			t.Fatal(err)
		}
		b, err := policy.New(changed)
		if how == "" || err != nil {
			continue
		}
		ds := policy.Diff(a, b)
		if e := effects(ds); e[policy.Looser] > 0 || e[policy.Mixed] > 0 {
			t.Fatalf("seed %d, case %d: %s:\n%s\n%s", seed, i, how, lines(ds), a)
		}
		if e := effects(policy.Diff(b, a)); e[policy.Tighter] > 0 || e[policy.Mixed] > 0 {
			t.Fatalf("seed %d, case %d: the way back from %s:\n%s", seed, i, how, lines(policy.Diff(b, a)))
		}
		tightened += min(len(ds), 1)
		for range 5 {
			pay, now := d.deal().payment(), time.Unix(d.Int64N(2_000_000_000), 0).UTC()
			was, is := a.Evaluate(pay, now, policy.History{}), b.Evaluate(pay, now, policy.History{})
			if is.Status > was.Status {
				t.Fatalf("seed %d, case %d: %s made %s of %s", seed, i, how, is.Status, was.Status)
			}
			if len(ds) == 0 && is.Status != was.Status {
				t.Fatalf("seed %d, case %d: %s is no difference, and made %s of %s", seed, i, how, is.Status, was.Status)
			}
			compared++
		}
	}
	if tightened < 1_000 || compared < 5_000 {
		t.Errorf("%d tightenings, %d comparisons: too few", tightened, compared)
	}
}

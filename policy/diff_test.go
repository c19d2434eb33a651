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

func TestDiffHabits(t *testing.T) {
	t.Parallel()
	doc := func(keys string) *policy.Policy {
		return parse(t, "[policy.default]\ncaps = [\"$20 / 24h\"]\nmax_payment = \"$9\"\nallow = [\"*\"]\n"+keys)
	}
	plain := doc("")
	for keys, want := range map[string]policy.Difference{
		`hours = "Mon-Fri 08:00-20:00"`:    {Key: "hours", Is: "Mon-Fri 08:00-20:00", Effect: policy.Tighter},
		`new_payee = "approve"`:            {Key: "new_payee", Is: "approve", Effect: policy.Tighter},
		`price_jump = "3x"`:                {Key: "price_jump", Is: "3x", Effect: policy.Tighter},
		`approve_above_total = "$5 / 24h"`: {Key: "approve_above_total", Is: "$5 / 24h", Effect: policy.Tighter},
		`mode = "shadow"`:                  {Key: "mode", Was: "enforce", Is: "shadow", Effect: policy.Looser},
		`approvers = ["ana"]`:              {Key: "approvers", Is: "ana", Effect: policy.Tighter},
		`chat_approval = true`:             {Key: "chat_approval", Was: "false", Is: "true", Effect: policy.Looser},
	} {
		want.Table = "default"
		other := doc(keys)
		if got := policy.Diff(plain, other); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %s", keys, lines(got))
		}
		want.Was, want.Is = want.Is, want.Was
		want.Effect = map[policy.Effect]policy.Effect{policy.Tighter: policy.Looser, policy.Looser: policy.Tighter}[want.Effect]
		if got := policy.Diff(other, plain); len(got) != 1 || got[0] != want {
			t.Errorf("back from %s: %s", keys, lines(got))
		}
	}
	for _, tt := range []struct {
		a, b string
		want policy.Difference
	}{
		{`price_jump = "3x"`, `price_jump = "1.5x"`, policy.Difference{Key: "price_jump", Was: "3x", Is: "1.5x", Effect: policy.Tighter}},
		{`new_payee = "deny"`, `new_payee = "approve"`, policy.Difference{Key: "new_payee", Was: "deny", Is: "approve", Effect: policy.Looser}},
		{`hours = "Mon 08:00-20:00"`, `hours = "Mon 09:00-21:00"`, policy.Difference{Key: "hours", Was: "Mon 08:00-20:00", Is: "Mon 09:00-21:00", Effect: policy.Mixed}},
		{`hours = "Mon-Fri 08:00-20:00"`, `hours = "Tue 09:00-12:00,13:00-20:00"`, policy.Difference{Key: "hours", Was: "Mon-Fri 08:00-20:00", Is: "Tue 09:00-12:00,13:00-20:00", Effect: policy.Tighter}},
		{`hours = "Mon 08:00-20:00 Europe/Berlin"`, `hours = "Mon 09:00-10:00 Europe/Paris"`, policy.Difference{Key: "hours", Was: "Mon 08:00-20:00 Europe/Berlin", Is: "Mon 09:00-10:00 Europe/Paris", Effect: policy.Mixed}},
		{`approvers = ["ana", "ben"]`, "approvers = [\"ana\", \"ben\"]\nquorum = 2", policy.Difference{Key: "quorum", Was: "1", Is: "2", Effect: policy.Tighter}},
		{`approvers = ["ana"]`, `approvers = ["Ana", "ben"]`, policy.Difference{Key: "approvers", Is: "ben", Effect: policy.Looser}},
		{`approve_above_total = "$5 / 24h"`, `approve_above_total = "$6 / 24h"`, policy.Difference{Key: "approve_above_total", Was: "$5 / 24h", Is: "$6 / 24h", Effect: policy.Looser}},
	} {
		tt.want.Table = "default"
		if got := policy.Diff(doc(tt.a), doc(tt.b)); len(got) != 1 || got[0] != tt.want {
			t.Errorf("%s to %s: %s", tt.a, tt.b, lines(got))
		}
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
			h := policy.History{Past: &policy.Past{Priced: d.chance(50), Price: 1_000_000}}
			was, is := a.Evaluate(pay, now, h), b.Evaluate(pay, now, h)
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

package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canopy-go/canopy/policy"
)

func TestLint(t *testing.T) {
	t.Parallel()
	const ok = "[org]\ncaps = [\"$50 / 24h\"]\n[policy.default]\nmax_payment = \"$5\"\nallow = [\"host:feed.example\"]\ncaps = [\"$20 / 24h\"]\n"
	org := `note: all agents together can spend at most $50.00 in a day, by "$50 / 24h" of [org] (worst_case)`
	worst := `note: [policy.default] all agents without a table together can spend at most $20.00 in a day, by "$20 / 24h" (worst_case)`
	for name, tt := range map[string]struct {
		doc  string
		want string // findings beyond those two notes, one a line
	}{
		"nothing odd": {ok, ""},
		"inherited entries are told once": {
			strings.Replace(ok, `"host:feed.example"`, `"host:*.com"`, 1) + "[policy.ana]\nfrom = \"default\"\n[policy.ben]\nfrom = \"ana\"\n",
			`note: [policy.ana] agent ana can spend at most $20.00 in a day, by "$20 / 24h" (worst_case)
note: [policy.ben] agent ben can spend at most $20.00 in a day, by "$20 / 24h" (worst_case)
line 5: warning: [policy.ana] allow "host:*.com" admits names that anybody can register (broad_host)`,
		},
		"no list":          {strings.Replace(ok, "allow", "deny", 1), `line 3: error: [policy.default] has no allow list: every payment is denied; name sellers, or "*" for all (allows_nothing)`},
		"an empty list":    {strings.Replace(ok, `"host:feed.example"`, ``, 1), `line 5: error: [policy.default] names no destination in allow: every payment is denied (allows_nothing)`},
		"only a chain":     {strings.Replace(ok, `host:feed.example`, `chain:eip155:8453`, 1), `line 5: error: [policy.default] names no destination in allow: every payment is denied (allows_nothing)`},
		"another's name":   {strings.Replace(ok, `"host:feed.example"`, `"host:*.vercel.app"`, 1), `line 5: warning: [policy.default] allow "host:*.vercel.app" admits names that anybody can register (broad_host)`},
		"a country's name": {strings.Replace(ok, `"host:feed.example"`, `"host:*.co.uk"`, 1), `line 5: warning: [policy.default] allow "host:*.co.uk" admits names that anybody can register (broad_host)`},
		"one's own name":   {strings.Replace(ok, `"host:feed.example"`, `"host:*.feed.example"`, 1), ""},
		"an odd name":      {strings.Replace(ok, `feed.example`, `аpple.example`, 1), `line 5: warning: [policy.default] allow "host:аpple.example" may not be what it looks like: label "xn--pple-43d" reads as "apple" but is spelt with other letters (suspicious_host)`},
		"twice":            {strings.Replace(ok, `"host:feed.example"`, `"host:feed.example", "host:FEED.example"`, 1), `line 5: warning: [policy.default] allow "host:FEED.example" adds nothing: "host:feed.example" admits it already (redundant)`},
		"below another": {
			strings.Replace(ok, `"host:feed.example"`, `"host:a.feed.example:443", "host:*.b.feed.example", "host:*.feed.example", "host:feed.example"`, 1),
			`line 5: warning: [policy.default] allow "host:a.feed.example:443" adds nothing: "host:*.feed.example" admits it already (redundant)
line 5: warning: [policy.default] allow "host:*.b.feed.example" adds nothing: "host:*.feed.example" admits it already (redundant)`,
		},
		"a bound address is more": {strings.Replace(ok, `"host:feed.example"`, `"host:feed.example", "host:feed.example address:0x00000000000000000000000000000000000000aa", "host:feed.example splits:any chain:eip155:8453"`, 1), ""},
		"denied": {
			ok + `deny = ["host:*.example", "host:x.example"]`,
			`line 5: error: [policy.default] allow "host:feed.example" never matches: deny "host:*.example" denies all of it (shadowed)
line 7: warning: [policy.default] deny "host:x.example" adds nothing: "host:*.example" denies it already (redundant)`,
		},
		"denied in part": {ok + `deny = ["host:feed.example:8443", "host:feed.example chain:eip155:1", "host:*.feed.example"]`, ""},
		"left out": {
			strings.Replace(ok, `"host:feed.example"`, `"host:feed.example chain:eip155:1", "chain:eip155:8453"`, 1),
			`line 5: error: [policy.default] allow "host:feed.example chain:eip155:1" never matches: the chain: and asset: entries of the list leave its own out (never_matches)`,
		},
		"everything, small":    {strings.Replace(ok, `"host:feed.example"`, `"*"`, 1), ""},
		"the cap of the org":   {strings.Replace(ok, `$20 / 24h`, `$50 / 1h`, 1), `W note: [policy.default] all agents without a table together can spend at most $50.00 in a day, by "$50 / 24h" (worst_case)` + "\n" + `line 6: warning: [policy.default] cap "$50 / 1h" is never reached: "$50 / 24h" counts no less and is reached first (never_binds)`},
		"an hour is 24 times":  {strings.Replace(ok, `$20 / 24h`, `$1 / 1h`, 1), `W note: [policy.default] all agents without a table together can spend at most $24.00 in a day, by "$1 / 1h" (worst_case)` + "\n" + `line 4: warning: [policy.default] max_payment $5 is above the cap "$1 / 1h": no payment above $1.00 passes (above_cap)`},
		"a count":              {strings.Replace(ok, `"$20 / 24h"`, `"$20 / 24h", "3 payments / day"`, 1), `W note: [policy.default] all agents without a table together can spend at most $15.00 in a day, by "3 payments / day" (worst_case)`},
		"no payments":          {strings.Replace(ok, `"$20 / 24h"`, `"$20 / 24h", "0 payments / day"`, 1), `W note: [policy.default] all agents without a table together can spend at most $0.00 in a day, by "0 payments / day" (worst_case)` + "\n" + `line 6: error: [policy.default] cap "0 payments / day" admits no payment (zero_limit)`},
		"a maximum of nothing": {strings.Replace(ok, `"$5"`, `"$0"`, 1), `line 4: warning: [policy.default] max_payment is $0: nothing that costs money is paid, only proofs of who asks (zero_limit)`},
		"asks too late":        {strings.Replace(ok, `"$5"`, `"$30"`, 1) + "approve_above = \"$20\"", `line 4: warning: [policy.default] max_payment $30 is above the cap "$20 / 24h": no payment above $20.00 passes (above_cap)` + "\n" + `line 7: warning: [policy.default] approve_above $20 never asks: the cap "$20 / 24h" denies such a payment first (never_asks)`},
		"a month over days":    {strings.Replace(ok, `"$20 / 24h"`, `"$20 / 24h", "$30 / day", "$30 / month"`, 1), `line 6: warning: [policy.default] cap "$30 / day" is never reached: "$30 / month" counts no less and is reached first (never_binds)`},
		"a long day":           {strings.Replace(ok, `"$20 / 24h"`, `"$20 / 24h", "$20 / day"`, 1), ""},
		"no guard":             {ok + "duplicate_window = \"0s\"", `line 7: warning: [policy.default] duplicate_window is 0: an equal call pays again at once (no_duplicate_guard)`},
		"shadow": {ok + "mode = \"shadow\"", `W note: [policy.default] all agents without a table together can spend at most $50.00 in a day, by "$50 / 24h" (worst_case)` + "\n" +
			`line 7: warning: [policy.default] mode = "shadow": nothing of this table is enforced, no cap and no approval; only [org] bounds what is spent, at $50.00 in a day, by "$50 / 24h" (in_shadow)`},
		"chat and approvers": {ok + "approve_above = \"$1\"\nchat_approval = true\napprovers = [\"ana\"]", `line 8: warning: [policy.default] chat_approval has no effect: approvers are named, and only they rule (chat_ignored)`},
		"nobody asked":       {ok + "approvers = [\"ana\"]", `line 7: warning: [policy.default] approvers are named, and nothing of this table asks: see approve_above (nobody_asked)`},
		"somebody asked":     {ok + "approvers = [\"ana\"]\nprice_jump = \"3x\"", ""},
		"a total too high":   {ok + "approve_above_total = [\"$19 / 24h\", \"$20 / 1h per host\", \"$60 / day\"]", `line 7: warning: [policy.default] approve_above_total "$20 / 1h per host" never asks: the cap "$20 / 24h" denies such a payment first (never_asks)`},
		"frozen":             {ok + "frozen = true", `line 7: note: [policy.default] is frozen: every payment is denied (frozen)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range policy.Lint(parse(t, tt.doc)) {
				got = append(got, f.String())
			}
			want := []string{org}
			rest := tt.want
			if after, own := strings.CutPrefix(rest, "W "); own {
				rest = after
			} else {
				if strings.HasPrefix(rest, "note: [policy.ana]") {
					var notes string
					notes, rest, _ = strings.Cut(rest, "\nline")
					rest = "line" + rest
					want = append(want, strings.Split(notes, "\n")...)
				}
				want = append(want, worst)
			}
			if rest != "" {
				want = append(want, strings.Split(rest, "\n")...)
			}
			sortNotes(got)
			sortNotes(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// sortNotes puts the notes without a line, whose order is that of the names,
// into one order.
func sortNotes(s []string) {
	for i := range s {
		for j := i + 1; j < len(s) && strings.HasPrefix(s[i], "note: ") && strings.HasPrefix(s[j], "note: "); j++ {
			if s[j] < s[i] {
				s[i], s[j] = s[j], s[i]
			}
		}
	}
}

func TestLintWithoutCaps(t *testing.T) {
	t.Parallel()
	got := ""
	for _, f := range policy.Lint(parse(t, "[policy.a]\nmax_payment=\"$2\"\ncaps=[\"none\"]\nallow=[\"*\"]\n[policy.A]\ncaps=[\"none\"]\nallow=[\"*\"]\nfrozen=true")) {
		got += f.String() + "\n"
	}
	want := `note: there is no [policy.default]: agents without a table of their own are denied (no_default)
note: [org] has no cap in dollars: what all agents spend together is bounded only by the sum of their own caps (no_org_cap)
note: [policy.A] agent A can spend without end, $1 at a time (worst_case)
note: [policy.a] agent a can spend without end, $2 at a time (worst_case)
line 1: warning: [policy.a] differs from [policy.A] by capitals only: they are two agents (alike_names)
line 3: warning: [policy.a] caps = ["none"] and no cap of [org]: nothing bounds what is spent (no_cap)
line 4: warning: [policy.a] allow "*" lets it pay every seller there is: agent a can spend without end, $2 at a time (allow_all)
line 6: warning: [policy.A] caps = ["none"] and no cap of [org]: nothing bounds what is spent (no_cap)
line 7: warning: [policy.A] allow "*" lets it pay every seller there is: agent A can spend without end, $1 at a time (allow_all)
line 8: note: [policy.A] is frozen: every payment is denied (frozen)
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	loud := ""
	for _, f := range policy.Lint(parse(t, "[policy.a]\nmode = \"shadow\"\ncaps = [\"$1 / 24h\"]\nallow = [\"*\"]\n")) {
		loud += f.String() + "\n"
	}
	for _, want := range []string{
		`line 2: warning: [policy.a] mode = "shadow": nothing of this table is enforced, no cap and no approval; and [org] has no cap in dollars: NOTHING bounds what is spent (in_shadow)`,
		`note: [policy.a] agent a can spend without end, any amount at a time (worst_case)`,
		`line 4: warning: [policy.a] allow "*" lets it pay every seller there is: agent a can spend without end, any amount at a time (allow_all)`,
	} {
		if !strings.Contains(loud, want+"\n") {
			t.Errorf("lint of a shadow says\n%s\nand not\n%s", loud, want)
		}
	}
	for _, p := range []*policy.Policy{nil, {}, parse(t, "")} {
		if f := policy.Lint(p); len(f) != 1 || f[0].Code != "no_table" || f[0].Level != policy.Fault {
			t.Errorf("got %v", f)
		}
	}
}

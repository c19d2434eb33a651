package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/policy"
)

// timed is a policy that differs from an open one by its hours.
func timed(t testing.TB, zone string, texts ...string) *policy.Policy {
	t.Helper()
	p, err := policy.New(policy.Config{Tables: map[string]policy.Table{
		"default": {MaxPayment: "$1", Caps: []string{"$20 / 24h"}, Allow: []string{"*"}, Hours: texts, Timezone: zone},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// closed tells whether p is closed at an instant, and until when.
func closed(p *policy.Policy, at time.Time) (until time.Time, is bool) {
	v := p.Evaluate(pay("ana", "a.example", usd/2, addrA), at, policy.History{})
	for _, r := range v.Reasons {
		if r.Code == policy.CodeOutsideHours {
			return r.Until, true
		}
	}
	return time.Time{}, false
}

// TestHours are spans and edges that a person would check first.
func TestHours(t *testing.T) {
	t.Parallel()
	const berlin = "Mon-Fri 08:00-20:00 Europe/Berlin"
	for _, tt := range []struct{ hours, at, until string }{ // no until: open
		{berlin, "2026-12-01T06:59:59Z", "2026-12-01T07:00:00Z"},
		{berlin, "2026-12-01T07:00:00Z", ""},
		{berlin, "2026-12-01T18:59:59.999999999Z", ""},
		{berlin, "2026-12-01T19:00:00Z", "2026-12-02T07:00:00Z"},
		{berlin, "2026-12-04T19:00:00Z", "2026-12-07T07:00:00Z"}, // over the weekend
		{berlin, "2026-03-27T19:00:00Z", "2026-03-30T06:00:00Z"}, // and into summer
		{berlin, "2026-06-01T06:00:00Z", ""},
		{"Sat,Sun", "2026-12-05T00:00:00Z", ""},
		{"Sat,Sun", "2026-12-06T23:59:59Z", ""},
		{"Sat,Sun", "2026-12-07T00:00:00Z", "2026-12-12T00:00:00Z"},
		{"22:00-06:00", "2026-12-01T05:59:59Z", ""},
		{"22:00-06:00", "2026-12-01T06:00:00Z", "2026-12-01T22:00:00Z"},
		{"Sun 22:00-06:00", "2026-12-07T05:00:00Z", ""}, // Monday's morning is Sunday's night
		{"Sun 22:00-06:00", "2026-12-06T05:00:00Z", "2026-12-06T22:00:00Z"},
		{"Sun 22:00-06:00", "2026-12-07T06:00:00Z", "2026-12-13T22:00:00Z"},
		{"Fri-Mon 12:00-13:00", "2026-12-07T12:30:00Z", ""},
		{"Fri-Mon 12:00-13:00", "2026-12-08T12:30:00Z", "2026-12-11T12:00:00Z"},
		{"Mon-Thu 08:00-12:00,13:00-18:00, Fri 08:00-13:00", "2026-12-01T12:30:00Z", "2026-12-01T13:00:00Z"},
		{"Mon-Thu 08:00-12:00,13:00-18:00, Fri 08:00-13:00", "2026-12-04T13:00:00Z", "2026-12-07T08:00:00Z"},
		{"Mon-Thu 08:00-12:00,13:00-18:00, Fri 08:00-13:00", "2026-12-04T12:59:00Z", ""},
		{"00:00-24:00", "2026-12-04T00:00:00Z", ""},
		{"Mon-Sun", "2026-12-04T00:00:00Z", ""},

		// The clock is set forward: 02:00 to 03:00 does not come.
		{"02:00-03:00 Europe/Berlin", "2026-03-29T00:59:59Z", "2026-03-30T00:00:00Z"},
		{"02:00-03:00 Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"},
		{"02:30-04:00 Europe/Berlin", "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z"},
		// And back: it comes twice.
		{"02:00-02:30 Europe/Berlin", "2026-10-25T00:15:00Z", ""},
		{"02:00-02:30 Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z"},
		{"02:00-02:30 Europe/Berlin", "2026-10-25T01:15:00Z", ""},
		{"02:00-02:30 Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-26T01:00:00Z"},
		// Samoa left out a Friday.
		{"Fri Pacific/Apia", "2011-12-30T09:59:59Z", "2012-01-05T10:00:00Z"},
		{"Fri 22:00-06:00 Pacific/Apia", "2011-12-30T11:00:00Z", ""}, // the night that never began
	} {
		at, err := time.Parse(time.RFC3339Nano, tt.at)
		if err != nil {
			t.Fatal(err)
		}
		until, is := closed(timed(t, "", tt.hours), at)
		got := ""
		if is {
			got = until.Format(time.RFC3339)
		}
		if got != tt.until || is != (tt.until != "") {
			t.Errorf("%s at %s: closed %v until %s, want %q", tt.hours, tt.at, is, got, tt.until)
		}
	}
}

// TestHoursOfList: one of several texts is enough, each in its own zone.
func TestHoursOfList(t *testing.T) {
	t.Parallel()
	p := timed(t, "America/New_York", "Mon 09:00-10:00", "Mon 09:00-10:00 Europe/Berlin")
	for at, want := range map[string]string{
		"2026-12-07T08:30:00Z": "", "2026-12-07T14:30:00Z": "",
		"2026-12-07T07:00:00Z": "2026-12-07T08:00:00Z", "2026-12-07T10:00:00Z": "2026-12-07T14:00:00Z",
	} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		until, is := closed(p, now)
		if got := until.Format(time.RFC3339); is != (want != "") || is && got != want {
			t.Errorf("at %s: closed %v until %s, want %q", at, is, got, want)
		}
	}
	v := p.Evaluate(pay("ana", "a.example", usd/2, addrA), time.Date(2026, 12, 8, 0, 0, 0, 0, time.UTC), policy.History{})
	if want := "Payments by policy default are made Mon 09:00-10:00 America/New_York; Mon 09:00-10:00 Europe/Berlin only"; v.Reason() != want {
		t.Errorf("got %q, want %q", v.Reason(), want)
	}
}

// TestHoursAtEveryChange is attack 92: around every change of the clock from
// 1970 to 2100, in many zones, what is open is what the clock on the wall shows;
// and the next opening is one, with nothing open before it.
func TestHoursAtEveryChange(t *testing.T) {
	t.Parallel()
	for _, zone := range zones {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			d := dice{rand.New(rand.NewPCG(1, 2))}
			var texts []string
			var ps []*policy.Policy
			for _, h := range worldHours {
				if !strings.ContainsAny(h, "/") { // one of another zone is tested there
					texts, ps = append(texts, h), append(ps, timed(t, zone, h))
				}
			}
			checked := 0
			for n, change := range changes(t, zone) {
				if raceEnabled && n%10 > 0 {
					continue
				}
				i := d.IntN(len(ps))
				for _, off := range []time.Duration{
					-25 * time.Hour, -3 * time.Hour, -time.Hour - time.Second, -time.Hour, -30 * time.Minute, -time.Second, -1, 0, 1, time.Second,
					30 * time.Minute, time.Hour - 1, time.Hour, 90 * time.Minute, 2 * time.Hour, 23 * time.Hour, 25 * time.Hour,
				} {
					sameAsWall(t, d, ps[i], texts[i], zone, change.Add(off))
					checked++
				}
				if t.Failed() {
					return
				}
			}
			t.Logf("%d instants", checked)
		})
	}
}

func sameAsWall(t *testing.T, d dice, p *policy.Policy, text, zone string, at time.Time) {
	t.Helper()
	until, is := closed(p, at)
	if want := !isOpen([]string{text}, zone, at); is != want {
		t.Errorf("%s in %s at %v: closed %v, the wall says %v", text, zone, at.UTC(), is, want)
		return
	}
	if !is {
		return
	}
	if !until.After(at) || until.Sub(at) > 15*24*time.Hour {
		t.Errorf("%s in %s at %v: opens at %v", text, zone, at.UTC(), until)
		return
	}
	if !isOpen([]string{text}, zone, until) || isOpen([]string{text}, zone, until.Add(-1)) {
		t.Errorf("%s in %s at %v: %v is no opening", text, zone, at.UTC(), until)
	}
	for range 4 {
		if between := at.Add(time.Duration(d.Int64N(int64(until.Sub(at))))); isOpen([]string{text}, zone, between) {
			t.Errorf("%s in %s at %v: open at %v already, not from %v on", text, zone, at.UTC(), between.UTC(), until)
		}
	}
}

// TestHoursMinuteByMinute walks through whole weeks around changes of the clock
// in some years, minute by minute, and holds each minute against the wall.
func TestHoursMinuteByMinute(t *testing.T) {
	t.Parallel()
	years := []int{1970, 1999, 2011, 2026, 2028, 2099}
	if raceEnabled {
		years = years[2:4]
	}
	for _, zone := range []string{"Europe/Berlin", "America/Havana", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Antarctica/Troll", "Asia/Kathmandu"} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			edges := changes(t, zone)
			minutes := 0
			for i, year := range years {
				at := slices.IndexFunc(edges, func(e time.Time) bool { return e.Year() == year })
				from := time.Date(year, 3, 25, 0, 0, 0, 0, time.UTC) // without a change, any week
				if at >= 0 {
					from = edges[at].Add(-84 * time.Hour).Truncate(time.Minute)
				}
				text := worldHours[(i*3+len(zone))%len(worldHours)]
				p := timed(t, zone, text)
				var waiting []time.Time // minutes that said when it opens
				var said time.Time
				for m := range 7 * 24 * 60 {
					now := from.Add(time.Duration(m) * time.Minute)
					minutes++
					until, is := closed(p, now)
					if open := isOpen([]string{text}, zone, now); open == is {
						t.Fatalf("%s in %s at %v: closed %v, the wall says open %v", text, zone, now, is, open)
					}
					if is {
						if len(waiting) > 0 && !until.Equal(said) {
							t.Fatalf("%s in %s at %v: opens at %v, and a minute before at %v", text, zone, now, until, said)
						}
						waiting, said = append(waiting, now), until
					} else if len(waiting) > 0 {
						if !said.After(waiting[len(waiting)-1]) || said.After(now) {
							t.Fatalf("%s in %s: open at %v, and %v was said", text, zone, now, said)
						}
						waiting = nil
					}
				}
			}
			t.Logf("%d minutes", minutes)
		})
	}
}

// TestNoZone: a zone that the machine does not know is an error when the policy
// is read, which names it; nothing is decided by another clock.
func TestNoZone(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{`hours = "Mon-Fri 08:00-20:00 Mars/Olympus"`, "hours = \"Mon-Fri 08:00-20:00\"\ntimezone = \"Mars/Olympus\""} {
		_, err := policy.Parse("p", fmt.Appendf(nil, "[policy.default]\ncaps = [\"none\"]\n%s\n", keys))
		if err == nil || !strings.Contains(err.Error(), `"Mars/Olympus" is not a time zone that this machine knows`) || !strings.Contains(err.Error(), "time/tzdata") {
			t.Errorf("%s: %v", keys, err)
		}
	}
}

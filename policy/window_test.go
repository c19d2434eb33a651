package policy_test

import (
	"slices"
	"testing"
	"time"

	_ "time/tzdata"

	"github.com/canopy-go/canopy/policy"
)

var zones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Africa/Casablanca", "Asia/Tehran",
	"America/Havana", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Kwajalein",
	"Asia/Kathmandu", "America/Asuncion", "Antarctica/Troll", "Pacific/Kiritimati", "Asia/Amman",
}

// changes yields the instants from 1970 to 2100 around which a zone's clock
// changes, and for some zones the ends of every month.
func changes(t *testing.T, zone string) []time.Time {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	var out []time.Time
	last := time.Date(2100, 12, 31, 0, 0, 0, 0, time.UTC)
	for at := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC).In(loc); at.Before(last); {
		_, next := at.ZoneBounds()
		if next.IsZero() {
			break
		}
		if !next.After(at) { // see begins
			next = at.Add(24 * time.Hour)
		}
		out = append(out, next)
		at = next
	}
	if !slices.Contains(zones[:3], zone) {
		return out
	}
	for at := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC); at.Before(last); at = at.AddDate(0, 1, 0) {
		out = append(out, at)
	}
	return out
}

// TestWindowsPartitionTime walks over every change of the clock in many zones:
// the window that an instant is in contains it, and the windows before and
// after begin and end where it does.
func TestWindowsPartitionTime(t *testing.T) {
	t.Parallel()
	for _, zone := range zones {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			for _, change := range changes(t, zone) {
				for _, kind := range []policy.WindowKind{policy.Day, policy.Week, policy.Month} {
					w := policy.Window{Kind: kind, Zone: zone}
					for _, off := range []time.Duration{-25 * time.Hour, -time.Hour, -1, 0, time.Minute, time.Hour, 13 * time.Hour} {
						partition(t, w, change.Add(off))
					}
				}
			}
		})
	}
}

func partition(t *testing.T, w policy.Window, now time.Time) {
	t.Helper()
	start, end := bounds(t, w, now)
	if now.Before(start) || !now.Before(end) {
		t.Fatalf("%v at %v: [%v, %v) does not contain it", w, now, start, end)
	}
	if s, e := bounds(t, w, start); !s.Equal(start) || !e.Equal(end) {
		t.Fatalf("%v at its own start %v: [%v, %v), not [%v, %v)", w, start, s, e, start, end)
	}
	if s, _ := bounds(t, w, end); !s.Equal(end) {
		t.Fatalf("%v at %v: ends at %v, but the next starts at %v", w, now, end, s)
	}
	if _, e := bounds(t, w, start.Add(-1)); !e.Equal(start) {
		t.Fatalf("%v at %v: starts at %v, but the one before ends at %v", w, now, start, e)
	}
	loc, err := time.LoadLocation(w.Zone)
	if err != nil {
		t.Fatal(err)
	}
	if w.Kind == policy.Week && start.In(loc).Weekday() != time.Monday && w.Zone != "Pacific/Apia" && w.Zone != "Pacific/Kwajalein" {
		t.Fatalf("week at %v starts on %v", now, start.In(loc))
	}
	if w.Kind == policy.Month && start.In(loc).Day() != 1 {
		t.Fatalf("month at %v starts on %v", now, start.In(loc))
	}
	most := map[policy.WindowKind]time.Duration{policy.Day: 26 * time.Hour, policy.Week: 7*24*time.Hour + 2*time.Hour, policy.Month: 31*24*time.Hour + 2*time.Hour}[w.Kind]
	if w.Zone == "Antarctica/Troll" {
		most += 2 * time.Hour
	}
	if got := end.Sub(start); got > most || got <= 0 {
		t.Fatalf("%v at %v is %v long", w, now, got)
	}
}

func bounds(t *testing.T, w policy.Window, now time.Time) (time.Time, time.Time) {
	t.Helper()
	s, e, err := w.Bounds(now)
	if err != nil {
		t.Fatal(err)
	}
	return s, e
}

func TestBounds(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for name, tt := range map[string]struct {
		w               policy.Window
		now, start, end string
	}{
		"day":                       {policy.Window{Kind: policy.Day}, "2026-02-28T23:59:59Z", "2026-02-28T00:00:00Z", "2026-03-01T00:00:00Z"},
		"day, first instant":        {policy.Window{Kind: policy.Day, Zone: "UTC"}, "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"},
		"short day":                 {policy.Window{Kind: policy.Day, Zone: "Europe/Berlin"}, "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		"long day":                  {policy.Window{Kind: policy.Day, Zone: "Europe/Berlin"}, "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		"midnight does not exist":   {policy.Window{Kind: policy.Day, Zone: "America/Sao_Paulo"}, "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		"midnight happens twice":    {policy.Window{Kind: policy.Day, Zone: "America/Havana"}, "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		"set back over midnight":    {policy.Window{Kind: policy.Day, Zone: "America/St_Johns"}, "2010-11-07T03:00:00Z", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"},
		"the day before Samoa's":    {policy.Window{Kind: policy.Day, Zone: "Pacific/Apia"}, "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		"the day after Samoa's":     {policy.Window{Kind: policy.Day, Zone: "Pacific/Apia"}, "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		"week from Monday":          {policy.Window{Kind: policy.Week}, "2026-03-01T12:00:00Z", "2026-02-23T00:00:00Z", "2026-03-02T00:00:00Z"},
		"week on Monday":            {policy.Window{Kind: policy.Week}, "2026-03-02T00:00:00Z", "2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z"},
		"week over a year's end":    {policy.Window{Kind: policy.Week}, "2027-01-02T00:00:00Z", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z"},
		"month":                     {policy.Window{Kind: policy.Month}, "2028-02-29T23:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		"month in a zone":           {policy.Window{Kind: policy.Month, Zone: "Pacific/Kiritimati"}, "2026-01-31T11:00:00Z", "2026-01-31T10:00:00Z", "2026-02-28T10:00:00Z"},
		"no leap day in 2100":       {policy.Window{Kind: policy.Month}, "2100-02-28T23:00:00Z", "2100-02-01T00:00:00Z", "2100-03-01T00:00:00Z"},
		"the last day of December":  {policy.Window{Kind: policy.Month}, "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		"the 31st has no neighbour": {policy.Window{Kind: policy.Month}, "2026-05-31T23:59:59Z", "2026-05-01T00:00:00Z", "2026-06-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start, end := bounds(t, tt.w, at(tt.now))
			if !start.Equal(at(tt.start)) || !end.Equal(at(tt.end)) {
				t.Errorf("got [%v, %v), want [%v, %v)", start.UTC(), end.UTC(), tt.start, tt.end)
			}
		})
	}
}

func TestBoundsRefuses(t *testing.T) {
	t.Parallel()
	for _, w := range []policy.Window{
		{}, {Kind: 99}, {Kind: policy.Day, Zone: "Mars/Olympus"}, {Kind: policy.Day, Zone: "Local"}, {Kind: policy.Day, Zone: "../../etc/passwd"},
	} {
		if _, _, err := w.Bounds(time.Unix(0, 0)); err == nil {
			t.Errorf("%+v: no error", w)
		}
		if _, err := w.Counts(time.Unix(0, 0), time.Unix(0, 0), false, time.Unix(9, 0)); err == nil {
			t.Errorf("%+v: Counts: no error", w)
		}
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) // a Monday
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	hour := policy.Window{Kind: policy.Rolling, Length: time.Hour}
	day := policy.Window{Kind: policy.Day}
	for name, tt := range map[string]struct {
		w           policy.Window
		from, until time.Time
		open, want  bool
	}{
		"rolling: just inside":               {hour, ago(2 * time.Hour), ago(time.Hour - 1), false, true},
		"rolling: at the edge":               {hour, ago(2 * time.Hour), ago(time.Hour), false, false},
		"rolling: long ago but live":         {hour, ago(99 * time.Hour), ago(98 * time.Hour), true, true},
		"rolling: ends in the future":        {hour, ago(99 * time.Hour), now.Add(time.Second), false, true},
		"rolling: ends now":                  {hour, ago(99 * time.Hour), now, false, true},
		"day: spent at its first instant":    {day, ago(13 * time.Hour), ago(12 * time.Hour), false, true},
		"day: spent before it":               {day, ago(13 * time.Hour), ago(12*time.Hour + 1), false, false},
		"day: spent within it":               {day, ago(time.Hour), ago(time.Minute), false, true},
		"day: authorized after it, by skew":  {day, now.Add(24 * time.Hour), ago(time.Hour), false, false},
		"week: authorized before, spent in":  {policy.Window{Kind: policy.Week}, ago(14 * time.Hour), ago(11 * time.Hour), false, true},
		"week: Sunday":                       {policy.Window{Kind: policy.Week}, ago(15 * time.Hour), ago(14 * time.Hour), false, false},
		"month: yesterday":                   {policy.Window{Kind: policy.Month}, ago(25 * time.Hour), ago(24 * time.Hour), false, true},
		"month: the month before":            {policy.Window{Kind: policy.Month}, ago(50 * time.Hour), ago(49 * time.Hour), false, false},
		"ever: years ago":                    {policy.Window{Kind: policy.Ever}, ago(1e5 * time.Hour), ago(1e5 * time.Hour), false, true},
		"day: live, authorized a month ago":  {day, ago(700 * time.Hour), ago(699 * time.Hour), true, true},
		"day: valid past the end of the day": {day, ago(time.Hour), now.Add(13 * time.Hour), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.w.Counts(tt.from, tt.until, tt.open, now)
			if err != nil || got != tt.want {
				t.Errorf("got %v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

func TestWindowString(t *testing.T) {
	t.Parallel()
	var got []string
	for _, w := range []policy.Window{
		{Kind: policy.Rolling, Length: 90 * time.Second}, {Kind: policy.Rolling, Length: time.Hour}, {Kind: policy.Rolling, Length: 24 * time.Hour},
		{Kind: policy.Rolling, Length: 7 * 24 * time.Hour}, {Kind: policy.Day}, {Kind: policy.Week, Zone: "UTC"},
		{Kind: policy.Month, Zone: "Asia/Tokyo"}, {Kind: policy.Ever}, {},
	} {
		got = append(got, w.String())
	}
	want := []string{"90s", "1h", "24h", "7d", "day", "week", "month Asia/Tokyo", "ever", "no window"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

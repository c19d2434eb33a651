package policy

import (
	"fmt"
	"time"
)

// Window is the time over which a cap counts. Windows are equal when they are
// ==; the zero value is not a window.
type Window struct {
	Kind   WindowKind
	Length time.Duration // of a rolling window
	Zone   string        // IANA name of a calendar window's time zone
}

// WindowKind says how a window moves.
type WindowKind uint8

// The kinds of windows.
const (
	Rolling WindowKind = iota + 1 // the Length before now
	Day                           // the civil day in Zone that now is in
	Week                          // from Monday
	Month                         // the civil month
	Ever                          // all time
)

// String is the window as a policy document writes it, such as 24h or month;
// with its zone where it is a calendar window outside UTC.
func (w Window) String() string {
	switch w.Kind {
	case Rolling:
		return formatLength(w.Length)
	case Day, Week, Month:
		name := [...]string{Day: "day", Week: "week", Month: "month"}[w.Kind]
		if w.Zone != "" && w.Zone != "UTC" {
			name += " " + w.Zone
		}
		return name
	case Ever:
		return "ever"
	}
	return "no window"
}

// formatLength writes a duration in its largest whole unit, as documents do; a
// day is written 24h and longer whole days are written in days.
func formatLength(d time.Duration) string {
	switch {
	case d > 24*time.Hour && d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return d.String()
}

// Bounds are the instants between which w counts at now: from start, included,
// to end, excluded. A rolling window has no end of its own and Ever has
// neither; those are zero. An unknown zone is an error.
func (w Window) Bounds(now time.Time) (start, end time.Time, err error) {
	switch w.Kind {
	case Rolling:
		return now.Add(-w.Length), time.Time{}, nil
	case Ever:
		return time.Time{}, time.Time{}, nil
	case Day, Week, Month:
	default:
		return time.Time{}, time.Time{}, fmt.Errorf("policy: not a window: %d", w.Kind)
	}
	loc, err := location(w.Zone)
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	y, m, d := now.In(loc).Date()
	switch w.Kind {
	case Day:
		return civil(y, m, d, loc), civil(y, m, d+1, loc), nil
	case Week:
		back := (int(time.Date(y, m, d, 12, 0, 0, 0, time.UTC).Weekday()) + 6) % 7
		return civil(y, m, d-back, loc), civil(y, m, d-back+7, loc), nil
	}
	return civil(y, m, 1, loc), civil(y, m+1, 1, loc), nil
}

// civil is the first instant of a civil day, also where midnight does not
// exist or happens twice.
func civil(y int, m time.Month, d int, loc *time.Location) time.Time {
	t := time.Date(y, m, d, 0, 0, 0, 0, loc)
	want := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).YearDay()
	// A midnight that a forward change skips comes out before or after it;
	// one that happens twice must be the first of the two.
	for t.In(loc).YearDay() != want {
		t = t.Add(15 * time.Minute)
	}
	for back := t.Add(-15 * time.Minute); back.In(loc).YearDay() == want; back = back.Add(-15 * time.Minute) {
		t = back
	}
	return t
}

// Counts reports whether a payment authorized at from, whose money can still
// move or moved until until, counts in w at now. A payment that is still live
// has no end: open is true and it counts in every window.
func (w Window) Counts(from, until time.Time, open bool, now time.Time) (bool, error) {
	start, end, err := w.Bounds(now)
	if err != nil {
		return false, err
	}
	switch {
	case open, w.Kind == Ever, !until.Before(now):
		return true, nil
	case w.Kind == Rolling:
		return until.After(start), nil
	}
	return !until.Before(start) && from.Before(end), nil
}

func location(zone string) (*time.Location, error) {
	if zone == "" {
		return time.UTC, nil
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("policy: time zone %q is not known: %v", zone, err)
	}
	return loc, nil
}

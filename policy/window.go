package policy

import (
	"errors"
	"fmt"
	"sync"
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
// neither; those are zero. Calendar windows follow one another without a gap.
// An unknown zone is an error.
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
	start, end = w.around(y, m, d, loc)
	// Where a clock is set back over midnight, a day that began comes to an
	// end and begins again. It has begun.
	for i := 1; i < 3 && !now.Before(end); i++ {
		start, end = w.around(y, m, d+i, loc)
	}
	return start, end, nil
}

// around is the calendar window that a civil day is in.
func (w Window) around(y int, m time.Month, d int, loc *time.Location) (start, end time.Time) {
	switch w.Kind {
	case Day:
		return begins(y, m, d, loc), begins(y, m, d+1, loc)
	case Week:
		monday := d - (int(time.Date(y, m, d, 12, 0, 0, 0, time.UTC).Weekday())+6)%7
		return begins(y, m, monday, loc), begins(y, m, monday+7, loc)
	}
	y, m, _ = time.Date(y, m, d, 12, 0, 0, 0, time.UTC).Date() // d may be past the month's end
	return begins(y, m, 1, loc), begins(y, m+1, 1, loc)
}

// begins is the first instant at which the civil date in loc is that day or a
// later one: also where midnight does not exist or happens twice, and where
// the whole day does not exist.
func begins(y int, m time.Month, d int, loc *time.Location) time.Time {
	midnight := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	if loc == time.UTC {
		return midnight
	}
	// No zone is a day from UTC. From one change of the clock to the next,
	// local time is UTC and an offset.
	t := midnight.Add(-24 * time.Hour).In(loc)
	for {
		_, offset := t.Zone()
		_, change := t.ZoneBounds()
		if !change.IsZero() && !change.After(t) {
			// On the last day of a leap year ZoneBounds of Go 1.26 names an
			// end that has passed, where a zone goes by a rule.
			change = t.Add(time.Hour)
		}
		at := midnight.Add(-time.Duration(offset) * time.Second)
		if at.Before(t) {
			at = t
		}
		if change.IsZero() || at.Before(change) {
			return at.In(loc)
		}
		t = change
	}
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

// zones keeps what LoadLocation would read from a file each time.
var zones sync.Map // name to *time.Location

func location(zone string) (*time.Location, error) {
	if zone == "" || zone == "UTC" {
		return time.UTC, nil
	}
	if loc, ok := zones.Load(zone); ok {
		return loc.(*time.Location), nil
	}
	if zone == "Local" {
		return nil, errors.New("policy: the time zone Local differs from machine to machine")
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("policy: time zone %q is not known: %v", clip(zone), err)
	}
	zones.Store(zone, loc)
	return loc, nil
}

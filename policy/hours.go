package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// hours are when a table lets its agent pay: by the civil clock, on each day of
// the week. Each text of the document has a zone, its own or the table's.
type hours struct {
	texts []value
	weeks []week // one for each text
	line  int
	set   bool
}

// in is h with zone for the texts that have none of their own.
func (h hours) in(zone value) hours {
	h.weeks = slices.Clone(h.weeks)
	for i := range h.weeks {
		w := &h.weeks[i]
		if w.zone == "" && zone.set {
			w.zone = zone.text
		}
		w.loc, _ = location(w.zone) // both zones were found before
	}
	return h
}

// String is when it is open, in one line, with the zone where that is not UTC.
func (h hours) String() string {
	var b strings.Builder
	for i, v := range h.texts {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(v.text)
		if w := h.weeks[i]; !strings.HasSuffix(v.text, " "+w.zone) && w.zone != "" {
			b.WriteString(" " + w.zone)
		}
	}
	return b.String()
}

// week is one text of hours: the seconds of a week, from Monday at midnight, at
// which the clock of a zone shows that it is open.
type week struct {
	zone string         // empty: the table's
	loc  *time.Location // of the zone; nil before it is known
	open []span         // in order, apart from one another
}

// span is from one second of a week until another.
type span struct{ from, to int }

const (
	daySeconds  = 24 * 60 * 60
	weekSeconds = 7 * daySeconds
	maxHours    = 64 // spans of one text
)

var dayNames = []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}

// parseHours reads times of a week, such as Mon-Fri 08:00-20:00 Europe/Berlin.
//
// Days stand before the times that they are for, days and times apart by
// commas. Days alone are whole days, and times alone those of every day.
func parseHours(s string) (week, error) {
	var w week
	words := strings.Fields(strings.ReplaceAll(s, ",", " , "))
	if n := len(words); n > 1 && isZone(words[n-1]) {
		w.zone, words = words[n-1], words[:n-1]
		if err := checkZone(w.zone); err != nil {
			return w, err
		}
	}
	var days, of []int // named and without times yet; those that the last times are for
	timed, comma := false, true
	for _, word := range words {
		if word == "," {
			if comma {
				return w, fmt.Errorf("%q has a comma without anything between", clip(s))
			}
			comma = true
			continue
		}
		isTime := word[0] >= '0' && word[0] <= '9'
		switch {
		case !comma && !(isTime && days != nil):
			return w, fmt.Errorf("%q: a comma is missing before %q", clip(s), clip(word))
		case !isTime:
			named, err := parseDays(word)
			if err != nil {
				return w, err
			}
			days = append(days, named...)
		default:
			from, to, err := parseTimes(word)
			if err != nil {
				return w, err
			}
			if days != nil {
				of, days = days, nil
			} else if of == nil {
				of = []int{0, 1, 2, 3, 4, 5, 6}
			}
			timed = true
			w.add(of, from, to)
		}
		comma = false
	}
	switch {
	case len(words) == 0:
		return w, errors.New(`names no time: write one like "Mon-Fri 08:00-20:00"`)
	case comma:
		return w, fmt.Errorf("%q ends with a comma", clip(s))
	case days != nil && timed:
		return w, fmt.Errorf(`%q: the last days have no times: write them like "Sat 00:00-24:00"`, clip(s))
	case days != nil:
		w.add(days, 0, daySeconds)
	}
	if len(w.open) > maxHours {
		return w, fmt.Errorf("%q has more than %d times", clip(s), maxHours)
	}
	w.merge()
	return w, nil
}

// isZone reports whether a word names a zone: it is no day and no time.
func isZone(word string) bool {
	if word == "," || word[0] >= '0' && word[0] <= '9' {
		return false
	}
	first, _, _ := strings.Cut(word, "-")
	return !slices.Contains(dayNames, first) && (strings.Contains(word, "/") || dayOf(first) < 0)
}

// dayOf is a day by its short name, and -1 for any other word that does not
// begin like a day's.
func dayOf(word string) int {
	for i, d := range dayNames {
		if len(word) >= 3 && strings.EqualFold(word[:3], d) {
			return i
		}
	}
	return -1
}

// parseDays reads a day or a range of days, which may go over Sunday.
func parseDays(word string) ([]int, error) {
	first, last, ranged := strings.Cut(word, "-")
	from, to := slices.Index(dayNames, first), slices.Index(dayNames, last)
	if !ranged {
		to = from
	}
	switch {
	case from < 0 || to < 0:
		return nil, fmt.Errorf(`%q is neither a day nor a time: write days as Mon, Tue, Wed, Thu, Fri, Sat and Sun, times as 08:00-20:00, and a zone at the end`, clip(word))
	case ranged && from == to:
		return nil, fmt.Errorf("%q is one day or eight: write %s or Mon-Sun", word, first)
	}
	var out []int
	for d := from; ; d = (d + 1) % 7 {
		if out = append(out, d); d == to {
			return out, nil
		}
	}
}

// parseTimes reads a span of a day in seconds from its midnight; to is beyond
// the day where the span goes over midnight.
func parseTimes(word string) (from, to int, err error) {
	a, b, ok := strings.Cut(word, "-")
	var okA, okB bool
	from, okA = clockTime(a)
	to, okB = clockTime(b)
	switch {
	case !ok || !okA || !okB || from == daySeconds:
		return 0, 0, fmt.Errorf(`%q is not a time of day: write one like "08:00-20:00", by 24 hours`, clip(word))
	case from == to:
		return 0, 0, fmt.Errorf(`%q is nothing or a whole day: write "00:00-24:00" for the whole`, word)
	case to < from:
		to += daySeconds
	}
	return from, to, nil
}

// clockTime reads hours and minutes of two digits each, 24:00 being the last.
func clockTime(s string) (int, bool) {
	if len(s) != 5 || s[2] != ':' {
		return 0, false
	}
	for _, i := range []int{0, 1, 3, 4} {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	h, m := int(s[0]-'0')*10+int(s[1]-'0'), int(s[3]-'0')*10+int(s[4]-'0')
	return (h*60 + m) * 60, m < 60 && (h < 24 || h == 24 && m == 0)
}

// add opens a span on some days. What goes over the end of Sunday is the
// beginning of Monday.
func (w *week) add(days []int, from, to int) {
	for _, d := range days {
		a, b := d*daySeconds+from, d*daySeconds+to
		if b > weekSeconds {
			w.open = append(w.open, span{0, b - weekSeconds})
			b = weekSeconds
		}
		w.open = append(w.open, span{a, b})
	}
}

// merge puts the spans in order and joins those that touch.
func (w *week) merge() {
	slices.SortFunc(w.open, func(a, b span) int { return a.from - b.from })
	out := w.open[:0]
	for _, s := range w.open {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	w.open = out
}

// at is the second of the week that the clock shows at t.
func (w *week) at(t time.Time) int {
	h, m, s := t.Clock()
	return (int(t.Weekday())+6)%7*daySeconds + h*3600 + m*60 + s
}

// has reports whether it is open at a second of the week.
func (w *week) has(second int) bool {
	for _, s := range w.open {
		if second < s.to {
			return second >= s.from
		}
	}
	return false
}

// next is how many seconds after one of the week the next span begins.
func (w *week) next(second int) int {
	for _, s := range w.open {
		if s.from > second {
			return s.from - second
		}
	}
	return w.open[0].from + weekSeconds - second
}

// within reports whether o is open whenever h is, as far as one zone alone can
// tell: the clocks of two are not compared.
func (h *hours) within(o *hours) bool {
	all := o.byZone()
	for zone, w := range h.byZone() {
		for _, s := range w.open {
			if !slices.ContainsFunc(all[zone].open, func(t span) bool { return t.from <= s.from && s.to <= t.to }) {
				return false
			}
		}
	}
	return true
}

// byZone is one week for all texts of a zone.
func (h *hours) byZone() map[string]week {
	out := map[string]week{}
	for _, w := range h.weeks {
		one := out[w.loc.String()]
		one.open = append(slices.Clone(one.open), w.open...)
		one.merge()
		out[w.loc.String()] = one
	}
	return out
}

// open reports whether any text is open at now.
func (h *hours) open(now time.Time) bool {
	for i := range h.weeks {
		if w := &h.weeks[i]; w.has(w.at(now.In(w.loc))) {
			return true
		}
	}
	return false
}

// opens is the first instant after now, at which all are closed, when one of the
// texts is open; zero where none comes within two years.
func (h *hours) opens(now time.Time) time.Time {
	var first time.Time
	for i := range h.weeks {
		w := &h.weeks[i]
		if at := w.opens(now.In(w.loc)); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first.UTC()
}

// opens goes from one change of the clock to the next: between two of them it
// runs evenly.
func (w *week) opens(now time.Time) time.Time {
	for t := now; t.Sub(now) < 2*366*24*time.Hour; {
		change := nextChange(t)
		second := w.at(t)
		at := t
		if !w.has(second) {
			at = t.Add(time.Duration(w.next(second))*time.Second - time.Duration(t.Nanosecond()))
		}
		if change.IsZero() || at.Before(change) {
			return at
		}
		t = change
	}
	return time.Time{}
}

// nextChange is when t's zone changes its clock next; zero for never.
func nextChange(t time.Time) time.Time {
	_, change := t.ZoneBounds()
	if !change.IsZero() && !change.After(t) {
		// On the last day of a leap year ZoneBounds of Go 1.26 names an end that
		// has passed, where a zone goes by a rule.
		change = t.Add(time.Hour)
	}
	return change
}

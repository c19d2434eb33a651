package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// longest is the longest rolling window; beyond it a cap says ever.
const longest = 3650 * 24 * time.Hour

// none is the cap that says that there is none.
const none = "none"

// parseAmount reads a limit of a document: dollars with their sign, such as
// $10. Without the sign nobody can tell dollars from cents or base units.
func parseAmount(s string) (payment.USD, error) {
	if !strings.HasPrefix(s, "$") {
		if _, err := payment.ParseUSD(s); err == nil {
			return 0, fmt.Errorf(`%q has no unit: write "$%s"`, s, s)
		}
		if _, unit, ok := strings.Cut(s, " "); ok && strings.HasPrefix(unit, "payment") {
			return 0, fmt.Errorf(`%q counts payments: an amount is written like "$10"`, clip(s))
		}
		return 0, fmt.Errorf(`%q is not an amount: write dollars like "$10" or "$0.05"`, clip(s))
	}
	if strings.Contains(s, "/") {
		return 0, fmt.Errorf(`%q is a cap: an amount has no window, write "$10"`, clip(s))
	}
	u, err := payment.ParseUSD(s)
	if err != nil {
		return 0, fmt.Errorf(`%q is not an amount: write dollars like "$10" or "$0.05", at most six decimals`, clip(s))
	}
	return u, nil
}

// parseLength reads a length of time: one whole number and one unit.
func parseLength(s string) (time.Duration, error) {
	bad := func() (time.Duration, error) {
		return 0, fmt.Errorf(`%q is not a length of time: write one number and one unit, like "60s", "10m", "24h" or "7d"`, clip(s))
	}
	if len(s) < 2 {
		return bad()
	}
	var unit time.Duration
	switch s[len(s)-1] {
	case 's':
		unit = time.Second
	case 'm':
		unit = time.Minute
	case 'h':
		unit = time.Hour
	case 'd':
		unit = 24 * time.Hour
	default:
		return bad()
	}
	n, ok := parseCount(s[:len(s)-1])
	switch {
	case !ok:
		return bad()
	case n > int64(longest/unit):
		return 0, fmt.Errorf("%q is longer than %s", clip(s), formatLength(longest))
	}
	return time.Duration(n) * unit, nil
}

// parseCount reads a whole number without sign, leading zeros or separators,
// at most a billion.
func parseCount(s string) (int64, bool) {
	if s == "" || len(s) > 10 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n <= 1_000_000_000
}

// parseCap reads a cap: AMOUNT / WINDOW, or N payments / WINDOW, and which
// payments it counts. zone is that of calendar windows. The scope has its kind
// only; the text is kept as it stands.
func parseCap(s, zone string) (Limit, error) {
	l := Limit{Text: s}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return l, fmt.Errorf("%q has a character that no cap has", clip(s))
		}
	}
	what, when, ok := strings.Cut(s, "/")
	if !ok {
		return l, fmt.Errorf(`%q has no window: write a cap like "$10 / 24h", "$100 / month" or "200 payments / 1h"`, clip(s))
	}
	if err := l.parseWhat(strings.Trim(what, " ")); err != nil {
		return l, err
	}
	words := strings.Fields(when)
	if len(words) == 0 {
		return l, fmt.Errorf(`%q has no window after the slash: write one like "24h", "day", "month" or "ever"`, clip(s))
	}
	var err error
	if l.Window, err = parseWindow(words[0], zone); err != nil {
		return l, err
	}
	l.Scope.Kind, err = parseScope(words[1:])
	return l, err
}

func (l *Limit) parseWhat(s string) error {
	if strings.HasPrefix(s, "$") {
		var err error
		l.USD, err = parseAmount(s)
		return err
	}
	number, unit, _ := strings.Cut(s, " ")
	n, ok := parseCount(number)
	switch unit = strings.Trim(unit, " "); {
	case ok && (unit == "payments" || unit == "payment" && n == 1):
		l.Counting, l.Count = true, n
		return nil
	case ok && unit == "":
		return fmt.Errorf(`%q has no unit: write "$%s" for dollars or "%s payments" for a count`, s, s, s)
	}
	return fmt.Errorf(`%q is neither dollars like "$10" nor a count like "200 payments"`, clip(s))
}

func parseWindow(s, zone string) (Window, error) {
	switch s {
	case "day":
		return Window{Kind: Day, Zone: zone}, nil
	case "week":
		return Window{Kind: Week, Zone: zone}, nil
	case "month":
		return Window{Kind: Month, Zone: zone}, nil
	case "ever":
		return Window{Kind: Ever}, nil
	}
	d, err := parseLength(s)
	switch {
	case err != nil && s[0] >= '0' && s[0] <= '9':
		return Window{}, err
	case err != nil:
		return Window{}, fmt.Errorf(`%q is not a window: write a length like "24h" or "7d", or day, week, month or ever%s`, clip(s), didYouMean(s, "day", "week", "month", "ever"))
	case d == 0:
		return Window{}, fmt.Errorf("%q is an empty window", s)
	}
	return Window{Kind: Rolling, Length: d}, nil
}

func parseScope(words []string) (ScopeKind, error) {
	switch {
	case len(words) == 0:
		return ScopeAgent, nil
	case words[0] != "per" || len(words) != 2:
		return 0, fmt.Errorf(`%q cannot stand after the window: only "per host", "per payee" or "per run" can`, clip(strings.Join(words, " ")))
	}
	switch words[1] {
	case "host":
		return ScopeHost, nil
	case "payee":
		return ScopePayee, nil
	case "run":
		return ScopeRun, nil
	case "category":
		return 0, errors.New("per category needs a service directory, which tells the category of a seller, and none is configured; remove it")
	}
	return 0, fmt.Errorf(`a cap is not counted per %s: write "per host", "per payee" or "per run", or nothing for the whole agent`, clip(words[1]))
}

// errLater is what is designed and not built.
var errLater = errors.New("is not supported by this version yet; remove it")

// clip bounds foreign text that goes into an error.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

// didYouMean proposes the nearest of words, where one is near.
func didYouMean(s string, words ...string) string {
	best, least := "", max(2, len(s)/2)+1
	for _, w := range words {
		if d := distance(s, w); d < least {
			best, least = w, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance is the edit distance of two short words, where exchanging two
// neighbours is one edit. A long word is far from everything.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	var d [65][65]int
	for i := range len(a) + 1 {
		for j := range len(b) + 1 {
			if i == 0 || j == 0 {
				d[i][j] = i + j
				continue
			}
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}

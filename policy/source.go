package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// document is a policy as it was given, before inheritance and defaults.
type document struct {
	name    string
	orgName string
	org     source
	tables  []*source
	errs    errorList
}

// source is one table as given, each value with the line where it stands.
type source struct {
	name string
	line int

	from, maxPayment, approveAbove, timezone  value
	maxValidity, duplicateWindow, approvalTTL value
	newPayee, priceJump, mode                 value
	caps, allow, deny                         values
	approveTotal, hours, approvers            values
	frozen, chat                              flag
	maxPending, quorum                        number
	rules                                     []Rule
}

type value struct {
	text string
	line int
	set  bool
}

type values struct {
	list []value
	line int
	set  bool
	bare bool // one, written without brackets
}

type flag struct {
	on   bool
	line int
	set  bool
}

type number struct {
	n    int64
	line int
	set  bool
}

// parsed is a source whose values were understood one by one.
type parsed struct {
	name string
	line int

	from         value
	max, approve amount
	timezone     value

	caps          []capLine
	capsSet, none bool
	capsLine      int

	totals     []capLine // above which a person is asked
	totalsSet  bool
	totalsLine int

	hours          hours
	newPayee, mode value
	jump           priceJump
	jumpAt         value

	approvers     []string
	approversSet  bool
	approversLine int
	quorum        number

	allow     allowList
	allowText []value
	allowSet  bool
	allowLine int
	deny      [][]entry // its own, and before it those of each parent that has some

	validity, duplicates, ttl length
	maxPending                number
	frozen, chat              flag
	rules                     []Rule

	depth int  // steps of inheritance above it
	bad   bool // a fault was told already
}

type amount struct {
	usd  payment.USD
	text string
	line int
	set  bool
}

type length struct {
	d    time.Duration
	text string
	line int
	set  bool
}

type capLine struct {
	Limit
	line int
}

// allowList is an allow list by what its entries do.
type allowList struct {
	to     []entry // name destinations
	chains []entry // narrow by chain alone
	assets []entry // narrow by token
}

// Bounds of a document: what is beyond them is an error.
const (
	maxCaps  = 64 // of one table
	maxDepth = 8  // of inheritance
)

// Defaults of keys that are not given.
const (
	defaultMaxPayment      = "$1"
	defaultMaxValidity     = 60 * time.Second
	defaultDuplicateWindow = 10 * time.Minute
	defaultApprovalTTL     = 24 * time.Hour
	defaultMaxPending      = 20
)

// understand reads the values of s. Faults go to errs, under key.
func (s *source) understand(key string, errs *errorList) *parsed {
	p := &parsed{
		name: s.name, line: s.line, from: s.from, timezone: s.timezone, frozen: s.frozen, chat: s.chat,
		maxPending: s.maxPending, rules: s.rules, capsSet: s.caps.set, capsLine: s.caps.line,
		allowSet: s.allow.set, allowLine: s.allow.line, totalsSet: s.approveTotal.set, totalsLine: s.approveTotal.line,
		newPayee: s.newPayee, mode: s.mode, jumpAt: s.priceJump,
		approversSet: s.approvers.set, approversLine: s.approvers.line, quorum: s.quorum,
	}
	fail := func(line int, name string, err error) {
		p.bad = true
		errs.add(line, key+"."+name, err.Error())
	}
	p.max = readAmount(s.maxPayment, "max_payment", fail)
	p.approve = readAmount(s.approveAbove, "approve_above", fail)
	p.validity = readLength(s.maxValidity, "max_validity", 10*time.Second, 600*time.Second, fail)
	p.duplicates = readLength(s.duplicateWindow, "duplicate_window", 0, 30*24*time.Hour, fail)
	p.ttl = readLength(s.approvalTTL, "approval_ttl", time.Minute, 90*24*time.Hour, fail)
	if n := s.maxPending; n.set && (n.n < 1 || n.n > 10_000) {
		fail(n.line, "max_pending", fmt.Errorf("must be 1 to 10000, not %d", n.n))
	}
	if s.timezone.set {
		if err := checkZone(s.timezone.text); err != nil {
			fail(s.timezone.line, "timezone", err)
		}
	}
	p.caps, p.none = readCaps(s.caps, "caps", fail)
	if p.none && len(s.caps.list) > 1 {
		fail(s.caps.line, "caps", errors.New(`"none" stands alone: it says that there is no cap`))
	}
	var asksNone bool
	if p.totals, asksNone = readCaps(s.approveTotal, "approve_above_total", fail); asksNone {
		fail(s.approveTotal.line, "approve_above_total", errors.New(`"none" is no total: leave the key out, or write an empty list`))
	}
	p.understandPeople(s, fail)
	p.understandHabits(s, fail)
	p.allowText = s.allow.list
	for _, e := range readEntries(s.allow, "allow", false, fail) {
		switch {
		case !e.narrows():
			p.allow.to = append(p.allow.to, e)
		case e.asset != token{}:
			p.allow.assets = append(p.allow.assets, e)
		default:
			p.allow.chains = append(p.allow.chains, e)
		}
	}
	if denies := readEntries(s.deny, "deny", true, fail); len(denies) > 0 {
		p.deny = [][]entry{denies}
	}
	for i, r := range s.rules {
		if r == nil {
			fail(0, "rules", fmt.Errorf("rule %d is nil", i))
		}
	}
	return p
}

type failure func(line int, name string, err error)

// readCaps reads a list of caps; none says that the word stands there.
func readCaps(list values, name string, fail failure) (caps []capLine, noCap bool) {
	if len(list.list) > maxCaps {
		fail(list.line, name, fmt.Errorf("more than %d caps", maxCaps))
		return nil, false
	}
	for _, v := range list.list {
		if v.text == none {
			noCap = true
			continue
		}
		l, err := parseCap(v.text, "")
		if err == nil && slices.ContainsFunc(caps, func(c capLine) bool {
			return c.Scope.Kind == l.Scope.Kind && c.Window == l.Window && c.Counting == l.Counting
		}) {
			err = fmt.Errorf("%q: another one has the same window and scope: keep the lower one", clip(v.text))
		}
		if err != nil {
			fail(v.line, name, err)
			continue
		}
		caps = append(caps, capLine{l, v.line})
	}
	return caps, noCap
}

func readAmount(v value, name string, fail failure) amount {
	if !v.set {
		return amount{}
	}
	u, err := parseAmount(v.text)
	if err != nil {
		fail(v.line, name, err)
	}
	return amount{usd: u, text: v.text, line: v.line, set: true}
}

func readLength(v value, name string, least, most time.Duration, fail failure) length {
	if !v.set {
		return length{}
	}
	d, err := parseLength(v.text)
	if err == nil && (d < least || d > most) {
		err = fmt.Errorf("%q must be %s to %s", clip(v.text), inSeconds(least), inSeconds(most))
	}
	if err != nil {
		fail(v.line, name, err)
	}
	return length{d: d, text: v.text, line: v.line, set: true}
}

// inSeconds is a bound as the documentation writes it.
func inSeconds(d time.Duration) string {
	if d < time.Hour {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return formatLength(d)
}

func readEntries(v values, name string, deny bool, fail failure) []entry {
	var out []entry
	for _, item := range v.list {
		e, err := parseEntry(item.text, deny)
		if err != nil {
			fail(item.line, name, err)
			continue
		}
		e.line = item.line
		out = append(out, e)
	}
	return out
}

// checkZone refuses what is no zone of the IANA database. Local would differ
// from machine to machine.
func checkZone(zone string) error {
	if zone == "Local" {
		return errors.New(`"Local" differs from machine to machine: name a zone like "Europe/Berlin"`)
	}
	if _, err := location(zone); err != nil {
		return fmt.Errorf(`%q is not a time zone that this machine knows: write one like "Europe/Berlin" or "UTC" (a program without zone data imports time/tzdata)`, clip(zone))
	}
	return nil
}

// inherit is child with what it does not give taken from parent; its deny list
// and its rules come after the parent's.
func (p *parsed) inherit(parent *parsed) *parsed {
	out := *p
	out.bad = p.bad || parent.bad
	out.depth = parent.depth + 1
	pick(&out.max, parent.max, out.max.set)
	pick(&out.approve, parent.approve, out.approve.set)
	pick(&out.timezone, parent.timezone, out.timezone.set)
	pick(&out.validity, parent.validity, out.validity.set)
	pick(&out.duplicates, parent.duplicates, out.duplicates.set)
	pick(&out.ttl, parent.ttl, out.ttl.set)
	pick(&out.maxPending, parent.maxPending, out.maxPending.set)
	pick(&out.frozen, parent.frozen, out.frozen.set)
	pick(&out.chat, parent.chat, out.chat.set)
	if !p.capsSet {
		out.caps, out.none, out.capsSet, out.capsLine = parent.caps, parent.none, parent.capsSet, parent.capsLine
	}
	if !p.allowSet {
		out.allow, out.allowText, out.allowSet, out.allowLine = parent.allow, parent.allowText, parent.allowSet, parent.allowLine
	}
	if !p.totalsSet {
		out.totals, out.totalsSet, out.totalsLine = parent.totals, parent.totalsSet, parent.totalsLine
	}
	pick(&out.hours, parent.hours, out.hours.set)
	pick(&out.newPayee, parent.newPayee, out.newPayee.set)
	pick(&out.mode, parent.mode, out.mode.set)
	if !p.jumpAt.set {
		out.jump, out.jumpAt = parent.jump, parent.jumpAt
	}
	if !p.approversSet {
		out.approvers, out.approversSet, out.approversLine = parent.approvers, parent.approversSet, parent.approversLine
	}
	if !p.quorum.set && !(p.approversSet && len(p.approvers) == 0) {
		out.quorum = parent.quorum // nobody to count is said with an empty list
	}
	out.deny = slices.Concat(parent.deny, p.deny)
	out.rules = slices.Concat(parent.rules, p.rules)
	return &out
}

func pick[T any](own *T, parent T, given bool) {
	if !given {
		*own = parent
	}
}

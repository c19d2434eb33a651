package policy

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/canopy-go/canopy/payment"
)

// compile makes the policy, or tells every fault of the document.
func (d *document) compile() (*Policy, error) {
	p := &Policy{file: d.name, org: d.orgName, frozen: d.org.frozen.on, tables: make(map[string]*table, len(d.tables)), doc: d}
	d.compileOrg(p)
	all := make(map[string]*parsed, len(d.tables))
	for _, s := range d.tables {
		key := tableKey(s.name)
		q := s.understand(key, &d.errs)
		if err := CheckName(s.name); err != nil {
			d.errs.add(s.line, key, err.Error())
			q.bad = true
		}
		all[s.name] = q
	}
	done := make(map[string]*parsed, len(all))
	for _, s := range d.tables {
		q := d.resolve(s.name, all, done)
		if q.bad {
			continue
		}
		if t := d.finish(q, p.caps); t != nil {
			p.tables[s.name] = t
		}
	}
	if err := d.errs.join(); err != nil {
		return nil, err
	}
	return p, nil
}

func hashOf(doc []byte) payment.Hash { return sha256.Sum256(doc) }

// tableKey is the key of a table for an error.
func tableKey(name string) string { return "policy." + keyText(name) }

func (d *document) compileOrg(p *Policy) {
	q := d.org.understand("org", &d.errs)
	if !utf8.ValidString(d.orgName) || len(d.orgName) > 200 || strings.ContainsFunc(d.orgName, control) {
		d.errs.add(d.org.line, "org.name", "must be one line of text, at most 200 bytes")
	}
	if q.none {
		d.errs.add(q.capsLine, "org.caps", `"none" frees no agent from naming its caps here: leave the key out, and write it in the agent's table`)
	}
	for _, c := range q.caps {
		if c.Scope.Kind != ScopeAgent {
			d.errs.add(c.line, "org.caps", fmt.Sprintf("%q: an org cap counts every payment: caps per %s stand in a policy", clip(c.Text), c.Scope.Kind))
			continue
		}
		l := c.Limit
		l.Scope = Scope{Kind: ScopeOrg}
		l.Window = inZone(l.Window, q.timezone)
		p.caps = append(p.caps, l)
		p.capLines = append(p.capLines, c.line)
	}
}

func control(r rune) bool {
	return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029
}

func inZone(w Window, zone value) Window {
	switch w.Kind {
	case Day, Week, Month:
		w.Zone = "UTC"
		if zone.set {
			w.Zone = zone.text
		}
	}
	return w
}

// CheckName tells why name is not an agent's: 1 to 64 letters, digits, dots,
// hyphens and underscores. Others could be taken for another's: scopes and
// records are written with them.
func CheckName(name string) error {
	ok := name != "" && len(name) <= 64
	for i := range len(name) {
		c := name[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.')
	}
	if !ok {
		return errors.New("an agent's name is 1 to 64 letters, digits, dots, hyphens and underscores")
	}
	return nil
}

// resolve is the table called name with what it inherits. A cycle and an
// unknown name are told once, at the table that names it.
func (d *document) resolve(name string, all, done map[string]*parsed) *parsed {
	var chain []*parsed
	seen := map[string]bool{}
	for {
		if q, ok := done[name]; ok {
			return d.descend(chain, q, done)
		}
		q := all[name]
		seen[name] = true
		if !q.from.set {
			done[name] = q
			return d.descend(chain, q, done)
		}
		parent, key := q.from.text, tableKey(name)+".from"
		switch {
		case seen[parent]:
			d.errs.add(q.from.line, key, fmt.Sprintf("%q inherits from this table: a circle", clip(parent)))
		case all[parent] == nil:
			names := make([]string, 0, len(all))
			for _, s := range d.tables {
				names = append(names, s.name)
			}
			d.errs.add(q.from.line, key, fmt.Sprintf("there is no [policy.%s]%s", keyText(parent), didYouMean(parent, names...)))
		default:
			chain = append(chain, q)
			name = parent
			continue
		}
		q.bad = true
		done[name] = q
		return d.descend(chain, q, done)
	}
}

// descend inherits down a chain of tables, the nearest to base last.
func (d *document) descend(chain []*parsed, base *parsed, done map[string]*parsed) *parsed {
	for i := len(chain) - 1; i >= 0; i-- {
		q := chain[i]
		switch {
		case base.depth < maxDepth:
			q = q.inherit(base)
		case !base.bad:
			d.errs.add(q.from.line, tableKey(q.name)+".from", fmt.Sprintf("tables inherit from one another over more than %d steps", maxDepth))
			fallthrough
		default:
			q.depth, q.bad = maxDepth, true
		}
		base = q
		done[base.name] = base
	}
	return base
}

// finish checks a table as a whole and makes it ready, or tells its fault.
func (d *document) finish(q *parsed, org []Limit) *table {
	key := tableKey(q.name)
	t := &table{
		parsed: q, name: q.name, shared: q.name == Default, line: q.line, frozen: q.frozen.on, allow: q.allow, deny: q.deny, listed: q.allowSet, allowLine: q.allowLine,
		rules: q.rules, chat: q.chat.on, none: q.none, capsLine: q.capsLine, maxLine: q.max.line,
		maxValidity:     or(q.validity, defaultMaxValidity),
		duplicateWindow: or(q.duplicates, defaultDuplicateWindow),
		approvalTTL:     or(q.ttl, defaultApprovalTTL),
		maxPending:      defaultMaxPending,
		approvers:       q.approvers, quorum: min(1, len(q.approvers)),
		hours: q.hours.in(q.timezone), payee: q.newPayee, jump: q.jump, jumpSet: q.jumpAt.set, shadow: q.mode.text == shadow,
	}
	if !d.finishPeople(q, t) {
		return nil
	}
	if q.maxPending.set {
		t.maxPending = int(q.maxPending.n)
	}
	t.max = maxPayment{max: payment.Dollar, text: defaultMaxPayment}
	if q.max.set {
		t.max = maxPayment{max: q.max.usd, text: q.max.text}
	}
	if q.approve.set {
		t.asks, t.approve, t.approveLine = true, approveAbove{above: q.approve.usd, text: q.approve.text}, q.approve.line
		if t.max.max <= q.approve.usd {
			said := "max_payment " + t.max.text
			if !q.max.set {
				said = "max_payment, which is " + defaultMaxPayment + " where it is not given"
			}
			d.errs.add(q.approve.line, key+".approve_above", fmt.Sprintf("%s is not below %s: nobody would ever be asked", q.approve.text, said))
			return nil
		}
	}
	for _, c := range q.caps {
		t.caps = append(t.caps, t.limit(c, q.timezone))
		t.capLines = append(t.capLines, c.line)
	}
	for _, c := range q.totals {
		l := t.limit(c, q.timezone)
		l.Asks = true
		t.totals = append(t.totals, l)
	}
	if !q.none && !hasSum(t.caps) && !hasSum(org) {
		line := q.capsLine
		if line == 0 {
			line = q.line
		}
		d.errs.add(line, key+".caps", `no cap in dollars bounds this agent's payments: write one like "$20 / 24h", here or in [org], or caps = ["none"]`)
		return nil
	}
	return t
}

// limit is a cap of t, or a total above which it asks.
func (t *table) limit(c capLine, zone value) Limit {
	l := c.Limit
	l.Scope.Agent, l.Scope.Shared = t.name, t.shared
	l.Window = inZone(l.Window, zone)
	l.Shadow = t.shadow
	switch l.Scope.Kind {
	case ScopeHost:
		t.hostCaps = true
	case ScopePayee:
		t.payeeCaps++
	case ScopeRun:
		t.runCaps = true
	}
	return l
}

func or(l length, absent time.Duration) time.Duration {
	if l.set {
		return l.d
	}
	return absent
}

// hasSum reports whether a cap on the sum counts all payments of its scope.
func hasSum(caps []Limit) bool {
	for _, l := range caps {
		if !l.Counting && (l.Scope.Kind == ScopeAgent || l.Scope.Kind == ScopeOrg) {
			return true
		}
	}
	return false
}

// describe is the table with every key written out.
func (t *table) describe() Table {
	q := t.parsed
	out := Table{
		MaxPayment: t.max.text, Frozen: t.frozen, ChatApproval: t.chat, MaxPending: t.maxPending, Rules: slices.Clone(t.rules),
		Timezone: "UTC", MaxValidity: formatLength(t.maxValidity), DuplicateWindow: formatLength(t.duplicateWindow),
		ApprovalTTL: formatLength(t.approvalTTL),
		Approvers:   slices.Clone(t.approvers), Quorum: t.quorum, NewPayee: t.payee.text, PriceJump: t.jump.text, Mode: enforce,
	}
	if t.shadow {
		out.Mode = shadow
	}
	for _, l := range t.totals {
		out.ApproveAboveTotal = append(out.ApproveAboveTotal, l.Text)
	}
	for _, v := range t.hours.texts {
		out.Hours = append(out.Hours, v.text)
	}
	if t.asks {
		out.ApproveAbove = t.approve.text
	}
	if q.timezone.set {
		out.Timezone = q.timezone.text
	}
	if q.none {
		out.Caps = []string{none}
	}
	for _, l := range t.caps {
		out.Caps = append(out.Caps, l.Text)
	}
	if q.allowSet {
		out.Allow = []string{}
	}
	for _, v := range q.allowText {
		out.Allow = append(out.Allow, v.text)
	}
	for _, list := range q.deny {
		for i := range list {
			out.Deny = append(out.Deny, list[i].text)
		}
	}
	return out
}

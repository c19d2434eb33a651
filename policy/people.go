package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The modes of a table.
const (
	enforce = "enforce"
	shadow  = "shadow"
)

// What new_payee does with the first payment to somebody.
const (
	askNew  = "approve"
	denyNew = "deny"
)

// maxApprovers is how many a table may name.
const maxApprovers = 100

// understandPeople reads who may rule.
func (p *parsed) understandPeople(s *source, fail failure) {
	if len(s.approvers.list) > maxApprovers {
		fail(s.approvers.line, "approvers", fmt.Errorf("more than %d of them", maxApprovers))
		return
	}
	for _, v := range s.approvers.list {
		err := checkApprover(v.text)
		if err == nil && slices.ContainsFunc(p.approvers, func(n string) bool { return strings.EqualFold(n, v.text) }) {
			err = fmt.Errorf("%s stands there twice: a person counts once", v.text)
		}
		if err != nil {
			fail(v.line, "approvers", err)
			continue
		}
		p.approvers = append(p.approvers, v.text)
	}
	if q := s.quorum; q.set && (q.n < 1 || q.n > maxApprovers) {
		fail(q.line, "quorum", fmt.Errorf("must be 1 to the number of approvers, not %d", q.n))
	}
}

// checkApprover refuses what is no approver's name: the register takes no other.
func checkApprover(name string) error {
	switch {
	case CheckName(name) != nil:
		return fmt.Errorf("%q is not an approver's name: 1 to 64 letters, digits, dots, hyphens and underscores", clip(name))
	case strings.HasPrefix(strings.ToLower(name), "agt_"):
		return fmt.Errorf("%q looks like the id of an agent, and no agent approves", name)
	}
	return nil
}

// finishPeople checks who may rule on the payments of t.
func (d *document) finishPeople(q *parsed, t *table) bool {
	key, n := tableKey(q.name), len(q.approvers)
	if slices.ContainsFunc(q.approvers, func(name string) bool { return strings.EqualFold(name, q.name) }) {
		d.errs.add(q.approversLine, key+".approvers", fmt.Sprintf("%s is the agent itself: nobody approves what they ask for", q.name))
		return false
	}
	if !q.quorum.set {
		return true
	}
	switch {
	case n == 0:
		d.errs.add(q.quorum.line, key+".quorum", `counts approvers, and none are named: write approvers = ["NAME", "NAME"]`)
		return false
	case q.quorum.n > int64(n):
		d.errs.add(q.quorum.line, key+".quorum", fmt.Sprintf("%d is more than the %d approvers: nothing could ever be approved", q.quorum.n, n))
		return false
	}
	t.quorum = int(q.quorum.n)
	return true
}

// understandHabits reads when and where payments are usual, and what the table
// does about others.
func (p *parsed) understandHabits(s *source, fail failure) {
	p.hours = hours{line: s.hours.line, set: s.hours.set}
	if s.hours.set && len(s.hours.list) == 0 {
		fail(s.hours.line, "hours", errors.New(`is empty: leave the key out, or write "Mon-Sun" for always`))
	}
	if len(s.hours.list) > maxHours {
		fail(s.hours.line, "hours", fmt.Errorf("more than %d of them", maxHours))
		return
	}
	for _, v := range s.hours.list {
		w, err := parseHours(v.text)
		if err != nil {
			fail(v.line, "hours", err)
			continue
		}
		p.hours.texts = append(p.hours.texts, v)
		p.hours.weeks = append(p.hours.weeks, w)
	}
	if v := s.newPayee; v.set && v.text != askNew && v.text != denyNew {
		fail(v.line, "new_payee", fmt.Errorf(`%q is neither "approve" nor "deny"%s`, clip(v.text), didYouMean(v.text, askNew, denyNew)))
	}
	if v := s.mode; v.set && v.text != enforce && v.text != shadow {
		fail(v.line, "mode", fmt.Errorf(`%q is not a mode: write "enforce" or "shadow"`, clip(v.text)))
	}
	if v := s.priceJump; v.set {
		var err error
		if p.jump, err = parseJump(v.text); err != nil {
			fail(v.line, "price_jump", err)
		}
	}
}

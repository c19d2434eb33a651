package main

import (
	"context"
	"slices"
	"time"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// hire gives everybody a credential.
func (w *world) hire() error {
	register, err := approvals.NewRegister(w.book, func() time.Time { return w.now })
	if err != nil {
		return err
	}
	w.people = map[string]approvals.Credential{}
	for _, name := range slices.Concat(named, others) {
		if w.people[name], err = register.Add(context.Background(), name); err != nil {
			return err
		}
	}
	return nil
}

// person is who rules on what an agent asks, and by what: mostly one who may,
// now and then the agent itself, one whom nobody named, or one who has another's
// credential.
func (w *world) person(agent string) (by string, credential approvals.Credential) {
	by = named[w.rng.IntN(len(named))]
	switch {
	case w.chance(6):
		by = agent
	case w.chance(10):
		by = others[0]
	}
	if w.setup.quorum[tableOf(agent)] == 0 {
		return by, "" // whoever can open the ledger
	}
	if credential = w.people[by]; w.chance(10) {
		credential = w.people[others[0]]
	}
	return by, credential
}

// ruled sees a person's answer that was taken.
func (o *oracle) ruled(a *asking, r approvals.Ruling, got ledger.Approval) {
	quorum := o.w.setup.quorum[tableOf(a.agent)]
	switch {
	case r.By == a.agent:
		o.w.breaks("I7: %s ruled on its own approval %d", a.agent, a.n)
	case quorum > 0 && (!slices.Contains(named, r.By) || r.Credential != o.w.people[r.By].Reveal()):
		o.w.breaks("I7: %s ruled on approval %d by no credential of theirs", r.By, a.n)
	case !got.DecidedAt.Before(a.expires):
		o.w.breaks("I7: approval %d is ruled on after it expired", a.n)
	case r.Approve && slices.Contains(a.yes, r.By):
		o.w.breaks("I7: %s said yes to approval %d twice", r.By, a.n)
	}
	if r.Approve {
		a.yes = append(a.yes, r.By)
	}
	a.granted = r.Approve && len(a.yes) >= quorum
	if is := got.Status == ledger.ApprovalGranted; is != a.granted || !r.Approve && got.Status != ledger.ApprovalRefused {
		o.w.breaks("I7: approval %d is %s with %d of %d", a.n, got.Status, len(a.yes), quorum)
	}
	if a.granted {
		o.grants = append(o.grants, a)
	}
}

// refusal is a payment that was denied.
type refusal struct {
	e    ledger.Entry
	want want
}

// maxRefusals is how many an approver may look back at.
const maxRefusals = 8

// refuse remembers a payment that was denied.
func (o *oracle) refuse(e ledger.Entry, q want) {
	o.refusals = append(o.refusals, refusal{e, q})
	if len(o.refusals) > maxRefusals {
		o.refusals = o.refusals[1:]
	}
}

// override has somebody let a payment that was denied go over its caps.
func (w *world) override() {
	o := w.oracle
	if len(o.refusals) == 0 {
		return
	}
	r := o.refusals[w.rng.IntN(len(o.refusals))]
	by, credential := w.person(r.e.Agent)
	table := tableOf(r.e.Agent)
	says := ledger.Override{
		Payment: r.e.ID, By: by, Credential: credential.Reveal(), Reason: "it is due", Via: "sim", TTL: w.setup.ttl, Now: w.now.Add(w.machine),
	}
	if w.setup.quorum[table] > 0 {
		says.Approvers, says.Quorum = named, w.setup.quorum[table]
	}
	got, err := w.book.Override(context.Background(), says)
	w.note("%s lets a payment of %s go over its caps: %v", by, r.e.Cost, err == nil)
	if err != nil {
		return
	}
	a := &asking{
		n: len(o.asked) + 1, id: got.ID, payment: got.Payment, agent: r.e.Agent, hash: r.e.TermsHash, expires: got.ExpiresAt,
		granted: true, over: true, yes: []string{by}, want: r.want,
	}
	o.asked[a.id] = a
	o.grants = append(o.grants, a)
	other := slices.ContainsFunc(r.e.Reasons, func(r policy.Reason) bool {
		ours := r.Code == policy.CodeCapExceeded || r.Code == policy.CodeCountExceeded
		return r.Status == payment.Denied && (!ours || r.Scope == "org")
	})
	switch {
	case w.setup.quorum[table] == 0 || !slices.Contains(named, by) || credential != w.people[by]:
		w.breaks("I7: %s let a payment go over its caps by no credential of theirs", by)
	case other:
		w.breaks("I1: a payment was let go that more than its caps denied: %v", r.e.Reasons)
	case w.isFrozen(r.e.Agent):
		w.breaks("I11: a payment of %s was let go while it is frozen", r.e.Agent)
	}
}

// over reports whether an approver let r go over the caps of its table.
func (o *oracle) over(r *record, l *limit) bool { return r.over && l.table != "" }

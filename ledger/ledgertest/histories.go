package ledgertest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// windows are what random caps count in.
var windows = []policy.Window{
	rolling(90 * time.Second), rolling(time.Hour), day24, rolling(7 * 24 * time.Hour), ever,
	{Kind: policy.Day}, {Kind: policy.Day, Zone: "Europe/Berlin"}, {Kind: policy.Week, Zone: "America/New_York"}, {Kind: policy.Month, Zone: "Asia/Kolkata"},
}

// testModel plays random histories on the store and on the model, and compares
// every decision and every use.
func testModel(w *world) {
	n := 0
	rapid.Check(w.T, func(t *rapid.T) {
		// Every history has agents, and so a ledger, of its own; a scope of
		// org would see the others'.
		n++
		h := &history{world: w, t: t, agents: []string{fmt.Sprint("a", n), fmt.Sprint("b", n)}}
		h.clock.Advance(time.Duration(rapid.IntRange(0, 1e6).Draw(t, "begin")) * time.Millisecond)
		h.m.now = h.now()
		t.Repeat(map[string]func(*rapid.T){
			"":        func(*rapid.T) { h.compareUses() },
			"past":    h.comparePast,
			"reserve": h.reserve,
			"again":   h.reserve,
			"more":    h.reserve,
			"advance": h.advance,
			"decide":  h.decide,
			"time":    h.pass,
		})
	})
	w.verify()
}

// history is one random history.
type history struct {
	*world
	t      *rapid.T
	m      model
	agents []string
}

func pick[T any](t *rapid.T, name string, list ...T) T { return rapid.SampledFrom(list).Draw(t, name) }

func (h *history) limit(t *rapid.T, r *ledger.Request) policy.Limit {
	s := policy.Scope{Kind: pick(t, "scope", policy.ScopeAgent, policy.ScopeHost, policy.ScopePayee, policy.ScopeRun), Agent: r.Payment.Agent}
	switch s.Kind {
	case policy.ScopeRun:
		s.Name = r.Payment.Run
	case policy.ScopeHost:
		s.Host = r.Payment.Host
	case policy.ScopePayee:
		rs := r.Payment.Terms.Recipients
		s.Payee = rs[rapid.IntRange(0, len(rs)-1).Draw(t, "recipient")].Address
	}
	l := policy.Limit{Scope: s, Window: pick(t, "window", windows...)}
	if rapid.Bool().Draw(t, "counting") {
		l.Counting, l.Count = true, rapid.Int64Range(1, 9).Draw(t, "count")
	} else {
		l.USD = payment.USD(rapid.IntRange(1, 30).Draw(t, "cap")) * payment.Dollar / 2
	}
	l.Text = l.String()
	switch pick(t, "above", "deny", "deny", "ask", "shadow", "shadow ask") {
	case "ask":
		l.Asks = true
	case "shadow":
		l.Shadow = true
	case "shadow ask":
		l.Asks, l.Shadow = true, true
	}
	return l
}

func (h *history) request(t *rapid.T) ledger.Request {
	a, b := payment.Address{19: 1}, payment.Address{19: 2}
	opts := []with{
		agent(pick(t, "agent", h.agents...)),
		usd(payment.USD(rapid.IntRange(0, 6).Draw(t, "cost")) * payment.Dollar / 2),
		inRun(pick(t, "run", "one", "two")),
	}
	build := h.fetch
	if pick(t, "kind", "fetch", "fetch", "transfer") == "transfer" {
		build = h.pay
		opts = append(opts, payees(pick(t, "payee", a, b)))
	} else {
		opts = append(opts, host(pick(t, "host", "one.example", "two.example")), path(pick(t, "path", "/1", "/2", "/3")))
		if rapid.Bool().Draw(t, "split") {
			opts = append(opts, payees(a, b))
		}
	}
	if k := pick(t, "key", "", "", "k1", "k2", "k3"); k != "" {
		opts = append(opts, key(k))
	}
	if rapid.Bool().Draw(t, "watched") {
		opts = append(opts, watched())
	}
	switch pick(t, "verdict", "allowed", "allowed", "allowed", "asks", "denied") {
	case "asks":
		opts = append(opts, asks())
	case "denied":
		opts = append(opts, func(r *ledger.Request) { r.Verdict = denied(r.Verdict) })
	}
	if rapid.Bool().Draw(t, "fee") {
		opts = append(opts, feeBound(payment.USD(rapid.IntRange(1, 3).Draw(t, "fee bound"))*payment.Dollar/4))
	}
	validity := time.Duration(rapid.IntRange(12, 60).Draw(t, "validity")) * time.Second
	ago := time.Duration(rapid.IntRange(0, 3).Draw(t, "began")) * 20 * time.Second
	opts = append(opts, began(h.now().Add(-ago)), func(r *ledger.Request) {
		r.Validity = validity
		r.Verdict.MaxPending = 3
	})
	r := build(opts...)
	for range rapid.IntRange(0, 4).Draw(t, "caps") {
		r.Verdict.Limits = append(r.Verdict.Limits, h.limit(t, &r))
	}
	return r
}

func (h *history) reserve(t *rapid.T) {
	r := h.request(t)
	e, uses, err := h.s.Reserve(h.ctx, r)
	want := h.m.reserve(r)
	joined, isJoin := errors.AsType[*ledger.JoinedError](err)
	switch {
	case want.err != nil:
		if !errors.Is(err, want.err) {
			t.Fatalf("Reserve: %s, %v; the model says %v", e.State, err, want.err)
		}
		return
	case want.join != 0:
		if !isJoin || joined.Why != want.join || joined.ID != want.id || e.ID != want.id || e.State != want.state {
			t.Fatalf("Reserve: %s %s %v, %v; the model joins %s (%v, %s)", e.State, e.ID, codes(e.Reasons), err, want.id, want.join, want.state)
		}
		return
	case err != nil:
		t.Fatalf("Reserve: %v; the model says %s", err, want.state)
	}
	var got []string
	for _, r := range e.Reasons {
		if r.Decides(payment.Denied) {
			got = append(got, r.Code)
		}
	}
	slices.Sort(got)
	if e.State != want.state || e.ID != want.id || !slices.Equal(slices.Compact(got), slices.Compact(want.denied)) {
		t.Fatalf("Reserve: %s %s %v; the model says %s %s %v", e.State, e.ID, got, want.state, want.id, want.denied)
	}
	for i, u := range uses {
		if x := want.uses[i]; u.USD != x.USD || u.Count != x.Count || u.Limit != x.Limit {
			t.Fatalf("Reserve: %v counts %v in %d; the model counts %v in %d", u.Limit, u.USD, u.Count, x.USD, x.Count)
		}
	}
	if e.State == ledger.Authorized {
		p := h.find(e.ID)
		if !e.AuthorizedAt.Equal(p.AuthorizedAt) || !e.ValidBefore.Equal(p.ValidBefore) || e.Key != p.Key {
			t.Fatalf("Reserve: authorized at %v until %v, key %q; the model says %v, %v, %q", e.AuthorizedAt, e.ValidBefore, e.Key, p.AuthorizedAt, p.ValidBefore, p.Key)
		}
	}
}

func (h *history) find(id payment.ID) *modelPayment {
	for _, p := range h.m.list {
		if p.ID == id {
			return p
		}
	}
	panic("the model does not know " + string(id))
}

// some picks a payment in one of the states, or skips.
func (h *history) some(t *rapid.T, in func(ledger.State) bool) *modelPayment {
	var list []*modelPayment
	for _, p := range h.m.live() {
		if in(p.State) {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		t.Skip("no payment to move")
	}
	return list[rapid.IntRange(0, min(len(list)-1, 9)).Draw(t, "payment")]
}

func (h *history) advance(t *rapid.T) {
	p := h.some(t, ledger.State.Live)
	type move struct {
		to ledger.State
		by ledger.Actor
	}
	var moves []move
	for to, by := range legal[p.State] {
		for _, b := range by {
			moves = append(moves, move{to, b})
		}
	}
	slices.SortFunc(moves, func(a, b move) int { return int(a.to)*10 + int(a.by) - int(b.to)*10 - int(b.by) })
	to := pick(t, "move", moves...)
	e, err := h.s.Entry(h.ctx, p.ID)
	if err != nil {
		t.Fatalf("Entry: %v", err)
	}
	c := ledger.Change{ID: p.ID, Version: e.Version, To: to.to, By: to.by, Now: h.now(), Delivered: rapid.Bool().Draw(t, "delivered")}
	if ago := rapid.IntRange(-1, 4).Draw(t, "spent"); ago >= 0 && to.to == ledger.Settled {
		c.SpentAt = h.now().Add(-time.Duration(ago) * 25 * time.Minute)
	}
	if most := int(p.Terms.FeeBound); (to.to == ledger.Settled || to.to == ledger.Cancelled) && rapid.Bool().Draw(t, "fee is known") {
		c.Fee = new(payment.USD(rapid.IntRange(0, most).Draw(t, "fee")))
	}
	if _, err := h.s.Advance(h.ctx, c); err != nil {
		t.Fatalf("Advance %s from %s to %s by %s: %v", p.ID, p.State, c.To, c.By, err)
	}
	h.m.advance(p, c)
}

func (h *history) decide(t *rapid.T) {
	p := h.some(t, func(s ledger.State) bool { return s == ledger.PendingApproval })
	e, err := h.s.Entry(h.ctx, p.ID)
	if err != nil {
		t.Fatalf("Entry: %v", err)
	}
	d := ledger.Decision{ID: e.ApprovalID, Approve: pick(t, "approve", true, true, false), By: "ana", Now: h.now()}
	if _, err := h.s.Approvals().Decide(h.ctx, d); err != nil {
		t.Fatalf("Decide: %v", err)
	}
	p.State = ledger.Rejected
	if d.Approve {
		p.State = ledger.Approved
	}
}

// pass lets time pass, a moment or so long that windows turn.
func (h *history) pass(t *rapid.T) {
	d := pick(t, "time", 0, time.Microsecond, time.Second, 20*time.Second, time.Minute, 11*time.Minute, time.Hour, 6*time.Hour, 24*time.Hour, 9*24*time.Hour)
	if rapid.Bool().Draw(t, "to the edge") && len(h.m.list) > 0 {
		// To just the instant at which some payment ages out of an hour.
		p := h.m.list[rapid.IntRange(0, len(h.m.list)-1).Draw(t, "whose")]
		until := p.ValidBefore
		if !p.SpentAt.IsZero() {
			until = p.SpentAt
		}
		if edge := until.Add(time.Hour).Sub(h.now()); edge > 0 && !until.IsZero() {
			d = edge - time.Duration(rapid.IntRange(0, 1).Draw(t, "before"))*time.Microsecond
		}
	}
	h.clock.Advance(d)
	h.m.now = h.now()
}

func (h *history) compareUses() {
	var limits []policy.Limit
	for _, a := range h.agents {
		for _, win := range windows {
			limits = append(limits, policy.Limit{Scope: policy.Scope{Kind: policy.ScopeAgent, Agent: a}, Window: win})
		}
		limits = append(limits,
			policy.Limit{Scope: policy.Scope{Kind: policy.ScopeHost, Agent: a, Host: "one.example"}, Window: rolling(time.Hour)},
			policy.Limit{Scope: policy.Scope{Kind: policy.ScopePayee, Agent: a, Payee: payment.Address{19: 2}}, Window: windows[5]})
	}
	got, err := h.s.Use(h.ctx, limits, h.now())
	if err != nil {
		h.t.Fatalf("Use: %v", err)
	}
	for i, l := range limits {
		if want := h.m.use(l); got[i].USD != want.USD || got[i].Count != want.Count || got[i].Held != want.Held {
			h.t.Fatalf("%s / %v counts %v in %d, %v held; the model counts %v in %d, %v held",
				l.Scope.Key(), l.Window, got[i].USD, got[i].Count, got[i].Held, want.USD, want.Count, want.Held)
		}
	}
}

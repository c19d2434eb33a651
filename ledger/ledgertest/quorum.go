package ledgertest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// named makes the verdict one that asks quorum people of these names.
func named(quorum int, names ...string) with {
	return func(r *ledger.Request) {
		asks()(r)
		r.Verdict.Approvers, r.Verdict.Quorum = names, quorum
	}
}

// rules is the answer of a person to e, with the credential that hire gave them.
func (w *world) rules(e ledger.Entry, by string, approve bool, opts ...func(*ledger.Decision)) (ledger.Approval, error) {
	d := ledger.Decision{
		ID: e.ApprovalID, Approve: approve, By: by, Credential: "secret of " + by, Via: "page", Comment: "said " + by,
		TermsHash: e.TermsHash, Now: w.now(),
	}
	for _, o := range opts {
		o(&d)
	}
	return w.s.Approvals().Decide(w.ctx, d)
}

func credential(c string) func(*ledger.Decision) {
	return func(d *ledger.Decision) { d.Credential = c }
}

func way(way ledger.Way) func(*ledger.Decision) { return func(d *ledger.Decision) { d.Way = way } }

// testNamed lets nobody rule but those whom the policy named when it was asked,
// each with a credential that holds now.
func testNamed(w *world) {
	w.hire("ana", "Ben", "dan", "trader2")
	e := w.ask(w.fetch(named(1, "ana", "ben", "eve", "trader")))
	before := w.entry(e.ID)
	for _, approve := range []bool{true, false} {
		for name, tt := range map[string]struct {
			by   string
			with func(*ledger.Decision)
			want error
		}{
			"no credential":          {"ana", credential(""), ledger.ErrCredential},
			"a wrong one":            {"ana", credential("secret of"), ledger.ErrCredential},
			"another's":              {"ana", credential("secret of Ben"), ledger.ErrCredential},
			"the hash":               {"ana", credential(ledger.HashCredential("secret of ana").String()), ledger.ErrCredential},
			"not named":              {"dan", way(ledger.AtDesk), ledger.ErrNotNamed},
			"named and never added":  {"eve", way(ledger.AtDesk), ledger.ErrCredential},
			"the requester":          {"trader", way(ledger.AtDesk), ledger.ErrSelf},
			"nobody":                 {"", way(ledger.AtDesk), nil},
			"in chat":                {"ana", way(ledger.InChat), ledger.ErrChatDisabled},
			"other terms":            {"ana", func(d *ledger.Decision) { d.TermsHash = payment.Hash{1} }, ledger.ErrTermsChanged},
			"a name that looks like": {"an\u0430", credential("secret of ana"), ledger.ErrNotNamed},
		} {
			_, err := w.rules(e, tt.by, approve, tt.with)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				w.Errorf("%s, approve %v: %v, want %v", name, approve, err, tt.want)
			}
			if strings.Contains(fmt.Sprint(err), "secret of") {
				w.Errorf("%s: the error tells a credential: %v", name, err)
			}
		}
	}
	w.same(w.entry(e.ID), before)
	if a := w.approval(e.ApprovalID); a.Status != ledger.ApprovalPending || len(a.Votes) != 0 || a.Quorum != 1 || strings.Join(a.Approvers, " ") != "ana ben eve trader" {
		w.Fatalf("the approval is %+v", a)
	}

	// A rotated credential is dead at once, and a revoked person too.
	p := w.people()
	if err := p.RotateApprover(w.ctx, "ana", ledger.HashCredential("fresh"), w.now()); err != nil {
		w.Fatalf("rotate: %v", err)
	}
	if _, err := w.rules(e, "ana", true); !errors.Is(err, ledger.ErrCredential) {
		w.Errorf("the credential of before: %v", err)
	}
	if err := p.RevokeApprover(w.ctx, "ben", w.now()); err != nil {
		w.Fatalf("revoke: %v", err)
	}
	if _, err := w.rules(e, "Ben", true); !errors.Is(err, ledger.ErrCredential) {
		w.Errorf("who was revoked: %v", err)
	}
	a, err := w.rules(e, "ANA", true, credential("fresh"), way(ledger.Remote))
	if err != nil || a.Status != ledger.ApprovalGranted || a.By != "ana" || a.Via != "page" {
		w.Errorf("ana: %+v, %v", a, err)
	}
	if got := w.allow(w.fetch(named(1, "ana"))); got.ID != e.ID {
		w.Errorf("carried out %s, want %s", got.ID, e.ID)
	}

	// A credential that is given has to be right where none is asked for, too.
	open := w.ask(w.fetch(asks(), path("/open")))
	if _, err := w.rules(open, "dan", true, credential("wrong")); !errors.Is(err, ledger.ErrCredential) {
		w.Errorf("a wrong credential where none is asked for: %v", err)
	}
	if a, err := w.rules(open, "dan", true); err != nil || a.By != "dan" {
		w.Errorf("a right one: %+v, %v", a, err)
	}

	// Who is added, or named, later does not rule on what was asked before.
	if err := p.AddApprover(w.ctx, "late", ledger.HashCredential("secret of late"), w.now()); err != nil {
		w.Fatalf("add: %v", err)
	}
	e = w.ask(w.fetch(named(1, "dan"), path("/late")))
	if _, err := w.rules(e, "late", true); !errors.Is(err, ledger.ErrNotNamed) {
		w.Errorf("who was not named when it was asked: %v", err)
	}
	w.verify()
}

// testQuorum counts distinct people.
func testQuorum(w *world) {
	w.hire("ana", "Ben", "cyd")
	l := atMost(10*payment.Dollar, day24)
	request := func(p string) ledger.Request {
		return w.fetch(path(p), named(2, "ana", "BEN", "cyd"), caps(l), usd(2*payment.Dollar))
	}
	must := func(a ledger.Approval, err error) ledger.Approval {
		w.Helper()
		if err != nil {
			w.Fatalf("Decide: %v", err)
		}
		return a
	}
	e := w.ask(request("/a"))
	w.clock.Advance(time.Second)
	first := w.now()
	a := must(w.rules(e, "ana", true))
	if a.Status != ledger.ApprovalPending || a.By != "" || !a.DecidedAt.IsZero() || a.Yes() != 1 || a.Quorum != 2 || a.Version != 2 {
		w.Errorf("after one of two: %+v", a)
	}
	if want := (ledger.Vote{By: "ana", Via: "page", Approve: true, At: first, Comment: "said ana"}); len(a.Votes) != 1 || a.Votes[0] != want {
		w.Errorf("the votes are %+v, want %+v", a.Votes, want)
	}
	got := w.want(w.entry(e.ID), ledger.PendingApproval)
	if got.Version != e.Version+1 || got.Head == e.Head {
		w.Errorf("the vote is no event: version %d, head %s", got.Version, got.Head)
	}
	w.uses(l, 0, 0)
	w.join(request("/a"), e.ID, ledger.JoinEqual)
	for _, name := range []string{"ana", "ANA"} {
		if a, err := w.rules(e, name, true, credential("secret of ana")); !errors.Is(err, ledger.ErrVoted) || a.Yes() != 1 {
			w.Errorf("%s twice: %v, %d say yes", name, err, a.Yes())
		}
	}
	w.same(w.entry(e.ID), got)
	w.clock.Advance(time.Second)
	a = must(w.rules(e, "ben", true, credential("secret of Ben")))
	if a.Status != ledger.ApprovalGranted || a.By != "Ben" || a.Yes() != 2 || !a.DecidedAt.Equal(w.now()) || a.Votes[1].By != "Ben" || a.Votes[0].By != "ana" {
		w.Errorf("after two of two: %+v", a)
	}
	if a, err := w.rules(e, "cyd", false); !errors.Is(err, ledger.ErrDecided) || a.Status != ledger.ApprovalGranted {
		w.Errorf("a third: %s, %v", a.Status, err)
	}
	if got := w.allow(request("/a")); got.ID != e.ID {
		w.Errorf("carried out %s, want %s", got.ID, e.ID)
	}
	w.uses(l, 2*payment.Dollar, 1)

	// One denial ends it, whoever said yes before, and of whomever it is.
	for i, names := range [][]string{{"cyd"}, {"ana", "cyd"}, {"ana", "ana"}} {
		e := w.ask(request(fmt.Sprint("/no/", i)))
		for _, yes := range names[:len(names)-1] {
			must(w.rules(e, yes, true))
		}
		if a := must(w.rules(e, names[len(names)-1], false)); a.Status != ledger.ApprovalRefused || len(a.Votes) != len(names) {
			w.Errorf("%v: %+v", names, a)
		}
		w.want(w.entry(e.ID), ledger.Rejected)
		if _, err := w.rules(e, "Ben", true); !errors.Is(err, ledger.ErrDecided) {
			w.Errorf("a yes after a denial: %v", err)
		}
	}

	// Silence is a denial, and one vote of two is silence.
	e = w.ask(request("/late"))
	must(w.rules(e, "ana", true))
	w.clock.Advance(24 * time.Hour)
	if a, err := w.rules(e, "Ben", true); !errors.Is(err, ledger.ErrDecided) || a.Status != ledger.ApprovalLapsed {
		w.Errorf("a yes after the end: %s, %v", a.Status, err)
	}
	w.want(w.entry(e.ID), ledger.ApprovalExpired)

	// A yes of who may not rule any more does not count.
	e = w.ask(request("/gone"))
	must(w.rules(e, "ana", true))
	if err := w.people().RevokeApprover(w.ctx, "ana", w.now()); err != nil {
		w.Fatalf("revoke: %v", err)
	}
	if a := must(w.rules(e, "Ben", true)); a.Status != ledger.ApprovalPending {
		w.Errorf("with the yes of who was revoked it is %s", a.Status)
	}
	w.clock.Advance(time.Second)
	w.hire("ana")
	if a := must(w.rules(e, "cyd", true)); a.Status != ledger.ApprovalGranted {
		w.Errorf("with two more it is %s", a.Status)
	}
	w.verify()

	// What was given out is the caller's own.
	a = w.approval(e.ApprovalID)
	a.Votes[0].By, a.Approvers[0] = "eve", "eve"
	if b := w.approval(e.ApprovalID); b.Votes[0].By != "ana" || b.Approvers[0] != "ana" {
		w.Errorf("a caller changed the ledger's: %+v", b)
	}
	if list, err := w.s.Approvals().List(w.ctx, "", false, w.now()); err != nil || len(list[0].Votes) != 3 {
		w.Errorf("the list has %+v, %v", list, err)
	}
	if w.o.Durable {
		w.s.Close()
		w.s = w.open()
		if b := w.approval(e.ApprovalID); len(b.Votes) != 3 || b.Quorum != 2 || len(b.Approvers) != 3 || b.Votes[2].By != "cyd" {
			w.Errorf("opened again: %+v", b)
		}
		w.verify()
	}
}

// testQuorumRace lets approvers race one another: the outcome is one, and the
// record says who made it.
func testQuorumRace(w *world) {
	names := []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"}
	w.hire(names...)
	handles := []ledger.Store{w.s}
	if w.o.Shared {
		handles = append(handles, w.open(), w.open())
	}
	for i := range 30 {
		quorum := 1 + i%4
		e := w.ask(w.fetch(path(fmt.Sprint("/race/", i)), named(quorum, names...)))
		denier := -1
		if i%3 == 0 {
			denier = i % len(names)
		}
		var taken, decided atomic.Int64
		w.together(2*len(names), func(j int) {
			who := j % len(names) // each tries twice
			a, err := handles[j%len(handles)].Approvals().Decide(w.ctx, ledger.Decision{
				ID: e.ApprovalID, Approve: who != denier, By: names[who], Credential: "secret of " + names[who], TermsHash: e.TermsHash, Now: w.now(),
			})
			switch {
			case err == nil:
				taken.Add(1)
				if a.Status != ledger.ApprovalPending {
					decided.Add(1)
				}
			case !errors.Is(err, ledger.ErrDecided) && !errors.Is(err, ledger.ErrVoted):
				w.Errorf("Decide: %v", err)
			}
		})
		a, got := w.approval(e.ApprovalID), w.entry(e.ID)
		if decided.Load() != 1 || int(taken.Load()) != len(a.Votes) {
			w.Errorf("%d decided and %d were taken, want 1 and %d", decided.Load(), taken.Load(), len(a.Votes))
		}
		seen := map[string]bool{}
		for _, v := range a.Votes {
			if seen[v.By] && v.Approve {
				w.Errorf("%s counts twice", v.By)
			}
			seen[v.By] = true
		}
		switch {
		case a.Status == ledger.ApprovalGranted && a.Yes() == quorum && got.State == ledger.Approved:
		case a.Status == ledger.ApprovalRefused && a.Yes() < quorum && got.State == ledger.Rejected && denier >= 0 && a.By == names[denier]:
		default:
			w.Errorf("%s with %d of %d, the payment is %s", a.Status, a.Yes(), quorum, got.State)
		}
	}
	w.verify()
}

// testWays is where an answer may come from where no approvers are named.
func testWays(w *world) {
	chat := func(r *ledger.Request) { r.Verdict.Chat = true }
	plain := credential("")
	for i, approve := range []bool{true, false} {
		e := w.ask(w.fetch(asks(), path(fmt.Sprint("/plain/", i))))
		if _, err := w.rules(e, "ana", approve, plain, way(ledger.Remote)); !errors.Is(err, ledger.ErrNoApprovers) {
			w.Errorf("from afar: %v", err)
		}
		if _, err := w.rules(e, "ana", approve, plain, way(ledger.InChat)); !errors.Is(err, ledger.ErrChatDisabled) {
			w.Errorf("in a chat that is off: %v", err)
		}
		w.want(w.entry(e.ID), ledger.PendingApproval)
		if _, err := w.rules(e, "ana", approve, plain); err != nil {
			w.Errorf("at the desk: %v", err)
		}

		e = w.ask(w.fetch(asks(), chat, path(fmt.Sprint("/chat/", i))))
		if _, err := w.rules(e, "trader", approve, plain, way(ledger.InChat)); !errors.Is(err, ledger.ErrSelf) {
			w.Errorf("the agent in the chat: %v", err)
		}
		if _, err := w.rules(e, "ana", approve, plain, way(ledger.Remote)); !errors.Is(err, ledger.ErrNoApprovers) {
			w.Errorf("from afar where chat is on: %v", err)
		}
		a, err := w.rules(e, "host", approve, plain, way(ledger.InChat), func(d *ledger.Decision) { d.Via = "chat" })
		if err != nil || a.Via != "chat" || (a.Status == ledger.ApprovalGranted) != approve {
			w.Errorf("in the chat: %+v, %v", a, err)
		}
	}
	// The chat never stands for an approver.
	w.hire("ana")
	e := w.ask(w.fetch(named(1, "ana"), chat))
	if _, err := w.rules(e, "ana", true, way(ledger.InChat)); !errors.Is(err, ledger.ErrChatDisabled) {
		w.Errorf("in the chat, where approvers are named: %v", err)
	}
	w.want(w.entry(e.ID), ledger.PendingApproval)
	w.verify()
}

// testFatigue buries a person under requests: at most max_pending of an agent
// wait, and equal ones are one (attack 57).
func testFatigue(w *world) {
	handles := []ledger.Store{w.s}
	if w.o.Shared {
		handles = append(handles, w.open())
	}
	var asked, joined, refused atomic.Int64
	ask := func(i int, r ledger.Request) {
		e, _, err := handles[i%len(handles)].Reserve(w.ctx, r)
		_, isJoin := errors.AsType[*ledger.JoinedError](err)
		switch {
		case isJoin:
			joined.Add(1)
		case err == nil && e.State == ledger.PendingApproval:
			asked.Add(1)
		case err == nil && e.State == ledger.Denied && e.Reasons[len(e.Reasons)-1].Code == ledger.CodeTooManyPending:
			refused.Add(1)
		default:
			w.Errorf("Reserve: %s, %v", e.State, err)
		}
	}
	w.together(1000, func(i int) { ask(i, w.fetch(asks(), path("/same"))) })
	if asked.Load() != 1 || joined.Load() != 999 {
		w.Errorf("of 1,000 equal requests %d asked and %d joined", asked.Load(), joined.Load())
	}
	asked.Store(0)
	w.together(1000, func(i int) { ask(i, w.fetch(asks(), path(fmt.Sprint("/other/", i)), usd(payment.USD(i+1)))) })
	if asked.Load() != 19 || refused.Load() != 981 {
		w.Errorf("of 1,000 further ones %d asked and %d were refused, want 19 and 981", asked.Load(), refused.Load())
	}
	if list, err := w.s.Approvals().List(w.ctx, "trader", true, w.now()); err != nil || len(list) != 20 {
		w.Errorf("%d wait, %v; want 20", len(list), err)
	}
}

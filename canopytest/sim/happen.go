package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// happen lets something happen around the tasks.
func (w *world) happen() {
	switch n := w.rng.IntN(1000); {
	case n < 420:
		w.call()
	case n < 640:
		w.wait()
	case n < 760:
		if i := w.rng.IntN(len(w.hosts) + 1); i < len(w.hosts) {
			w.hosts[i].strike()
		} else {
			w.facilitator.strike()
		}
	case n < 850:
		w.rule()
	case n < 870:
		w.trouble()
	case n < 880:
		w.cancel()
	case n < 940:
		w.stir()
	default:
		w.repair()
	}
}

// wait lets time go by in larger steps, up to what makes windows pass.
func (w *world) wait() {
	d := time.Duration(w.rng.IntN(30_000)) * time.Millisecond
	switch w.rng.IntN(40) {
	case 0:
		d = time.Duration(w.rng.IntN(1800)) * time.Second
	case 1, 2, 3, 4:
		d = time.Duration(w.rng.IntN(180)) * time.Second
	case 5, 6: // to the very edge of something
		d = w.edge()
	default:
		if !w.chance(4) && len(w.turns()) > 0 {
			d /= 15
		}
	}
	w.pass(d)
}

// edge is how long it is to an instant at which something ends: a validity, or a
// window that a payment counts in.
func (w *world) edge() time.Duration {
	r := w.oracle.recent(w.rng)
	if r == nil {
		return 0
	}
	at := r.validBefore
	if w.chance(2) {
		l := w.setup.caps[w.rng.IntN(len(w.setup.caps))]
		at = at.Add(l.span)
	}
	d := at.Sub(w.now) + time.Duration(w.rng.IntN(3)-1)*time.Second
	return min(max(d, 0), 2*time.Hour)
}

// want is something that an agent's program asks for.
type want struct {
	method, url string
	body        string
	key         string

	to     payment.Address // of a direct transfer, which has no URL
	amount payment.USD
	chain  *chain
	memo   string
}

// call has a program call its client: for something new, or for what it asked
// before, with the same key, another or none.
func (w *world) call() {
	p := w.procs[w.rng.IntN(len(w.procs))]
	if p.dead || p.pausedAt(w.now) || len(p.tasks) >= 3 || !p.booted && len(p.tasks) > 0 {
		return // calls wait for the first one's reconciliation, which hands nothing over
	}
	if w.chance(12) {
		w.spawn(p, "reconcile", w.reconcile)
		return
	}
	if w.chance(9) {
		if w.chance(3) {
			w.grant()
		} else {
			w.budget(p)
		}
		return
	}
	var q want
	if a := w.granted(p.agent); a != nil && w.chance(3) {
		q = a.want // the program asks again for what a person granted
	} else if n := len(p.wants); n > 0 && w.rng.IntN(100) < 45 {
		q = p.wants[w.rng.IntN(n)]
		switch w.rng.IntN(4) {
		case 0:
			q.key = ""
		case 1:
			q.key = w.newKey(q)
		}
	} else if w.chance(5) {
		q = w.transferWant()
	} else {
		q = w.want()
	}
	p.wants = append(p.wants, q)
	if len(p.wants) > 6 {
		p.wants = p.wants[1:]
	}
	if q.isTransfer() {
		if id := w.someTransfer(p.agent); id != "" && w.chance(2) {
			w.spawn(p, "resume", func(t *task) { w.resume(t, id) })
			return
		}
		b := w.purseFor(p)
		w.spawn(p, "pay", func(t *task) { w.pay(t, q, b) })
		return
	}
	var opts []canopy.Option
	if q.key != "" {
		opts = append(opts, canopy.WithKey(q.key))
	}
	switch w.rng.IntN(24) {
	case 0:
		opts = append(opts, canopy.WithApproval())
	case 1, 2:
		opts = append(opts, canopy.WithWait(time.Duration(w.rng.IntN(200))*time.Second))
	case 3:
		opts = append(opts, canopy.WithMaxPrice(20*payment.Cent))
	}
	b := w.purseFor(p)
	w.spawn(p, "fetch", func(t *task) { w.fetch(t, q, b, opts) })
}

// granted is the newest approval of an agent that is granted, unused and not
// long expired, or nil.
func (w *world) granted(agent string) *asking {
	list := w.oracle.grants
	for i := len(list) - 1; i >= 0 && i >= len(list)-8; i-- {
		if a := list[i]; a.agent == agent && !a.used && w.now.Sub(a.expires) < time.Minute {
			return a
		}
	}
	return nil
}

func (w *world) want() want {
	s := w.hosts[w.rng.IntN(len(w.hosts))]
	q := want{method: http.MethodGet, url: fmt.Sprintf("https://%s/goods/%d", s.host, w.rng.IntN(12))}
	if w.chance(8) && slices.ContainsFunc(s.speak, func(p protocol) bool { return p.Chain().tempo }) {
		q.url = fmt.Sprintf("https://%s/who/%d", s.host, w.rng.IntN(12))
	}
	if w.chance(4) {
		q.method, q.body = http.MethodPost, fmt.Sprintf(`{"q":%d}`, w.rng.IntN(3))
	}
	if w.chance(3) {
		q.key = w.newKey(q)
	}
	return q
}

// newKey is a key for q: one of a few of its own, and now and then one that
// stands for something else.
func (w *world) newKey(q want) string {
	if w.chance(20) {
		return fmt.Sprintf("key-%d", w.rng.IntN(5))
	}
	if q.isTransfer() {
		return q.newKey(w.rng.IntN(3))
	}
	return fmt.Sprintf("key-%s-%d", path.Base(q.url)+q.method+q.body, w.rng.IntN(4))
}

// fetch is what the program does: it asks, reads the answer and looks at what
// it cost.
func (w *world) fetch(t *task, q want, b *purse, opts []canopy.Option) {
	var body io.Reader
	if q.body != "" {
		body = bytes.NewReader([]byte(q.body))
	}
	req, err := http.NewRequest(q.method, q.url, body)
	if err != nil {
		w.breaks("a request that is none: %v", err)
		return
	}
	t.want = q
	w.note("%s: %s %s %s key %q, %s", t, t.p.agent, q.method, q.url, q.key, b)
	ctx := w.under(t, b)
	if ctx == nil {
		return
	}
	resp, err := t.p.client.Fetch(ctx, req, opts...)
	t.enter()
	if err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		r, paid := canopy.PaymentOf(resp)
		w.note("%s: answered %d, %s", t, resp.StatusCode, w.oracle.told(t, r, paid))
		return
	}
	w.note("%s: %s", t, w.oracle.refused(t, err))
}

// reconcile is a round of what a program runs on a timer.
func (w *world) reconcile(t *task) {
	r, err := t.p.client.Reconcile(t.ctx)
	t.enter()
	w.note("%s: reconciled: %d settled, %d released, %d cancelled, %d before an operator, %d wait, %d foreign, %d problems, %v",
		t, r.Settled, r.Released, r.Cancelled, r.Operator, r.Waiting, len(r.Foreign), len(r.Problems), err != nil)
}

// rule has a person answer what waits longest, or the agent itself try to.
func (w *world) rule() {
	now := w.now.Add(w.machine)
	for len(w.asked) > 0 && now.Sub(w.asked[0].expires) > time.Minute {
		w.asked = w.asked[1:]
	}
	if w.chance(4) {
		w.override()
	}
	if len(w.asked) == 0 {
		return
	}
	i := w.rng.IntN(len(w.asked))
	a := w.asked[i]
	if w.chance(4) {
		return // nobody looks at it
	}
	by, credential := w.person(a.agent)
	ruling := approvals.Ruling{Approve: !w.chance(4), By: by, Credential: credential.Reveal()}
	desk := approvals.NewDesk(w.book, "sim", func() time.Time { return w.now.Add(w.machine) })
	got, err := desk.Rule(context.Background(), a.id, ruling)
	w.note("%s rules on approval %d: %v, %v", by, a.n, ruling.Approve, err)
	if err == nil {
		w.oracle.ruled(a, ruling, got)
	}
	if err == nil && got.Status != ledger.ApprovalPending || errors.Is(err, ledger.ErrDecided) {
		w.asked = append(w.asked[:i:i], w.asked[i+1:]...)
	}
}

// trouble is what goes wrong with processes and clocks.
func (w *world) trouble() {
	p := w.procs[w.rng.IntN(len(w.procs))]
	switch n := w.rng.IntN(100); {
	case n < 40 && !p.dead:
		w.note("%s is killed with %d calls", p, len(p.tasks))
		w.kill(p)
		w.oracle.died(p)
	case n < 60 && !p.dead:
		p.paused = w.now.Add(time.Duration(w.rng.IntN(200)) * time.Second)
		w.note("%s stands still until %s", p, p.paused.Format("15:04:05"))
	case n < 75:
		agent := w.setup.agents[w.rng.IntN(len(w.setup.agents))]
		if w.chance(4) {
			agent = ""
		}
		w.note("an operator freezes %q", agent)
		w.frozen(agent, true)
		w.oracle.check(w.book.Freeze(context.Background(), agent, "operator", "sim"))
	default:
		w.setClock(p)
	}
}

// setClock sets the clock of a process, or of the store's machine: a little, as
// happens, or by days, which has to be seen.
func (w *world) setClock(p *proc) {
	d := time.Duration(w.rng.IntN(13)-6) * time.Second
	if w.chance(3) {
		d = time.Duration(w.rng.IntN(96)-48) * time.Hour
	}
	if w.setup.fleet {
		p.offset = d
		p.clockGen++
		w.note("the clock of %s is set %v off", p, p.offset)
		return
	}
	if d > time.Minute && len(w.oracle.all) == 0 {
		return // there is nothing yet to see a jump by
	}
	w.machine = d
	w.clockGen++
	for _, p := range w.procs {
		p.clockGen++
	}
	w.note("the machine's clock is set %v off", d)
}

// repair ends troubles: clocks are set right, processes started, agents let go.
func (w *world) repair() {
	if w.machine.Abs() > time.Minute {
		w.machine = 0
		w.clockGen++
		for _, p := range w.procs {
			p.clockGen++
		}
		w.note("the machine's clock is set right")
	}
	if w.skewed && w.chance(2) {
		w.skewed = false
		w.note("an operator acknowledges the clocks, which are right")
		w.oracle.check(w.book.Ack(context.Background(), "operator", "sim"))
	}
	for n, p := range w.procs {
		switch {
		case p.dead && w.chance(2), p.store.latched && w.chance(2):
			if !p.dead {
				w.kill(p)
				w.oracle.died(p)
			}
			w.oracle.check(w.start(n))
			w.note("%s starts", w.procs[n])
		case p.offset.Abs() > time.Minute:
			p.offset = 0
			p.clockGen++
			w.note("the clock of %s is set right", p)
		}
	}
	for _, r := range w.oracle.active {
		if r.state == ledger.NeedsOperator && w.chance(4) {
			w.note("an operator resolves %s", r)
			e, err := w.book.Advance(context.Background(), ledger.Change{
				ID: r.id, Version: r.version, To: ledger.ExpiredUnused, By: ledger.ByOperator, Now: w.now, Who: "operator", Assumed: true,
			})
			w.oracle.check(err)
			w.oracle.became(nil, r, e)
		}
	}
	w.resolve()
	for _, agent := range append([]string{""}, w.setup.agents...) {
		if since, ok := w.freezes[agent]; ok && w.now.Sub(since) > 10*time.Second && w.chance(2) {
			w.note("an operator lets %q go", agent)
			w.frozen(agent, false)
			w.oracle.check(w.book.Unfreeze(context.Background(), agent, "operator", "sim"))
		}
	}
}

// resolve has an operator tell, after some days, what became of payments that
// nobody can be asked about: of proofs, and of all on a chain without a node.
func (w *world) resolve() {
	o := w.oracle
	for len(o.unwatched) > 0 && w.now.Sub(o.unwatched[0].validBefore) > 60*time.Hour {
		r := o.unwatched[0]
		o.unwatched = o.unwatched[1:]
		to := ledger.ExpiredUnused
		switch {
		case r.chain.isFinal(r.tx) && r.tx.r == r && !r.tx.failed:
			to = ledger.Settled
		case r.state == ledger.Authorized || r.state == ledger.Settled || !r.chain.dead(r):
			continue
		}
		e, err := w.book.Advance(context.Background(), ledger.Change{
			ID: r.id, Version: r.version, To: to, By: ledger.ByOperator, Now: w.now.Add(w.machine), Who: "operator",
		})
		w.note("an operator resolves %s, which nobody can be asked about: %v", r, err)
		if err == nil {
			o.became(nil, r, e)
		}
	}
}

// frozen takes note of a freeze, or of its end.
func (w *world) frozen(agent string, on bool) {
	if !on {
		delete(w.freezes, agent)
	} else if _, ok := w.freezes[agent]; !ok {
		w.freezes[agent] = w.now
	}
}

// cancel has a caller lose patience.
func (w *world) cancel() {
	p := w.procs[w.rng.IntN(len(w.procs))]
	if n := len(p.tasks); n > 0 {
		t := p.tasks[w.rng.IntN(n)]
		w.note("%s is cancelled at %s", t, t.at)
		t.canceled = true
		t.stop()
	}
}

// stir is what a chain does by itself.
func (w *world) stir() {
	c := w.someChain()
	switch n := w.rng.IntN(20); {
	case n < 8:
		depth := 1 + w.rng.IntN(c.finality)
		w.note("%s takes %d blocks back", c, depth)
		c.reorg(depth, func() bool { return w.chance(3) })
	case n < 12:
		if c.halted.IsZero() {
			c.halted = w.now.Add(time.Duration(w.rng.IntN(600)) * time.Second)
			if w.chance(4) {
				c.halted = w.now.Add(time.Duration(w.rng.IntN(120)) * time.Minute)
			}
			w.note("%s halts until %s", c, c.halted.Format("15:04:05"))
		}
	case n < 18:
		c.turn()
	case n < 19:
		if w.chance(4) {
			c.poor = w.now.Add(time.Duration(w.rng.IntN(300)) * time.Second)
			w.note("the account on %s is short until %s", c, c.poor.Format("15:04:05"))
		}
	case !c.looked.IsZero() && w.chance(12):
		r := w.oracle.recent(w.rng)
		if w.chance(2) || r == nil || r.tx != nil || r.chain != c || r.slot.Kind == payment.SlotExpiring || r.slot.Kind == payment.SlotProof {
			c.outside(nil, false)
		} else {
			c.outside(r, w.chance(2))
		}
	default:
		c.mine(w.now)
	}
}

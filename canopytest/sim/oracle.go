package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// oracle knows what really happened: which commits took effect, what was
// signed, what left, what moved on the chain. It counts by rules of its own and
// shares nothing with the ledger but the entries that the ledger hands out.
type oracle struct {
	w         *world
	byID      map[payment.ID]*record
	bySlot    map[string]*record // the last one that had it
	bySig     map[string]*record // what the key really signed
	byTx      map[string]*record // transactions of Tempo, by hash
	byLane    map[laneOf]*record // the last one that had it
	all       []*record          // authorized, in order
	young     int                // those before it are of days ago
	active    []*record          // those that a cap may still have to count
	counted   []*record          // those that the ledger may still count
	unwatched []*record          // in order, those that no chain tells of and no operator has yet
	moves     int                // how much was moved, and not taken back
	orphans   []*record          // authorized by a process that died
	asked     map[payment.ApprovalID]*asking
	grants    []*asking // in order
	refusals  []refusal // the last ones
	keys      map[keyOf][]*record
	equal     map[printOf][]*record
	purses    map[payment.BudgetID]*purse
	open      []*purse         // the newest ones, those that have ended among them
	last      payment.BudgetID // that was made
}

type keyOf struct{ agent, key string }

// laneOf is a lane of the account on a chain.
type laneOf struct {
	chain *chain
	key   [32]byte
}

// printOf is what equal calls share, whatever the ledger says that they do.
type printOf struct {
	agent, method, url string
	body               [32]byte
	to                 payment.Address // of a direct transfer
	amount             payment.Units
	chain              payment.ChainID
	memo               string
}

func printOfTerms(agent string, t payment.Terms) printOf {
	if t.IsTransfer() {
		return printOf{agent: agent, to: t.Payee(), amount: t.Amount, chain: t.Asset.Chain, memo: t.Target}
	}
	return printOf{agent: agent, method: t.Method, url: t.Origin + t.Target, body: t.BodyDigest}
}

// record is an authorized payment.
type record struct {
	n           int
	id          payment.ID
	agent       string
	host        string
	keys        []string // of the call, and of the payment where that differs
	print       printOf
	terms       payment.Terms
	hash        payment.Hash
	cost        payment.USD
	chain       *chain
	slot        payment.Slot
	slotKey     string
	memo        string    // of a transfer, as its caller states it
	authorized  time.Time // by the ledger
	validBefore time.Time
	realm       string
	challenge   string          // that it is signed for now
	challenged  map[string]bool // that it was signed for before
	variants    int
	digests     [][32]byte // that were signed
	txHash      string     // of its transaction, as recorded
	watched     bool
	owner       *proc
	over        bool // an approver let it go over the caps of its table

	state      ledger.State
	version    int64
	delivered  bool
	outcome    int // the step of the commit that wrote it; 0 for none
	outcomeAt  time.Time
	outcomeGen int // how often the machine's clock was set then
	signed     bool
	signedAt   time.Time
	released   bool
	spent      time.Time   // as recorded
	counts     payment.USD // as recorded: what counts of the cost
	tx         *chainTx    // that moved it, in the chain as it stands
}

// paid is what r took from the account: its amount and the fee that the chain
// took, or the fee alone where it failed.
func (r *record) paid() payment.USD {
	fee, _ := r.terms.Asset.Value(r.tx.fee)
	if r.tx.failed {
		return fee
	}
	value, _ := r.terms.Asset.Value(r.terms.Amount)
	return value + fee
}

// asking is a payment put to a person.
type asking struct {
	n       int
	id      payment.ApprovalID
	payment payment.ID
	agent   string
	hash    payment.Hash
	expires time.Time // by the ledger
	granted bool
	used    bool
	over    bool     // an approver let it go over a cap
	yes     []string // who said so
	want    want
	keys    []string // of other calls that were told to wait for it
}

func newOracle(w *world) *oracle {
	return &oracle{
		w: w, byID: map[payment.ID]*record{}, bySlot: map[string]*record{}, bySig: map[string]*record{},
		byTx: map[string]*record{}, byLane: map[laneOf]*record{},
		asked: map[payment.ApprovalID]*asking{}, keys: map[keyOf][]*record{}, equal: map[printOf][]*record{},
		purses: map[payment.BudgetID]*purse{},
	}
}

func (r *record) String() string { return fmt.Sprintf("payment %d", r.n) }

func (o *oracle) nameOf(r *record) string {
	if r != nil {
		return r.String()
	}
	return "what no payment is"
}

// recent is one of the last authorized payments, or nil.
func (o *oracle) recent(rng *rand.Rand) *record {
	n := len(o.all)
	if n == 0 {
		return nil
	}
	return o.all[n-1-rng.IntN(min(n, 20))]
}

// check fails the run on an error that the simulator itself met.
func (o *oracle) check(err error) {
	if err != nil {
		o.w.breaks("the simulator failed: %v", err)
	}
}

// reserved sees a Reserve at the instant of its commit.
func (o *oracle) reserved(t *task, q *ledger.Request, e ledger.Entry, err error) {
	w := o.w
	o.recover(err)
	if err != nil {
		var joined *ledger.JoinedError
		if errors.As(err, &joined) {
			if a := o.asked[e.ApprovalID]; a != nil && q.Key != "" && joined.Why == ledger.JoinEqual {
				a.keys = append(a.keys, q.Key)
			}
			w.note("%s: reserve: answered by %s (%v)", t, o.name(e.ID), joined.Why)
			return
		}
		w.skewed = w.skewed || errors.Is(err, ledger.ErrClockSkew)
		w.note("%s: reserve: %v", t, firstWords(err))
		return
	}
	w.note("%s: reserve: %s of %s at %s", t, e.State, e.Cost, e.Terms.Origin)
	switch e.State {
	case ledger.PendingApproval:
		a := &asking{n: len(o.asked) + 1, id: e.ApprovalID, payment: e.ID, agent: e.Agent, hash: e.TermsHash, expires: e.CreatedAt.Add(w.setup.ttl), want: t.want}
		o.asked[a.id] = a
		w.asked = append(w.asked, a)
	case ledger.Authorized:
		o.authorized(t, q, e)
	case ledger.Denied:
		o.refusedBudget(q, e)
		o.denied(e)
		o.refuse(e, t.want)
	}
}

func (o *oracle) name(id payment.ID) string {
	if r := o.byID[id]; r != nil {
		return r.String()
	}
	return "a payment that moved nothing"
}

// firstWords is an error without the IDs that it may name.
func firstWords(err error) string {
	for _, known := range []error{ledger.ErrClockSkew, ledger.ErrKeyConflict, ledger.ErrReadOnly, ledger.ErrStale, ledger.ErrIllegal, errDisk, errReset, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "another error"
}

// authorized judges a commit that lets something be signed.
func (o *oracle) authorized(t *task, q *ledger.Request, e ledger.Entry) {
	w := o.w
	if r := o.byID[e.ID]; r != nil {
		w.breaks("I4: %s is authorized a second time", r)
		return
	}
	r := &record{
		n: len(o.all) + 1, id: e.ID, agent: e.Agent, host: e.Host, print: printOfTerms(e.Agent, e.Terms),
		terms: e.Terms, hash: e.TermsHash, cost: e.Cost, counts: e.Cost, slot: e.Slot, slotKey: e.Slot.String(),
		chain: w.chain(e.Terms.Asset.Chain), realm: e.Realm, challenge: e.ChallengeID, challenged: map[string]bool{},
		authorized: e.AuthorizedAt, validBefore: e.ValidBefore, watched: e.Watched, owner: t.p,
		state: e.State, version: e.Version,
	}
	r.over = e.ApprovalID != "" && o.asked[e.ApprovalID] != nil && o.asked[e.ApprovalID].over
	if a := o.asked[e.ApprovalID]; e.Terms.IsTransfer() && a != nil && !t.want.isTransfer() {
		r.memo = a.want.memo // it is resumed
	} else if e.Terms.IsTransfer() {
		r.memo = t.want.memo
	}
	for _, key := range []string{e.Key, t.want.key} {
		if key != "" && !slices.Contains(r.keys, key) {
			r.keys = append(r.keys, key)
		}
	}
	o.judge(t, q, e, r)
	o.place(r)
	o.byID[r.id] = r
	o.all = append(o.all, r)
	if !r.watched {
		o.unwatched = append(o.unwatched, r)
	}
	o.active, o.counted = append(o.active, r), append(o.counted, r)
	for _, key := range r.keys {
		o.keys[keyOf{r.agent, key}] = append(o.keys[keyOf{r.agent, key}], r)
	}
	o.equal[r.print] = append(o.equal[r.print], r)
	o.budgets(q, r)
	o.caps(r)
}

// judge holds a new authorization against what the world knows.
func (o *oracle) judge(t *task, q *ledger.Request, e ledger.Entry, r *record) {
	w := o.w
	amount, _ := e.Terms.Asset.Value(e.Terms.Amount)
	if r.slot.Kind == payment.SlotEVM {
		amount += w.fee(e.Host)
	} else {
		amount += e.Terms.FeeBound // what is signed is held to it
	}
	validity := r.validBefore.Sub(r.authorized)
	own := w.now.Add(w.machine)
	frozen := w.isFrozen(r.agent)
	switch {
	case r.cost < amount:
		w.breaks("I1: %s costs %s and is counted as %s", r, amount, r.cost)
	case validity > w.setup.valid || validity > 600*time.Second || validity > e.Terms.Validity:
		w.breaks("I10: %s is valid for %v", r, validity)
	case e.Terms.Hash() != e.TermsHash || q.Payment.Terms.Hash() != e.TermsHash:
		w.breaks("I6: the terms of %s are not those that were judged", r)
	case !r.fits():
		w.breaks("I4: the slot of %s is not one of this payment", r)
	case r.slot.Kind == payment.SlotExpiring && validity > 25*time.Second:
		w.breaks("I10: %s is valid for %v on the expiring nonce", r, validity)
	case frozen:
		w.breaks("I11: %s is authorized while %s is frozen", r, r.agent)
	case q.Now.Sub(w.now) > 90*time.Second || own.Sub(w.now) > 90*time.Second:
		// A clock that is behind, and not behind what the ledger has seen, frees nothing.
		w.breaks("F20: %s is authorized by a clock that is %v ahead", r, max(q.Now.Sub(w.now), own.Sub(w.now)))
	}
	o.approval(e, r)
	o.once(t, q, e, r)
}

// fits reports whether r's slot is one of its terms.
func (r *record) fits() bool {
	s := r.slot
	mine := s.From == payer && s.Chain == r.terms.Asset.Chain && s.NonceID != [32]byte{}
	switch s.Kind {
	case payment.SlotEVM:
		return mine && !r.chain.tempo && s.Token == r.terms.Asset.Address
	case payment.SlotLane:
		return mine && r.chain.tempo && !r.terms.Amount.IsZero()
	case payment.SlotExpiring:
		return mine && r.chain.tempo && r.terms.FeeBound == 0
	case payment.SlotProof:
		return s.Payment == r.id && r.terms.Amount.IsZero() && r.cost == 0
	}
	return false
}

// place is I4, at the commit that authorized r: one live payment a slot and a
// lane, in a nonce that is the next one, and no more lanes than the pool has.
func (o *oracle) place(r *record) {
	w := o.w
	if other := o.bySlot[r.slotKey]; other != nil && !(r.slot.Kind == payment.SlotLane && other.state == ledger.ExpiredUnused) {
		w.breaks("I4: %s has the slot of %s", r, other)
	}
	o.bySlot[r.slotKey] = r
	if r.slot.Kind != payment.SlotLane {
		return
	}
	lane := laneOf{r.chain, r.slot.NonceID}
	if other := o.byLane[lane]; other != nil && other.state.Live() {
		w.breaks("I4: %s has the lane of %s, which is %s", r, other, other.state)
	}
	o.byLane[lane] = r
	if n := o.busy(r.chain); r.watched && n >= w.setup.lanes {
		w.breaks("I4: %s has a lane beside %d others, of %d", r, n, w.setup.lanes)
	}
	next := r.chain.laneAt(r.slot.NonceID, r.chain.final())
	elsewhere := slices.ContainsFunc(r.chain.lanes[r.slot.NonceID], (*chainTx).outside)
	if r.slot.Nonce != next && !elsewhere {
		w.breaks("I12: %s has nonce %d of a lane whose next one is %d", r, r.slot.Nonce, next)
	}
}

// busy is how many lanes of the pool have a payment that the ledger takes for
// live.
func (o *oracle) busy(c *chain) (n int) {
	for _, r := range o.active {
		if r.chain == c && r.slot.Kind == payment.SlotLane && r.watched && r.state.Live() {
			n++
		}
	}
	return n
}

func (w *world) isFrozen(agent string) bool {
	_, all := w.freezes[""]
	_, own := w.freezes[agent]
	return all || own
}

// approval is I7: an approval is used once, by the payment, the agent and the
// terms it names, before it expires, and given by somebody else; and what needs
// one has one.
func (o *oracle) approval(e ledger.Entry, r *record) {
	w := o.w
	above, asks := w.setup.asks[tableOf(r.agent)]
	if e.ApprovalID == "" {
		if asks && r.cost > above {
			w.breaks("I7: %s of %s is above %s and nobody was asked", r, r.cost, above)
		}
		return
	}
	a := o.asked[e.ApprovalID]
	switch {
	case a == nil:
		w.breaks("I7: %s uses an approval that was never asked for", r)
	case !a.granted:
		w.breaks("I7: %s uses approval %d, which nobody granted", r, a.n)
	case a.used:
		w.breaks("I7: %s uses approval %d a second time", r, a.n)
	case a.payment != r.id || a.agent != r.agent || a.hash != r.hash:
		w.breaks("I7: %s uses approval %d, which is another payment's, agent's or terms'", r, a.n)
	case !r.authorized.Before(a.expires):
		w.breaks("I7: %s uses approval %d after it expired", r, a.n)
	}
	if a != nil {
		a.used = true
	}
}

// once is "pay once": a key that stands for a payment, and the guard of equal
// calls.
func (o *oracle) once(t *task, q *ledger.Request, e ledger.Entry, r *record) {
	w := o.w
	for _, key := range r.keys {
		for _, other := range o.keys[keyOf{r.agent, key}] {
			if !other.released {
				w.breaks("I5: %s has the key of %s, which is not released", r, other)
			}
		}
	}
	if a := o.asked[e.ApprovalID]; a != nil && q.Key != "" && (a.want.key == q.Key || slices.Contains(a.keys, q.Key)) {
		return // the key is that of a payment which a person approved, and not a new one
	}
	transfer := r.terms.IsTransfer()
	if transfer && e.ApprovalID != "" {
		return // a person saw it
	}
	for _, other := range o.equal[r.print] {
		if transfer && q.Key == "" && !other.released && r.authorized.Sub(other.authorized) <= w.setup.guard && r.authorized.After(other.authorized) {
			w.breaks("F11: %s is made %v after the equal %s, and has no key", r, r.authorized.Sub(other.authorized), other)
		}
		if transfer && other.state != ledger.InDoubt {
			continue
		}
		if other.delivered || other.released || other.outcome == 0 || other.outcome >= t.began ||
			other.outcomeGen != w.clockGen || t.clockGen != t.p.clockGen {
			continue
		}
		safe := other.outcomeAt.Add(w.setup.guard)
		if other.validBefore.After(safe) {
			safe = other.validBefore
		}
		if r.authorized.Before(safe) {
			w.breaks("F11: %s is made while the equal %s is %s and was not delivered, %v before it is safe", r, other, other.state, safe.Sub(r.authorized))
		}
	}
}

// died takes note that the payments of p have nobody left.
func (o *oracle) died(p *proc) {
	for _, r := range o.active {
		if r.owner == p && r.state == ledger.Authorized {
			o.orphans = append(o.orphans, r)
		}
	}
}

// recover takes note of what a Reserve found ownerless.
func (o *oracle) recover(err error) {
	if len(o.orphans) == 0 || errors.Is(err, ledger.ErrClockSkew) {
		return
	}
	kept := o.orphans[:0]
	for _, r := range o.orphans {
		e, err := o.w.book.Entry(context.Background(), r.id)
		o.check(err)
		if e.State == ledger.Authorized {
			kept = append(kept, r)
		} else if e.Version > r.version { // else somebody saw to it in the open
			o.became(nil, r, e)
		}
	}
	o.orphans = kept
}

// told is what a call that got an answer says of its payment.
func (o *oracle) told(t *task, r canopy.Result, paid bool) string {
	if !paid {
		if len(t.signed) > 0 {
			o.w.breaks("I11: the answer to %s hides that something was signed", t)
		}
		return "not paid for"
	}
	return fmt.Sprintf("%s is %s", o.name(r.PaymentID), r.State)
}

// refused is what an error of a call says, and whether it may say so.
func (o *oracle) refused(t *task, err error) string {
	var pending *canopy.PendingError
	var denied *canopy.DeniedError
	var doubt *canopy.InDoubtError
	var paid *canopy.PaidError
	var flight *canopy.InFlightError
	switch {
	case errors.As(err, &pending), errors.As(err, &denied):
		if len(t.signed) > 0 {
			o.w.breaks("I11: %s says that nothing was signed, and something was", t)
		}
		if denied != nil {
			return "denied: " + denied.Result.Code
		}
		return "pending"
	case errors.As(err, &doubt):
		return fmt.Sprintf("%s in doubt: %s", o.name(doubt.Result.PaymentID), doubt.Phase)
	case errors.As(err, &paid):
		return fmt.Sprintf("%s paid, not delivered", o.name(paid.Result.PaymentID))
	case errors.As(err, &flight):
		return fmt.Sprintf("%s in flight", o.name(flight.Result.PaymentID))
	}
	if len(t.signed) > 0 && t.signed[len(t.signed)-1].state == ledger.Authorized {
		o.w.breaks("I11: %s signed, and tells neither doubt nor payment: %v", t, err)
	}
	return "failed: " + firstWords(err)
}

// alarm takes note that every agent is frozen by what a chain shows.
func (o *oracle) alarm() {
	for _, c := range o.w.chains {
		for _, tx := range c.log {
			tx.told = tx.told || tx.block <= c.final()
		}
	}
}

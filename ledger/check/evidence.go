package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// evidence is what is known from outside, by slot.
type evidence struct {
	signed map[string]time.Time   // slot to its first signature
	more   map[string][]Signature // to all of them, where the slot is a nonce of a lane, which several may have had
	uses   map[string][]payment.Settlement
	lanes  map[string][]*ledger.Entry // those that had such a slot, if anything is known of it
	moved  []move
}

// move is money that moved for a payment.
type move struct {
	id    payment.ID
	at    time.Time // by the chain, and not before it was authorized
	facts policy.Facts
	cost  payment.USD
}

func newEvidence(o Options) *evidence {
	v := &evidence{
		signed: map[string]time.Time{}, more: map[string][]Signature{},
		uses: map[string][]payment.Settlement{}, lanes: map[string][]*ledger.Entry{},
	}
	for _, s := range o.Signatures {
		if strings.HasPrefix(s.Slot, "lane/") {
			v.more[s.Slot] = append(v.more[s.Slot], s)
		}
		if at, ok := v.signed[s.Slot]; !ok || s.At.Before(at) {
			v.signed[s.Slot] = s.At
		}
	}
	for _, s := range o.Uses {
		v.uses[s.Slot.String()] = append(v.uses[s.Slot.String()], s)
	}
	return v
}

// payment holds an authorized payment against it. What had a nonce of a lane is
// put off until all that had it are known: they come in the order in which they
// were made, and one that waited for a person had it later than some made since.
func (v *evidence) payment(c *checking, e *ledger.Entry) {
	slot := e.Slot.String()
	at, signed := v.signed[slot]
	if e.Slot.Kind == payment.SlotLane && (signed || len(v.uses[slot]) > 0) {
		v.lanes[slot] = append(v.lanes[slot], e)
		return
	}
	if signed && at.Before(e.AuthorizedAt.Add(-ledger.MaxSkew)) {
		c.found(e, "I3: it was signed at %s, before it was committed", stamp(at))
	}
	delete(v.signed, slot)
	v.used(c, e, slot)
}

// lane holds those that had a nonce of a lane against what is known of it, in the
// order in which they had it. A signature is that of the one who had it then, or
// where its end is known and not after that of the one before, of that one: a
// process whose clock was set back signs what is dead, and moves nothing by it.
func (v *evidence) lane(c *checking, slot string) {
	had := v.lanes[slot]
	slices.SortStableFunc(had, func(a, b *ledger.Entry) int { return a.AuthorizedAt.Compare(b.AuthorizedAt) })
	for _, s := range v.more[slot] {
		at := s.At
		next := slices.IndexFunc(had, func(e *ledger.Entry) bool { return at.Before(e.AuthorizedAt.Add(-ledger.MaxSkew)) })
		late := next > 0 && at.After(had[next-1].ValidBefore.Add(ledger.MaxSkew))
		if late && !s.Until.IsZero() && !s.Until.After(had[next-1].ValidBefore) {
			continue
		}
		if next == 0 || late {
			c.found(had[next], "I3: it was signed at %s, before it was committed", stamp(at))
		}
	}
	delete(v.signed, slot)
	for _, e := range had {
		v.used(c, e, slot)
	}
}

// used holds an authorized payment against the uses of its slot.
func (v *evidence) used(c *checking, e *ledger.Entry, slot string) {
	for n := range e.Carries {
		key := payment.CarryKey(e.ID, n+1)
		if at, ok := v.signed[key]; ok && at.Before(e.AuthorizedAt.Add(-ledger.MaxSkew)) {
			c.found(e, "I3: its transaction %d was signed at %s, before it was committed", n+1, stamp(at))
		}
		delete(v.signed, key)
	}
	uses := v.uses[slot]
	if again(e) && !slices.ContainsFunc(uses, func(s payment.Settlement) bool { return s.Time.Before(e.ValidBefore) && !s.Time.IsZero() }) {
		uses = nil // what came after its end is a later payment's
	} else {
		delete(v.uses, slot)
	}
	if len(uses) == 0 {
		if len(c.o.Uses) > 0 && e.State == ledger.Settled && !e.Assumed && e.Slot.Kind != payment.SlotProof {
			c.found(e, "I8: it is settled, and the chain shows nothing of it")
		}
		return
	}
	s := uses[0]
	switch {
	case len(uses) > 1:
		c.found(e, "I5: it moved %d times", len(uses))
	case s.Canceled || s.Failed:
		if e.State == ledger.Settled {
			c.found(e, "I8: it is settled, and the chain shows its cancellation or failure")
		}
		if e.State == ledger.Cancelled && e.Spent > 0 {
			v.moved = append(v.moved, move{e.ID, spentAt(e, s), e.Facts(), e.Spent})
		}
		return
	case !s.CarriesOut(e.Terms):
		if e.State != ledger.NeedsOperator && !e.Assumed {
			c.found(e, "I6: %s moved something else than its terms", s.TxHash)
		}
		return
	case e.State.Freed():
		c.found(e, "I8: it is %s, and %s moved its money", e.State, s.TxHash)
	}
	spent := e.Cost
	if e.State == ledger.Settled {
		spent = e.Spent
	}
	v.moved = append(v.moved, move{e.ID, spentAt(e, s), e.Facts(), spent})
}

// spentAt is when s took its money from the account.
func spentAt(e *ledger.Entry, s payment.Settlement) time.Time {
	if s.Time.IsZero() || s.Time.Before(e.AuthorizedAt) {
		return e.AuthorizedAt
	}
	return s.Time
}

// finish reports what no payment explains, and I2.
func (v *evidence) finish(c *checking) {
	for _, slot := range sorted(v.lanes) {
		v.lane(c, slot)
	}
	for _, slot := range sorted(v.signed) {
		c.add(fmt.Sprintf("I3: something was signed for %s, which was never committed", slot))
	}
	for _, slot := range sorted(v.uses) {
		c.add(fmt.Sprintf("I13: %s used %s, which is no payment's", v.uses[slot][0].TxHash, slot))
	}
	if c.caps != nil {
		v.windows(c)
	}
}

func sorted[T any](m map[string]T) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// windows is I2: in any window of the length that a cap names, by the time at
// which money moved, no more of it moved than the cap lets.
func (v *evidence) windows(c *checking) {
	slices.SortFunc(v.moved, func(a, b move) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
	all, within := newCaps(c, c.o.Policy), newCaps(c, c.o.Policy) // without what went over its caps
	for _, m := range v.moved {
		p := &counted{id: m.id, at: m.at, facts: m.facts, cost: m.cost, kept: m.cost, spent: m.at}
		all.count(p)
		over := c.over[m.id]
		if !over {
			within.count(p)
		}
		for _, l := range c.o.Policy.Limits(m.facts.Agent) {
			k := all
			if yields(l.Scope.Kind) {
				k = within
			}
			n := k.sums[ledger.NewCounterKey(l.Scope, l.Window)]
			if n != nil && !l.Shadow && !(over && k == within) && (l.Counting && n.count > l.Count || !l.Counting && n.usd > l.USD) {
				c.add(fmt.Sprintf("%s: I2: with it %s moved in %s by the chain's time, over %s", m.id, n.usd, l.Scope.Key(), l))
			}
		}
	}
}

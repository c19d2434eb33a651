// Package check holds a whole ledger against its invariants: caps counted again
// from the payments (I1), slots and keys that no two payments share (I4, I5),
// terms that have the hash they were approved by (I6), approvals used once, by
// the payment that they name, before they expired and by somebody else (I7),
// parts of a piece of work that spend no more than was set aside for it (I15),
// moves that the table allows, in a chain of events that tells what the record
// says (I8, I9), and bounded validity (I10). With evidence from outside, what a
// signer signed and what a chain shows, it also checks that nothing was signed
// that was not committed before (I3), that what moved stays under the caps by
// the chain's own time (I2), and that each use of the key is one payment's (I5,
// I13). With what is known of before it checks that nothing was lost or changed
// (I9), with how far the chains were asked that no hold was forgotten (I12), and
// that no record holds what must stay secret (I16).
//
// It reads any [ledger.Store] once, oldest payment first, in memory that grows
// by some tens of bytes a payment. What a store knows of its own files and
// indexes is for its own [ledger.Verifier].
package check

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Options say what a ledger is held against. The zero value checks what can be
// seen in the ledger itself.
type Options struct {
	// Policy is the document whose caps are counted again. Payments that
	// another document decided count in them and are not judged by them. Nil
	// leaves caps out.
	Policy *policy.Policy

	// Signatures are what the signer's own log has, if there is one.
	Signatures []Signature

	// Uses are all uses of the account that a chain shows, if it was asked.
	Uses []payment.Settlement

	// GasPerDay is the most that the transactions of one account can cost in 24
	// hours, by chain, in the smallest unit of its coin. What is left out is not
	// counted.
	GasPerDay map[payment.ChainID]payment.Units

	// Past is the same ledger as an earlier Run with the same Past saw it, and
	// is brought up to date: for tests, since it holds something of each payment.
	Past *Past

	// Final is the time of a final block up to which all holds were asked about
	// since. Zero is none.
	Final time.Time

	// Secrets are byte strings that no record may hold, as they are or in
	// hexadecimal digits: keys and signatures.
	Secrets [][]byte

	// NoEvents leaves out the chains of events, for a store that just verified
	// them itself, but for the payments that ended without money.
	NoEvents bool
}

// Signature is one signature that left a signer, at an instant by a clock that
// may differ from the ledger's as clocks may.
type Signature struct {
	Slot string // payment.Slot.String of what was signed for
	At   time.Time

	// Until is when what was signed ends, and tells which of the payments that
	// had a lane's nonce it is of; zero where it is not known.
	Until time.Time
}

// maxValidity bounds every authorization, whatever a policy says.
const maxValidity = 600 * time.Second

// Run reads all of s and reports what does not hold. The error is that of
// reading.
func Run(ctx context.Context, s ledger.Store, o Options) (ledger.Report, error) {
	c := &checking{store: s, o: o, evidence: newEvidence(o)}
	if err := c.readBudgets(ctx); err != nil {
		return c.report, fmt.Errorf("check: reading the ledger: %w", err)
	}
	if o.Policy != nil || len(c.budgets) > 0 {
		c.caps = newCaps(c, o.Policy)
	}
	err := histories(ctx, s, c.wants, c.alone, func(h *history) error {
		c.report.Payments++
		c.report.Events += int64(len(h.events))
		for _, text := range h.problems {
			c.add(text)
		}
		return c.payment(ctx, h.entry, h.events)
	})
	if err != nil {
		return c.report, fmt.Errorf("check: reading the ledger: %w", err)
	}
	c.slots.shared(func(n uint32) { c.problem(n, "I4: its slot is that of an earlier payment") })
	c.keys.shared(func(n uint32) {
		c.problem(n, "I5: its key is that of an earlier payment, and neither ended without money")
	})
	c.approvals.shared(func(n uint32) { c.problem(n, "I7: its approval was used by an earlier payment") })
	c.caps.finish()
	c.budgets.finish(c)
	c.evidence.finish(c)
	c.gas.finish(c)
	c.o.Past.finish(c)
	if err := c.name(ctx); err != nil {
		return c.report, fmt.Errorf("check: reading the ledger: %w", err)
	}
	return c.report, nil
}

// checking is one Run.
type checking struct {
	store    ledger.Store
	o        Options
	report   ledger.Report
	unnamed  map[uint32][]string // problems of payments by their place, to be named
	evidence *evidence
	caps     *caps
	budgets  budgets
	gas      gas
	over     map[payment.ID]bool // what an approver let go over the caps of its table

	slots, keys, approvals marks
}

// mostProblems are listed.
const mostProblems = 100

func (c *checking) add(text string) {
	if len(c.report.Problems) < mostProblems {
		c.report.Problems = append(c.report.Problems, text)
	}
}

// found adds a problem of e.
func (c *checking) found(e *ledger.Entry, format string, args ...any) {
	c.add(fmt.Sprintf("%s: "+format, append([]any{e.ID}, args...)...))
}

// problem adds one of the payment in place n, whose ID is looked up later.
func (c *checking) problem(n uint32, text string) {
	if c.unnamed == nil {
		c.unnamed = map[uint32][]string{}
	}
	if len(c.unnamed) < mostProblems {
		c.unnamed[n] = append(c.unnamed[n], text)
	}
}

// name finds the payments that problem was called for.
func (c *checking) name(ctx context.Context) error {
	n := uint32(0)
	if len(c.unnamed) == 0 {
		return nil
	}
	for e, err := range c.store.Entries(ctx, ledger.Query{Oldest: true}) {
		if err != nil {
			return err
		}
		n++
		for _, text := range c.unnamed[n] {
			c.found(&e, "%s", text)
		}
	}
	return nil
}

// wants tells whether a payment's events are looked at.
func (c *checking) wants(e *ledger.Entry) bool { return !c.o.NoEvents || e.State.Freed() }

// alone checks what a payment tells by itself. It is called for several at once.
func (c *checking) alone(h *history) error {
	found := func(format string, args ...any) {
		h.problems = append(h.problems, fmt.Sprintf("%s: "+format, append([]any{h.entry.ID}, args...)...))
	}
	if !c.o.NoEvents {
		if err := ledger.VerifyPayment(h.entry, h.events); err != nil {
			h.problems = append(h.problems, fmt.Sprintf("I9: %v", err))
		}
	}
	terms(h.entry, found)
	c.secrets(h, found)
	if e := h.entry; e.Watched && e.State.Live() && e.State != ledger.NeedsOperator && !e.ValidBefore.After(c.o.Final) {
		found("I12: it is %s, its validity ended at %s, and the chains were asked up to %s", e.State, stamp(e.ValidBefore), stamp(c.o.Final))
	}
	switch e := h.entry; {
	case !e.AuthorizedAt.IsZero():
		authorized(e, found)
	case !e.Slot.IsZero() || !e.ValidBefore.IsZero() || e.State.Live():
		found("I3: it has a slot, a validity or a hold, and was never authorized")
	}
	return nil
}

// payment checks one payment against those before it.
func (c *checking) payment(ctx context.Context, e *ledger.Entry, events []ledger.Event) error {
	n := uint32(c.report.Payments)
	c.o.Past.payment(c, e, events)
	if e.Key != "" && !e.State.Freed() {
		c.keys.add(n, e.Agent, e.Key)
	}
	if e.AuthorizedAt.IsZero() {
		return nil
	}
	if !again(e) {
		c.slots.add(n, e.Slot.String(), "")
	}
	if e.ApprovalID != "" {
		c.approvals.add(n, string(e.ApprovalID), "")
		if err := c.approval(ctx, e); err != nil {
			return err
		}
	}
	c.evidence.payment(c, e)
	c.gas.payment(c, e)
	if c.caps != nil {
		c.caps.payment(e, events)
	}
	return nil
}

// terms is I6.
func terms(e *ledger.Entry, found func(string, ...any)) {
	switch {
	case e.Terms.Hash() != e.TermsHash:
		found("I6: its terms do not have the hash that was recorded")
	case e.Cost < e.Terms.Cost():
		found("I6: it costs %s and is counted as %s", e.Terms.Cost(), e.Cost)
	case e.Spent < leastSpent(e) || e.Spent > mostSpent(e):
		found("I6: it is %s and counts for %s, which is not %s to %s", e.State, e.Spent, leastSpent(e), mostSpent(e))
	case e.State != ledger.Denied && e.Terms.Check(e.Payer) != nil:
		found("I6: %v", e.Terms.Check(e.Payer))
	}
}

// leastSpent and mostSpent bound what counts of e.
func leastSpent(e *ledger.Entry) payment.USD {
	switch {
	case e.AuthorizedAt.IsZero() || e.State.Freed():
		return 0
	case e.State == ledger.Settled:
		return e.Terms.Cost() - e.Terms.FeeBound
	}
	return e.Cost
}

func mostSpent(e *ledger.Entry) payment.USD {
	switch {
	case e.State == ledger.Cancelled:
		return e.Terms.FeeBound
	case e.AuthorizedAt.IsZero() || e.State.Freed():
		return 0
	}
	return e.Cost
}

// authorized is I10, and what an authorized payment has to have.
func authorized(e *ledger.Entry, found func(string, ...any)) {
	// A variant may be permitted in the last instant of the one before: its
	// events tell how long it was valid itself.
	valid := e.ValidBefore.Sub(e.AuthorizedAt) / time.Duration(1+max(e.Variants, 0))
	switch {
	case e.Slot.IsZero():
		found("I3: it is authorized and has no slot")
	case valid <= 0 || valid > maxValidity || e.Terms.Validity > 0 && valid > e.Terms.Validity:
		found("I10: it is valid for %v, and its terms allow %v", valid, min(maxValidity, e.Terms.Validity))
	case e.SignBefore.After(e.ValidBefore) || e.Variants == 0 && !e.SignBefore.Equal(e.ValidBefore):
		found("I10: it is signed until %s, and held until %s", stamp(e.SignBefore), stamp(e.ValidBefore))
	case len(e.Carries) > ledger.MaxCarries || len(e.Carries) > 0 && e.Slot.Kind != payment.SlotEVM || costs(e).Cmp(e.Gas) > 0:
		found("I1: its %d transactions can cost %s, and its gas is %s", len(e.Carries), costs(e).Coin(), e.Gas.Coin())
	case e.Variants < 0 || e.Variants > ledger.MaxVariants || e.Variants > 0 && e.Slot.Kind != payment.SlotLane:
		found("I5: it was permitted for %d further challenges", e.Variants)
	case e.State == ledger.Settled && e.SpentAt.Before(e.AuthorizedAt) && !e.SpentAt.IsZero():
		found("I8: it was spent before it was authorized")
	}
}

// costs is what the transactions of e can cost; the most there is where that
// cannot be counted.
func costs(e *ledger.Entry) payment.Units {
	sum, ok := payment.CarryCost(e.Carries)
	if !ok {
		return payment.UnitsFromBytes([32]byte(bytes.Repeat([]byte{0xff}, 32)))
	}
	return sum
}

// again reports whether a later payment may have e's slot: a lane's nonce that
// the chain showed to be unused.
func again(e *ledger.Entry) bool {
	return e.Slot.Kind == payment.SlotLane && e.State == ledger.ExpiredUnused
}

// approval is I7, and takes note of what an approver let go over a cap.
func (c *checking) approval(ctx context.Context, e *ledger.Entry) error {
	a, err := c.store.Approvals().Approval(ctx, e.ApprovalID, e.AuthorizedAt)
	if err != nil {
		return err
	}
	switch {
	case a.Status != ledger.ApprovalGranted || a.UsedAt.IsZero():
		c.found(e, "I7: it uses an approval that is %s", a.Status)
	case a.Payment != e.ID || a.Agent != e.Agent || a.TermsHash != e.TermsHash:
		c.found(e, "I7: its approval is another payment's, agent's or terms'")
	case !a.UsedAt.Equal(e.AuthorizedAt):
		c.found(e, "I7: its approval was used at %s, and it was authorized at %s", stamp(a.UsedAt), stamp(e.AuthorizedAt))
	case !a.UsedAt.Before(a.ExpiresAt):
		c.found(e, "I7: its approval was used after it expired")
	case a.By == "" || a.By == a.Agent || a.By == payment.AgentID(a.Agent):
		c.found(e, "I7: its approval is the requester's own")
	case people(&a) < a.Quorum:
		c.found(e, "I7: %d people of those who may said yes, and it takes %d", people(&a), a.Quorum)
	case a.Override && len(a.Approvers) == 0:
		c.found(e, "I7: nobody was named who could let it go over a cap")
	}
	if a.Override && len(a.Approvers) > 0 {
		if c.over == nil {
			c.over = map[payment.ID]bool{}
		}
		c.over[e.ID] = true
	}
	return nil
}

// people is how many distinct people who may said yes to a.
func people(a *ledger.Approval) int {
	seen := map[string]bool{}
	for _, v := range a.Votes {
		if v.Approve && (len(a.Approvers) == 0 || a.Names(v.By)) {
			seen[ledger.FoldApprover(v.By)] = true
		}
	}
	return len(seen)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

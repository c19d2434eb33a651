// Package check holds a whole ledger against its invariants: caps counted again
// from the payments (I1), slots and keys that no two payments share (I4, I5),
// terms that have the hash they were approved by (I6), approvals used once, by
// the payment that they name, before they expired and by somebody else (I7),
// moves that the table allows, in a chain of events that tells what the record
// says (I8, I9), and bounded validity (I10). With evidence from outside, what a
// signer signed and what a chain shows, it also checks that nothing was signed
// that was not committed before (I3), that what moved stays under the caps by
// the chain's own time (I2), and that each use of the key is one payment's (I5,
// I13).
//
// It reads any [ledger.Store] once, oldest payment first, in memory that grows
// by some tens of bytes a payment. What a store knows of its own files and
// indexes is for its own [ledger.Verifier].
package check

import (
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

	// NoEvents leaves out the chains of events, for a store that just verified
	// them itself, but for the payments that ended without money.
	NoEvents bool
}

// Signature is one signature that left a signer, at an instant by a clock that
// may differ from the ledger's as clocks may.
type Signature struct {
	Slot string // payment.Slot.String of what was signed for
	At   time.Time
}

// maxValidity bounds every authorization, whatever a policy says.
const maxValidity = 600 * time.Second

// Run reads all of s and reports what does not hold. The error is that of
// reading.
func Run(ctx context.Context, s ledger.Store, o Options) (ledger.Report, error) {
	c := &checking{store: s, o: o, evidence: newEvidence(o)}
	if o.Policy != nil {
		c.caps = newCaps(c, o.Policy)
	}
	for h, err := range histories(ctx, s, o.NoEvents) {
		if err != nil {
			return c.report, fmt.Errorf("check: reading the ledger: %w", err)
		}
		c.report.Payments++
		c.report.Events += int64(len(h.events))
		if err := c.payment(ctx, &h.entry, h.events); err != nil {
			return c.report, fmt.Errorf("check: reading the ledger: %w", err)
		}
	}
	c.slots.shared(func(n uint32) { c.problem(n, "I4: its slot is that of an earlier payment") })
	c.keys.shared(func(n uint32) {
		c.problem(n, "I5: its key is that of an earlier payment, and neither ended without money")
	})
	c.approvals.shared(func(n uint32) { c.problem(n, "I7: its approval was used by an earlier payment") })
	c.caps.finish()
	c.evidence.finish(c)
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

// payment checks one payment.
func (c *checking) payment(ctx context.Context, e *ledger.Entry, events []ledger.Event) error {
	if !c.o.NoEvents {
		if err := ledger.VerifyPayment(e, events); err != nil {
			c.add(fmt.Sprintf("I9: %v", err))
		}
	}
	c.terms(e)
	n := uint32(c.report.Payments)
	if e.Key != "" && !e.State.Freed() {
		c.keys.add(n, e.Agent, e.Key)
	}
	if e.AuthorizedAt.IsZero() {
		if !e.Slot.IsZero() || !e.ValidBefore.IsZero() || e.State.Live() {
			c.found(e, "I3: it has a slot, a validity or a hold, and was never authorized")
		}
		return nil
	}
	c.authorized(e)
	c.slots.add(n, e.Slot.String(), "")
	c.evidence.payment(c, e)
	if c.caps != nil {
		c.caps.payment(e, events)
	}
	if e.ApprovalID == "" {
		return nil
	}
	c.approvals.add(n, string(e.ApprovalID), "")
	return c.approval(ctx, e)
}

// terms is I6.
func (c *checking) terms(e *ledger.Entry) {
	switch {
	case e.Terms.Hash() != e.TermsHash:
		c.found(e, "I6: its terms do not have the hash that was recorded")
	case e.Cost < e.Terms.Cost():
		c.found(e, "I6: it costs %s and is counted as %s", e.Terms.Cost(), e.Cost)
	case e.State != ledger.Denied && e.Terms.Check(e.Payer) != nil:
		c.found(e, "I6: %v", e.Terms.Check(e.Payer))
	}
}

// authorized is I10, and what an authorized payment has to have.
func (c *checking) authorized(e *ledger.Entry) {
	valid := e.ValidBefore.Sub(e.AuthorizedAt)
	switch {
	case e.Slot.IsZero():
		c.found(e, "I3: it is authorized and has no slot")
	case valid <= 0 || valid > maxValidity || e.Terms.Validity > 0 && valid > e.Terms.Validity:
		c.found(e, "I10: it is valid for %v, and its terms allow %v", valid, min(maxValidity, e.Terms.Validity))
	case e.State == ledger.Settled && e.SpentAt.Before(e.AuthorizedAt) && !e.SpentAt.IsZero():
		c.found(e, "I8: it was spent before it was authorized")
	}
}

// approval is I7.
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
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

package ledger

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/canopy-go/canopy/internal/permit"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Bounds of an authorization's validity, whatever a policy says.
const (
	maxValidity      = 600 * time.Second
	minValidity      = 10 * time.Second
	expiringValidity = 25 * time.Second // of Tempo's expiring nonce
)

// validBefore is when the authorization ends, and denies where that is too
// soon. The challenge's own expiry binds only what is signed for it.
func (s *reserving) validBefore(signed bool) time.Time {
	validity := min(s.r.Validity, maxValidity)
	if most := s.verdict.MaxValidity; most > 0 {
		validity = min(validity, most)
	}
	if most := s.r.Payment.Terms.Validity; most > 0 {
		validity = min(validity, most)
	}
	if s.r.Slot.Kind == payment.SlotExpiring {
		validity = min(validity, expiringValidity)
	}
	before := s.now.Add(validity)
	if expires := s.r.Offer.Expires; signed && !expires.IsZero() && expires.Before(before) {
		before = expires.UTC()
	}
	before = before.Truncate(time.Second)
	if left := before.Sub(s.now); left < minValidity {
		s.deny(CodeValidityTooShort, fmt.Sprintf("The authorization would be valid for %s, and needs %s: see max_validity and the seller's offer",
			max(left, 0).Truncate(time.Millisecond), minValidity), time.Time{})
	}
	return before
}

// authorize takes the hold, allots the slot and stamps the validity: of a new
// payment, or of the approved one, whose approval it consumes.
func (s *reserving) authorize(approved *Entry, before time.Time) (*Entry, error) {
	e := s.entry(Authorized)
	from := Proposed
	if approved != nil {
		from = approved.State
		e.ID, e.CreatedAt, e.Head, e.Version = approved.ID, approved.CreatedAt, approved.Head, approved.Version+1
		e.ApprovalID, e.Cost = approved.ApprovalID, max(e.Cost, approved.Cost)
		e.Purpose = approved.Purpose // as the person saw it
		if approved.Key != "" {
			e.Key = approved.Key
		}
	}
	e.Slot, e.slot, e.Spent = s.slot, s.slot.String(), e.Cost
	if s.r.Gas != nil {
		e.Gas = s.r.Gas.Bound
	}
	e.ValidBefore, e.SignBefore, e.AuthorizedAt, e.Owner = before, before, s.now, s.env.Owner
	if approved == nil {
		if _, err := s.insert(e, nil); err != nil {
			return nil, err
		}
		if err := s.count.take(e); err != nil {
			return nil, err
		}
		return e, s.keepLane(e)
	}
	a, err := s.tx.Approval(approved.ApprovalID)
	if err != nil {
		return nil, err
	}
	used := *a
	if used.Status != ApprovalGranted || !used.UsedAt.IsZero() || used.Payment != e.ID || used.Agent != e.Agent || used.TermsHash != e.TermsHash {
		return nil, fmt.Errorf("ledger: approval %s is not one of payment %s on these terms", a.ID, e.ID)
	}
	used.UsedAt = s.now
	used.Version++
	if err := s.replace(e); err != nil {
		return nil, err
	}
	if err := s.tx.Update(e, s.env.Scratch.record(e, from, s.now, nil)); err != nil {
		return nil, err
	}
	if err := s.tx.PutApproval(&used); err != nil {
		return nil, err
	}
	if err := s.count.take(e); err != nil {
		return nil, err
	}
	if err := s.keepLane(e); err != nil {
		return nil, err
	}
	return e, s.saw()
}

// allot sets the slot of an authorization, and denies where there is none.
func (s *reserving) allot(approved *Entry) (err error) {
	s.slot, err = s.whole(approved)
	if err == nil && s.slot.Kind == payment.SlotLane && s.slot.NonceID == [32]byte{} {
		s.slot, err = s.allotLane(s.slot)
	}
	return err
}

// whole is the request's slot, made whole and found free, but for a lane that
// it does not name.
func (s *reserving) whole(approved *Entry) (payment.Slot, error) {
	slot, t := s.r.Slot, &s.r.Payment.Terms
	id := s.r.Payment.ID
	if approved != nil {
		id = approved.ID
	}
	fill := func(have, want payment.Address) (payment.Address, bool) {
		return want, have.IsZero() || have == want
	}
	ok := true
	switch slot.Kind {
	case payment.SlotEVM:
		slot.Token, ok = fill(slot.Token, t.Asset.Address)
		fallthrough
	case payment.SlotLane, payment.SlotExpiring:
		from, same := fill(slot.From, s.r.Payer)
		slot.From, ok = from, ok && same
		ok = ok && (slot.Chain == "" || slot.Chain == t.Asset.Chain)
		slot.Chain = t.Asset.Chain
	case payment.SlotProof:
		return payment.Slot{Kind: slot.Kind, Payment: id}, nil
	default:
		return slot, fmt.Errorf("ledger: the request has no slot")
	}
	if !ok {
		return slot, fmt.Errorf("ledger: the slot %s is not one of this payment", slot)
	}
	if slot.NonceID == [32]byte{} {
		switch slot.Kind {
		case payment.SlotEVM:
			if _, err := rand.Read(slot.NonceID[:]); err != nil {
				return slot, fmt.Errorf("ledger: no random nonce: %w", err)
			}
		case payment.SlotExpiring:
			return slot, fmt.Errorf("ledger: the slot %s has no memo to tell it apart", slot)
		}
		return slot, nil
	}
	return slot, s.unused(slot)
}

// unused refuses a slot that a payment ever had. Two with one memo or one bound
// nonce could not be told apart on the chain; the nonce of a lane may be used
// again once the chain showed that it was not.
func (s *reserving) unused(slot payment.Slot) error {
	had, err := s.tx.SlotEver(slot.String())
	if err != nil {
		return err
	}
	if had != nil && (slot.Kind != payment.SlotLane || had.State != ExpiredUnused) {
		return fmt.Errorf("%w: %s is payment %s", ErrTaken, slot, had.ID)
	}
	if slot.Kind == payment.SlotLane {
		return s.checkLane(slot)
	}
	return nil
}

// Committed is e as a store hands it out once it is committed: the caller's
// own copy, with a permit where a signature may be made. e is not changed.
func Committed(e *Entry) Entry {
	c := *e
	c.Terms.Recipients = append([]payment.Recipient(nil), e.Terms.Recipients...)
	c.Echo = append([]byte(nil), e.Echo...)
	c.Reasons = append([]policy.Reason(nil), e.Reasons...)
	c.Budgets = append([]payment.BudgetID(nil), e.Budgets...)
	c.Carries = append([]payment.Carry(nil), e.Carries...)
	c.Permit, c.CarryPermit = payment.Permit{}, payment.Permit{}
	switch e.State {
	case Authorized, InDoubt, Claimed, Settled:
		c.Permit = permit.Mint(e.SlotKey(), e.SignBefore)
	}
	if len(e.Carries) > 0 && (e.State == Authorized || e.State == InDoubt) {
		c.CarryPermit = permit.Mint(payment.CarryKey(e.ID, len(e.Carries)), e.SignBefore)
	}
	return c
}

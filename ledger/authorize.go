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
	slot, err := s.slot(approved)
	if err != nil {
		return nil, err
	}
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
	e.Slot, e.slot = slot, slot.String()
	e.ValidBefore, e.AuthorizedAt, e.Owner = before, s.now, s.env.Owner
	if approved == nil {
		if _, err := s.insert(e, nil); err != nil {
			return nil, err
		}
		return e, s.count.take(e)
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
	if err := s.tx.Update(e, s.env.Scratch.record(e, from, s.now, time.Time{})); err != nil {
		return nil, err
	}
	if err := s.tx.PutApproval(&used); err != nil {
		return nil, err
	}
	if err := s.count.take(e); err != nil {
		return nil, err
	}
	return e, s.saw()
}

// slot is the request's slot, made whole and found free.
func (s *reserving) slot(approved *Entry) (payment.Slot, error) {
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
		slot = payment.Slot{Kind: slot.Kind, Payment: id}
	default:
		return slot, fmt.Errorf("ledger: the request has no slot")
	}
	if !ok {
		return slot, fmt.Errorf("ledger: the slot %s is not one of this payment", slot)
	}
	if slot.Kind == payment.SlotEVM && slot.NonceID == [32]byte{} {
		if _, err := rand.Read(slot.NonceID[:]); err != nil {
			return slot, fmt.Errorf("ledger: no random nonce: %w", err)
		}
		return slot, nil
	}
	holder, err := s.tx.SlotHolder(slot.String())
	if err == nil && holder != nil {
		err = fmt.Errorf("%w: %s is payment %s", ErrTaken, slot, holder.ID)
	}
	return slot, err
}

// Committed is e as a store hands it out once it is committed: the caller's
// own copy, with a permit where a signature may be made. e is not changed.
func Committed(e *Entry) Entry {
	c := *e
	c.Terms.Recipients = append([]payment.Recipient(nil), e.Terms.Recipients...)
	c.Echo = append([]byte(nil), e.Echo...)
	c.Reasons = append([]policy.Reason(nil), e.Reasons...)
	c.Permit = payment.Permit{}
	switch e.State {
	case Authorized, InDoubt, Claimed, Settled:
		c.Permit = permit.Mint(e.SlotKey(), e.ValidBefore)
	}
	return c
}

package ledger

import (
	"fmt"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// answer finds the earlier payment that answers the call, and why; or, where
// why is 0, the approved one that the call carries out, or nil.
//
// A payment that may have moved money comes first, so that no retry pays while
// an equal call is not resolved; then one that is approved on these terms; then
// one that a call which waited with this one carried out; then one that waits
// for a person. A call that is denied joins none of the last
// two: denied beats pending. Where it joins under a key of its own, that key
// stands for the payment from then on.
func (s *reserving) answer() (*Entry, Join, error) {
	if s.r.Only != "" {
		return s.only()
	}
	if s.frozen {
		e, err := s.approved()
		return e, 0, err
	}
	if s.r.Key != "" {
		e, why, err := s.keyed()
		switch {
		case err != nil || why != 0:
			return e, why, err
		case e != nil && e.State == PendingApproval:
			return nil, 0, nil // denied, and what waits under the key goes on waiting
		case e != nil:
			return e, 0, nil
		}
	}
	equal, err := s.tx.Unresolved(s.r.Payment.Agent, s.r.Fingerprint, s.now)
	if err != nil {
		return nil, 0, err
	}
	var approved, pending, shared *Entry
	for _, e := range equal {
		if !s.waits(e) {
			if s.guards(e) {
				return e, JoinGuard, nil
			}
			if s.waited(e) {
				shared = first(shared, e)
			}
			continue
		}
		if s.r.Key != "" && e.Key != "" {
			continue // the key's own answer was found by it; others differ
		}
		if e, err = s.lapse(e); err != nil {
			return nil, 0, err
		}
		switch {
		case e == nil:
		case e.State == PendingApproval:
			pending = first(pending, e)
		case e.TermsHash == s.hash:
			approved = first(approved, e)
		case e.Terms.IsTransfer():
			s.outdated = append(s.outdated, e)
		}
	}
	switch {
	case approved != nil:
		over, err := overridden(s.tx, approved)
		if err == nil && over {
			err = s.duplicate(s.r.Key) // an approver's word is about caps alone
		}
		return approved, 0, err
	case shared != nil:
		return shared, JoinEqual, nil
	case pending != nil && s.verdict.Status != payment.Denied:
		return pending, JoinEqual, nil
	}
	return nil, 0, s.duplicate(s.r.Key)
}

// only is answer for a call that names the payment it carries out.
func (s *reserving) only() (*Entry, Join, error) {
	e, err := s.tx.Entry(s.r.Only)
	switch {
	case err != nil:
		return nil, 0, err
	case e.Agent != s.r.Payment.Agent || e.Fingerprint != s.r.Fingerprint:
		return nil, 0, fmt.Errorf("%w: payment %s is not one of this call", ErrNotFound, e.ID)
	}
	if s.waits(e) {
		if e, err = s.lapse(e); err != nil {
			return nil, 0, err
		}
		if e == nil { // expired just now
			e, err = s.tx.Entry(s.r.Only)
			return e, JoinItself, err
		}
	}
	if e.State == Approved && e.TermsHash == s.hash {
		return e, 0, s.alone(e)
	}
	return e, JoinItself, nil
}

// alone denies where a transfer equal to e, which the call names, is not
// resolved or was made within the duplicate window, and nothing but a key could
// tell them apart. Equal ones that were approved on other terms are outdated.
func (s *reserving) alone(e *Entry) error {
	if !e.Terms.IsTransfer() || s.frozen {
		return nil
	}
	equal, err := s.tx.Unresolved(e.Agent, e.Fingerprint, s.now)
	if err != nil {
		return err
	}
	for _, o := range equal {
		switch {
		case o.ID == e.ID || apart(o.Key, e.Key):
		case o.State == Approved && o.TermsHash != s.hash:
			s.outdated = append(s.outdated, o)
		case e.Key == "" && s.guards(o):
			s.deny(CodeDuplicate, fmt.Sprintf("Payment %s of the same is not resolved: give a key to pay again", o.ID), o.SafeAfter())
			return nil
		}
	}
	return s.duplicate(e.Key)
}

func first(have, e *Entry) *Entry {
	if have != nil {
		return have
	}
	return e
}

func (s *reserving) waits(e *Entry) bool {
	return e.State == PendingApproval || e.State == Approved
}

// keyed is answer for a key that stands for a payment. One that waits for a
// person while this call is denied comes without a reason to join.
func (s *reserving) keyed() (*Entry, Join, error) {
	e, err := s.tx.Keyed(s.r.Payment.Agent, s.r.Key)
	if err != nil || e == nil {
		return nil, 0, err
	}
	if s.waits(e) {
		if e, err = s.lapse(e); err != nil || e == nil {
			return nil, 0, err
		}
	}
	switch {
	case e.Fingerprint != s.r.Fingerprint:
		return nil, 0, fmt.Errorf("%w: it is that of payment %s", ErrKeyConflict, e.ID)
	case e.State == Approved && e.TermsHash == s.hash:
		return e, 0, nil
	case e.State == Approved:
		s.holder = e // the seller's terms changed: a new decision
		return nil, 0, nil
	case e.State == PendingApproval && s.verdict.Status == payment.Denied:
		return e, 0, nil
	}
	return e, JoinKey, nil
}

// approved is the payment that the call would carry out were it not frozen.
func (s *reserving) approved() (*Entry, error) {
	equal, err := s.tx.Unresolved(s.r.Payment.Agent, s.r.Fingerprint, s.now)
	if err != nil {
		return nil, err
	}
	for _, e := range equal {
		if e.State != Approved || e.TermsHash != s.hash || e.Key != s.r.Key && e.Key != "" && s.r.Key != "" {
			continue
		}
		if e, err = s.lapse(e); e != nil || err != nil {
			return e, err
		}
	}
	return nil, nil
}

// guards reports whether e, of an equal call, keeps this one from paying: it
// is a fetch that was not delivered, or a transfer in doubt, its outcome was
// there when this call began, and SafeAfter has not come.
//
// The beginning is put on the store's own clock, by which the outcome was
// stamped too, so that callers whose clocks differ are ordered alike. An
// outcome that this clock has not reached is one from before it was set back.
func (s *reserving) guards(e *Entry) bool {
	switch {
	case e.State == InDoubt || e.State == NeedsOperator:
		if e.Delivered && !e.Terms.IsTransfer() {
			return false
		}
	case e.Terms.IsTransfer() || e.Delivered || !e.State.Paid():
		return false
	}
	if !s.now.Before(e.SafeAfter()) {
		return false
	}
	return e.Recovered || s.own.Before(e.OutcomeSeen) || !s.began().Before(e.OutcomeSeen)
}

// began is when the call began, by the store's own clock.
func (s *reserving) began() time.Time {
	if ago := s.r.Now.Sub(s.r.Began); !s.r.Began.IsZero() && ago > 0 {
		return s.own.Add(-ago)
	}
	return s.own
}

// waited reports whether e was approved and carried out while this equal call
// was under way: they waited for one person, the first to commit pays.
func (s *reserving) waited(e *Entry) bool {
	return e.ApprovalID != "" && (e.State.Live() || e.State == Settled) && s.began().Before(e.AuthorizedAt) &&
		(s.r.Key == "" || e.Key == "" || e.Key == s.r.Key)
}

// duplicate denies a transfer without a key that equals a recent one.
func (s *reserving) duplicate(key string) error {
	window := s.verdict.DuplicateWindow
	if key != "" || !s.r.Payment.Terms.IsTransfer() || window <= 0 {
		return nil
	}
	e, err := s.tx.LastTransfer(s.r.Payment.Agent, s.r.Fingerprint)
	if err != nil || e == nil {
		return err
	}
	if until := e.AuthorizedAt.Add(window); !s.now.After(until) {
		s.deny(CodeDuplicate, fmt.Sprintf("Duplicate of payment %s, made %s ago: give a key to pay again",
			e.ID, s.now.Sub(e.AuthorizedAt).Round(time.Second)), until)
	}
	return nil
}

// lapse returns e, or nil where its approval has expired, which is recorded.
func (s *reserving) lapse(e *Entry) (*Entry, error) {
	a, err := s.tx.Approval(e.ApprovalID)
	if err != nil {
		return nil, err
	}
	if s.now.Before(a.ExpiresAt) {
		return e, nil
	}
	if err := lapse(s.tx, e, a, ByRecovery, "", s.now); err != nil {
		return nil, err
	}
	return nil, s.saw()
}

// lapse records that an approval is over: it has expired, or another payment,
// which may be "", stands in the place of its own.
func lapse(tx Tx, e *Entry, a *Approval, by Actor, other payment.ID, now time.Time) error {
	expired := *a
	expired.Status = ApprovalLapsed
	expired.Version++
	if err := tx.PutApproval(&expired); err != nil {
		return err
	}
	n := *e
	n.State = ApprovalExpired
	n.Version++
	r := newRecord(128)
	r.text("approval", string(a.ID))
	r.text("replaced_by", string(other))
	return tx.Update(&n, newEvent(&n, e.State, by, now, r.done()))
}

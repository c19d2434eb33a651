package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// CodeOverridden is the code of the reason that a payment has which an approver
// let go over a cap.
const CodeOverridden = "cap_overridden"

// Overrider is an optional power of a Store: a named approver lets one payment go
// over a cap. Every store of this module has it.
type Overrider interface {
	// Override makes, of a payment that was denied by caps alone, a payment on
	// the same terms that is approved, in one durable step. The agent's next
	// equal call carries it out, once, before the approval expires; it counts
	// like any other. Nothing but the caps of the agent's own table yields: not a
	// freeze, a list, the maximum, the duplicate guard, a cap of the whole
	// organisation or a budget, when it is made and when it is carried out.
	//
	// ErrNotOverridable tells what else is in the way. ErrNotNamed and
	// ErrCredential are those of Decide, and ErrSelf, ErrTermsChanged,
	// ErrFrozen, ErrClockSkew and ErrNotFound are what they are there.
	Override(ctx context.Context, o Override) (Approval, error)
}

// Override is what an approver says.
type Override struct {
	Payment    payment.ID   // that was denied
	TermsHash  payment.Hash // of the terms that the person saw; zero to go by the stored ones
	Policy     payment.Hash // of the document that names the approvers: the pinned one, where one is pinned
	Approvers  []string     // whom it names for the agent
	Quorum     int          // how many of them it wants; where it is above 1, nothing may be asked of people beside the caps
	By         string       // one of them
	Credential string       // theirs; never stored
	Via        string
	Reason     string // required
	TTL        time.Duration
	Now        time.Time
}

// String tells the override without the credential.
func (o Override) String() string {
	return fmt.Sprintf("%s over its caps by %s via %s", o.Payment, o.By, o.Via)
}

// GoString is String.
func (o Override) GoString() string { return o.String() }

// ErrNotOverridable says that a payment was not denied by caps of its own table
// alone.
var ErrNotOverridable = errors.New("ledger: nobody may let this payment go over a cap")

// Bounds of an override.
const (
	overrideTTL = time.Hour      // where none is said, and at most
	overrideAge = 24 * time.Hour // of the denial
)

// Yields reports whether an approver may let one payment go over l.
func Yields(l policy.Limit) bool {
	switch l.Scope.Kind {
	case policy.ScopeAgent, policy.ScopeHost, policy.ScopePayee, policy.ScopeCategory, policy.ScopeRun:
		return !l.Asks
	}
	return false
}

// yielding reports whether r is what a cap says that yields: its scope is of an
// agent, and not the organisation or a budget.
func yielding(r *policy.Reason) bool {
	return (r.Code == policy.CodeCapExceeded || r.Code == policy.CodeCountExceeded) && strings.HasPrefix(r.Scope, "agent:")
}

// OverrideTx is Overrider.Override in one step.
func OverrideTx(tx Tx, o Override, env Env) (*Approval, error) {
	e, err := tx.Entry(o.Payment)
	if err != nil {
		return nil, err
	}
	seen, err := tx.Seen()
	if err != nil {
		return nil, err
	}
	now, _, err := env.strict(&seen, o.Now)
	if err != nil {
		return nil, err
	}
	if err := o.check(tx, e, now); err != nil {
		return nil, err
	}
	ttl := o.TTL
	if ttl <= 0 || ttl > overrideTTL {
		ttl = overrideTTL
	}
	n := *e
	n.ID, n.ApprovalID = payment.NewID(now), overrideID(e.ID)
	n.State, n.Version, n.Head, n.Key, n.CreatedAt = PendingApproval, 1, payment.Hash{}, "", now
	a := &Approval{
		ID: n.ApprovalID, Payment: n.ID, Agent: n.Agent, Terms: n.Terms, TermsHash: n.TermsHash, Cost: n.Cost, Reason: refusal(e), Purpose: n.Purpose,
		Approvers: slices.Clone(o.Approvers), Quorum: 1, Override: true, CreatedAt: now, ExpiresAt: now.Add(ttl), Version: 1,
	}
	if err := tx.Insert(&n, new(Scratch).record(&n, Proposed, now, a)); err != nil {
		return nil, err
	}
	d := Decision{ID: a.ID, Approve: true, By: o.By, Via: o.Via, Comment: o.Reason}
	approved, err := d.vote(tx, &n, a, now)
	if err != nil {
		return nil, err
	}
	seen.At = latest(seen.At, now)
	return approved, tx.SetSeen(seen)
}

// check refuses what no approver may say.
func (o *Override) check(tx Tx, e *Entry, now time.Time) error {
	list := Approval{Approvers: o.Approvers}
	switch {
	case strings.TrimSpace(o.By) == "":
		return errors.New("ledger: the override names nobody")
	case isAgent(o.By, e.Agent):
		return ErrSelf
	case len(o.Approvers) == 0:
		return ErrNoApprovers
	case !list.Names(o.By):
		return fmt.Errorf("%w: it names %s", ErrNotNamed, strings.Join(o.Approvers, ", "))
	case strings.TrimSpace(o.Reason) == "":
		return errors.New("ledger: an override needs a reason")
	case e.State != Denied:
		return fmt.Errorf("%w: it is %s, and was not denied", ErrNotOverridable, e.State)
	case !o.TermsHash.IsZero() && o.TermsHash != e.TermsHash, e.Terms.Hash() != e.TermsHash:
		return ErrTermsChanged
	case now.Sub(e.CreatedAt) > overrideAge:
		return fmt.Errorf("%w: it was denied more than %s ago: let the agent ask again", ErrNotOverridable, overrideAge)
	}
	caps := 0
	for i := range e.Reasons {
		r := &e.Reasons[i]
		switch {
		case r.Status != payment.Denied || r.Shadow:
		case !yielding(r):
			return fmt.Errorf("%w: %s", ErrNotOverridable, r.Text)
		default:
			caps++
		}
	}
	if caps == 0 {
		return fmt.Errorf("%w: no cap denied it", ErrNotOverridable)
	}
	if i := slices.IndexFunc(e.Reasons, asksPeople); i >= 0 && o.Quorum > 1 {
		return fmt.Errorf("%w: it takes %d people as well: %s", ErrNotOverridable, o.Quorum, e.Reasons[i].Text)
	}
	switch _, err := tx.Approval(overrideID(e.ID)); {
	case err == nil:
		return fmt.Errorf("%w: this denial was overridden before: let the agent ask again", ErrNotOverridable)
	case !errors.Is(err, ErrNotFound):
		return err
	}
	pinned, err := tx.PinnedPolicy()
	if err != nil {
		return err
	}
	if pin := (Pin{Policy: pinned}); pin.Denies(o.Policy) {
		return fmt.Errorf("%w: %s", ErrNotOverridable, pin.Text(o.Policy))
	}
	frozen, why, err := tx.Frozen(e.Agent)
	if err != nil {
		return err
	}
	if frozen {
		return fmt.Errorf("%w: %s", ErrFrozen, why)
	}
	equal, err := tx.Unresolved(e.Agent, e.Fingerprint, now)
	if err != nil {
		return err
	}
	for _, other := range equal {
		if other.State != PendingApproval && other.State != Approved {
			continue
		}
		a, err := tx.Approval(other.ApprovalID)
		if err != nil {
			return err
		}
		if a.at(now).Status != ApprovalLapsed {
			return fmt.Errorf("%w: an equal payment, %s, is %s already", ErrNotOverridable, other.ID, other.State)
		}
	}
	o.By, err = named(tx, o.By, o.Credential)
	return err
}

// overrideID is the approval that lets a denied payment go over its caps: there is
// one of each denial at most.
func overrideID(denied payment.ID) payment.ApprovalID {
	return payment.ApprovalID("appr_" + string(denied))
}

// refusal is the first denial of e, in one line.
func refusal(e *Entry) string {
	for _, r := range e.Reasons {
		if r.Status == payment.Denied && !r.Shadow {
			return r.Text
		}
	}
	return ""
}

// overridden reports whether an approver let e go over a cap.
func overridden(tx Tx, e *Entry) (bool, error) {
	if e == nil || e.ApprovalID == "" {
		return false, nil
	}
	a, err := tx.Approval(e.ApprovalID)
	return err == nil && a.Override, err
}

// yield takes what the caps say that yield out of a verdict, which was denied by
// them alone: those caps that denied the payment which the person saw, and no
// others.
func (s *reserving) yield(approved *Entry, uses []policy.Use) []policy.Use {
	v := &s.verdict
	seen := func(rule, scope string) bool {
		return slices.ContainsFunc(approved.Reasons, func(r policy.Reason) bool {
			return r.Status == payment.Denied && yielding(&r) && r.Rule == rule && r.Scope == scope
		})
	}
	left := slices.DeleteFunc(slices.Clone(v.Reasons), func(r policy.Reason) bool {
		return r.Status == payment.Denied && yielding(&r) && seen(r.Rule, r.Scope)
	})
	if v.Status == payment.Denied && len(left) < len(v.Reasons) {
		v.Reasons = slices.Clip(left)
		if !slices.ContainsFunc(left, func(r policy.Reason) bool { return r.Status == payment.Denied && !r.Shadow }) {
			v.Status = payment.PendingApproval // and a person has said yes
		}
	}
	return slices.DeleteFunc(slices.Clone(uses), func(u policy.Use) bool { return Yields(u.Limit) && seen(u.Limit.String(), u.Limit.Scope.Key()) })
}

// over notes which caps the payment goes over.
func (s *reserving) over(uses []policy.Use) {
	for _, u := range uses {
		if !Yields(u.Limit) || u.Limit.Shadow || u.Fits(s.verdict.Cost) {
			continue
		}
		r := policy.Reason{
			Status: payment.Allowed, Code: CodeOverridden, Text: fmt.Sprintf("Over the cap by an approver's word: %s + %s > %s", u.USD, s.verdict.Cost, u.Limit),
			Rule: u.Limit.String(), Scope: u.Limit.Scope.Key(), Cost: s.verdict.Cost, Used: u.USD, Limit: u.Limit.USD, Count: u.Count, MaxCount: u.Limit.Count,
		}
		if u.Limit.Counting {
			r.Text = fmt.Sprintf("Over the cap by an approver's word: %d + 1 > %s", u.Count, u.Limit)
		}
		s.verdict.Reasons = append(s.verdict.Reasons, r)
	}
}

var _ Overrider = (*Memory)(nil)

// Override is that of Overrider.
func (m *Memory) Override(ctx context.Context, o Override) (Approval, error) {
	if err := m.begin(ctx); err != nil {
		return Approval{}, err
	}
	defer m.mu.Unlock()
	a, err := OverrideTx(&m.tx, o, m.env())
	if err != nil {
		return Approval{}, err
	}
	return ApprovalAt(a, m.tx.seen.At), nil
}

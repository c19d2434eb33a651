package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Codes of the reasons that the ledger itself gives, besides those of caps.
const (
	CodeFrozen           = "frozen"
	CodeDuplicate        = "duplicate"          // a transfer without a key, equal to a recent one
	CodeTooManyPending   = "too_many_pending"   // the agent has max_pending payments before people
	CodeValidityTooShort = "validity_too_short" // under 10 s are left for the authorization
	CodeAmountOverflow   = "amount_overflow"    // cost or sum is more than can be counted
	CodeAsked            = "asked"              // the caller wanted a person asked
	CodeNoReason         = "no_reason"          // a denial for which the policy named none
)

// ReserveTx is Store.Reserve in one step. Hand the entry out through Committed,
// after the commit.
//
// In this order: the clock, freeze, the key, equal calls, the duplicate
// transfer, then every limit, and the approval that is consumed. A granted
// approval of this very payment turns it from Approved to Authorized under the
// ID it has. Where such a payment cannot be carried out now (a cap is full, a
// freeze, a policy that denies it by now) nothing is stored: it is returned as
// it stands, Approved, with the reasons for the refusal in Reasons, and its
// approval stays unspent.
func ReserveTx(tx Tx, r *Request, env Env) (*Entry, []policy.Use, error) {
	if err := r.check(); err != nil {
		return nil, nil, err
	}
	if env.Scratch == nil {
		env.Scratch = new(Scratch)
	}
	s := &reserving{tx: tx, r: r, env: env, hash: r.Payment.Terms.Hash()}
	s.count = &env.Scratch.count
	var err error
	if s.seen, err = tx.Seen(); err != nil {
		return nil, nil, err
	}
	if s.now, s.own, err = env.strict(&s.seen, r.Now); err != nil {
		return nil, nil, err
	}
	if _, err := RecoverTx(tx, env); err != nil {
		return nil, nil, err
	}
	if err := s.judge(); err != nil {
		return nil, nil, err
	}
	earlier, why, err := s.answer()
	if err != nil {
		return nil, nil, err
	}
	if why != 0 {
		if err := s.share(earlier, why); err != nil {
			return nil, nil, err
		}
		return earlier, nil, &JoinedError{ID: earlier.ID, Why: why}
	}
	if earlier != nil {
		s.verdict.Cost = max(s.verdict.Cost, earlier.Cost)
		if s.override, err = overridden(tx, earlier); err != nil {
			return nil, nil, err
		}
	}
	uses, err := s.limits(earlier)
	if err != nil {
		return nil, nil, err
	}
	e, err := s.store(earlier)
	return e, uses, err
}

// reserving is one Reserve in the making.
type reserving struct {
	tx   Tx
	r    *Request
	env  Env
	seen Seen

	now   time.Time // the ledger's
	own   time.Time // the store's own clock
	hash  payment.Hash
	facts policy.Facts

	verdict policy.Verdict
	frozen  bool

	override bool // an approver let what is carried out go over its caps

	slot    payment.Slot // that an authorization gets
	lane    *Lane        // that slot is in, where it is of a pool
	retired []Lane       // of that pool
	budgets []*Budget    // that it is made under, the outermost first
	count   *counting

	// Approved on other terms than these: what the key stands for, or nil, and
	// equal transfers. They end where this payment takes their place.
	holder   *Entry
	outdated []*Entry
}

// check refuses what no store should see.
func (r *Request) check() error {
	t := &r.Payment.Terms
	switch {
	case !r.Payment.ID.Valid():
		return fmt.Errorf("ledger: %q is not the ID of a payment", clip(string(r.Payment.ID)))
	case r.Payment.Agent == "":
		return fmt.Errorf("ledger: the request names no agent")
	case r.Fingerprint.IsZero():
		return fmt.Errorf("ledger: the request has no fingerprint")
	case len(t.Recipients) == 0:
		return fmt.Errorf("ledger: the request names no recipient")
	case len(r.Key) > maxKey:
		return fmt.Errorf("ledger: the key is longer than %d bytes", maxKey)
	case len(r.Offer.Echo) > payment.MaxEcho:
		return fmt.Errorf("ledger: the echo is longer than %d bytes", payment.MaxEcho)
	}
	return r.checkGas()
}

const maxKey = 1 << 10

// clip bounds foreign text that goes into an error.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

// judge brings the verdict together with the ledger's own opinions that need
// no earlier payment: freeze, a cost that cannot be counted, a person asked.
func (s *reserving) judge() error {
	s.verdict = s.r.Verdict
	v := &s.verdict
	s.facts = policy.Facts{Agent: s.r.Payment.Agent, Shared: v.Shared, Host: s.r.Payment.Host}
	s.facts.Payees = payeesOf(s.count.payees[:0], s.r.Payment.Terms.Recipients)
	if err := s.work(); err != nil {
		return err
	}
	for i := range v.Limits {
		if k := v.Limits[i].Scope.Kind; k == policy.ScopeBudget || !v.Limits[i].Scope.Covers(s.facts) {
			return fmt.Errorf("ledger: the limit %s (%s) is not one of this payment", v.Limits[i], v.Limits[i].Scope.Key())
		}
	}
	v.Cost = max(v.Cost, s.r.Payment.Terms.Cost())
	v.Reasons = slices.Clip(v.Reasons) // the caller's
	if v.Status > payment.Allowed {
		v.Status = payment.Denied
	}
	s.budgetEnded()
	frozen, reason, err := s.tx.Frozen(s.r.Payment.Agent)
	if err != nil {
		return err
	}
	if s.frozen = frozen; frozen && v.Code() != CodeFrozen {
		text := "Payments are frozen"
		if reason != "" {
			text += ": " + reason
		}
		s.deny(CodeFrozen, text, time.Time{})
	}
	if err := s.pinned(); err != nil {
		return err
	}
	if v.Cost == payment.MaxUSD {
		s.deny(CodeAmountOverflow, "The amount is more than can be counted", time.Time{})
	}
	if v.Status == payment.Allowed && s.r.Ask != "" {
		v.Status = payment.PendingApproval
		v.Reasons = append(v.Reasons, policy.Reason{Status: v.Status, Code: CodeAsked, Text: s.r.Ask, Cost: v.Cost})
	}
	return nil
}

func (s *reserving) deny(code, text string, until time.Time) {
	v := &s.verdict
	v.Status = payment.Denied
	v.Reasons = append(v.Reasons, policy.Reason{Status: payment.Denied, Code: code, Text: text, Cost: v.Cost, Until: until})
}

// limits checks every limit of the verdict, and denies where one is full.
func (s *reserving) limits(approved *Entry) ([]policy.Use, error) {
	c := s.count
	if err := c.start(s.tx, s.now); err != nil {
		return nil, err
	}
	for i := range c.marks {
		if err := c.age(&c.marks[i], false); err != nil {
			return nil, err
		}
	}
	if err := s.saw(); err != nil { // no mark is ahead of the ledger's time
		return nil, err
	}
	if err := s.budgetLimits(); err != nil {
		return nil, err
	}
	c.uses = c.uses[:0]
	all := true
	for i := range s.verdict.Limits {
		c.uses = append(c.uses, policy.Use{Limit: s.verdict.Limits[i]})
		fits, err := c.use(&c.uses[i], s.verdict.Cost)
		if err != nil {
			return nil, err
		}
		all = all && fits
	}
	var uses []policy.Use
	if !all || s.r.Uses {
		uses = append(uses, c.uses...)
	}
	switch {
	case s.override:
		s.verdict = s.verdict.Apply(s.yield(approved, uses))
		s.over(uses)
	case !all:
		s.verdict = s.verdict.Apply(uses)
	}
	room, err := c.gather(s.facts, s.verdict.Cost)
	if err != nil {
		return nil, err
	}
	if !room && s.verdict.Cost != payment.MaxUSD {
		s.deny(CodeAmountOverflow, "The sum is more than can be counted", time.Time{})
	}
	return uses, nil
}

// store writes what was decided. approved is the payment whose approval is
// consumed, or nil.
func (s *reserving) store(approved *Entry) (*Entry, error) {
	approved, err := s.ruled(approved)
	if err != nil {
		return nil, err
	}
	var before time.Time
	if s.verdict.Status != payment.Denied {
		before = s.validBefore(s.verdict.Status == payment.Allowed || approved != nil)
	}
	if s.verdict.Status == payment.PendingApproval && approved == nil {
		if err := s.maxPending(); err != nil {
			return nil, err
		}
	}
	if s.verdict.Status != payment.Denied {
		if err := s.gas(); err != nil {
			return nil, err
		}
	}
	if s.verdict.Status == payment.Allowed || s.verdict.Status == payment.PendingApproval && approved != nil {
		if err := s.allot(approved); err != nil {
			return nil, err
		}
	}
	switch {
	case s.verdict.Status == payment.Denied && approved != nil:
		e := *approved
		e.Reasons = s.verdict.Reasons
		return &e, nil
	case s.verdict.Status == payment.Denied:
		if len(s.verdict.Reasons) == 0 {
			s.deny(CodeNoReason, "The policy allows nothing here", time.Time{})
		}
		return s.insert(s.entry(Denied), nil)
	case s.verdict.Status == payment.PendingApproval && approved == nil:
		return s.ask()
	}
	return s.authorize(approved, before)
}

// maxPending denies where the agent has too many payments before people.
func (s *reserving) maxPending() error {
	most := s.verdict.MaxPending
	if most <= 0 {
		most = defaultMaxPending
	}
	n, err := s.tx.Pending(s.r.Payment.Agent, s.now)
	if err == nil && n >= most {
		s.deny(CodeTooManyPending, fmt.Sprintf("%d payments wait for approval, max_pending is %d", n, most), time.Time{})
	}
	return err
}

// ask puts the payment to a person.
func (s *reserving) ask() (*Entry, error) {
	ttl := s.verdict.ApprovalTTL
	if ttl <= 0 {
		ttl = defaultTTL
	}
	e := s.entry(PendingApproval)
	e.ApprovalID = payment.NewApprovalID(s.now)
	return s.insert(e, &Approval{
		ID: e.ApprovalID, Payment: e.ID, Agent: e.Agent, Terms: e.Terms, TermsHash: e.TermsHash, Cost: e.Cost,
		Reason: s.verdict.Reason(), Purpose: e.Purpose, CreatedAt: s.now, ExpiresAt: s.now.Add(ttl), Version: 1,
		Approvers: slices.Clone(s.verdict.Approvers), Quorum: max(s.verdict.Quorum, 1), Chat: s.verdict.Chat,
	})
}

// entry is the payment of the request, owning all that it refers to.
func (s *reserving) entry(state State) *Entry {
	r := s.r
	e := &Entry{
		ID: r.Payment.ID, Agent: r.Payment.Agent, State: state, Version: 1,
		Terms: r.Payment.Terms, TermsHash: s.hash, Cost: s.verdict.Cost, Payer: r.Payer,
		Host: r.Payment.Host, Shared: s.verdict.Shared, Purpose: r.Payment.Purpose,
		Key: r.Key, Fingerprint: r.Fingerprint,
		Run: s.facts.Run, Budgets: s.facts.Budgets, CreatedAt: s.now,
	}
	if n := len(s.budgets); n > 0 {
		e.Path = s.budgets[n-1].Path
	}
	e.Terms.Recipients = append([]payment.Recipient(nil), e.Terms.Recipients...)
	s.describe(e)
	return e
}

// describe puts on e what this request knows of the offer and the decision.
func (s *reserving) describe(e *Entry) {
	o := &s.r.Offer
	e.ChallengeID, e.Realm, e.Protocol, e.Resend = o.ChallengeID, o.Realm, o.Version, o.Resend
	e.Echo = append([]byte(nil), o.Echo...)
	e.Watched = s.r.Watched
	e.Reasons = append([]policy.Reason(nil), s.verdict.Reasons...)
	e.Policy = s.verdict.Policy
	e.DuplicateWindow = s.verdict.DuplicateWindow
}

// insert stores a new payment, and its approval if there is one.
func (s *reserving) insert(e *Entry, a *Approval) (*Entry, error) {
	if e.State != Denied && (s.holder != nil || s.outdated != nil) {
		if _, err := s.tx.Entry(e.ID); err == nil {
			return nil, ErrTaken
		}
		if err := s.replace(e); err != nil {
			return nil, err
		}
	}
	if err := s.tx.Insert(e, s.env.Scratch.record(e, Proposed, s.now, a)); err != nil {
		return nil, err
	}
	if a != nil {
		if err := s.tx.PutApproval(a); err != nil {
			return nil, err
		}
	}
	return e, s.saw()
}

func (s *reserving) saw() error {
	s.seen.At = s.now
	return s.tx.SetSeen(s.seen)
}

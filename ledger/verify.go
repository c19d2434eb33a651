package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Replay rebuilds from one payment's events, oldest first, what they tell of
// it: state, version, money, instants, slot key and outcome, but not the words
// and the echo. It verifies the chain.
func Replay(events []Event) (Entry, error) {
	r, err := replay(events)
	return r.Entry, err
}

// replayed is what the events of one payment tell.
type replayed struct {
	Entry
	rest     payment.Hash  // of what they do not tell
	longest  time.Duration // of the validities that were permitted
	approval Approval      // but for the terms and the words; zero where nobody was asked
}

func replay(events []Event) (e replayed, err error) {
	if err := VerifyChain(events); err != nil {
		return e, err
	}
	var d eventData
	for i := range events {
		ev := &events[i]
		if err := d.read(ev.Data); err != nil {
			return e, fmt.Errorf("ledger: event %d of %s: %v", i+1, ev.Payment, err)
		}
		e.ID, e.State, e.Version, e.Head = ev.Payment, ev.To, ev.Seq, ev.Hash
		if i == 0 {
			e.CreatedAt = ev.At
		}
		if i == 0 || ev.To == Authorized && ev.From != Authorized {
			d.describe(&e.Entry)
		}
		if !d.Rest.IsZero() {
			e.rest = d.Rest
		}
		if err := d.asked(&e.approval, ev); err != nil {
			return e, err
		}
		if ev.To == Authorized && ev.From != Authorized {
			e.AuthorizedAt = ev.At
			e.Spent, e.longest = e.Cost, e.ValidBefore.Sub(ev.At)
		}
		if ended(ev.To, ev.By) && !strings.HasPrefix(e.slot, "proof/") {
			return e, fmt.Errorf("ledger: event %d of %s settles by %s what is no proof", ev.Seq, ev.Payment, ev.By)
		}
		if ev.From.Live() {
			d.outcome(&e.Entry, ev)
		}
		if d.CarryNonce != nil {
			if err := d.carry(&e, ev); err != nil {
				return e, err
			}
		}
		if d.SignBefore != 0 {
			if err := d.variant(&e, ev); err != nil {
				return e, err
			}
		}
	}
	return e, nil
}

// asked follows the approval of a payment, which outlives its events.
func (d *eventData) asked(a *Approval, ev *Event) error {
	switch ev.To {
	case PendingApproval:
		if ev.From == ev.To {
			a.Votes = cast(a.Votes, d.vote(ev))
			if err := a.voted(ev); err != nil {
				return err
			}
			break
		}
		*a = Approval{
			ID: payment.ApprovalID(strings.Clone(d.Approval)), Payment: ev.Payment, Agent: strings.Clone(d.Agent), TermsHash: d.Terms, Cost: payment.USD(d.Cost),
			CreatedAt: ev.At, ExpiresAt: micro(d.Expires),
			Quorum: max(d.Quorum, 1), Chat: d.Chat, Override: d.Override,
		}
		for _, name := range d.Approvers {
			a.Approvers = append(a.Approvers, strings.Clone(name))
		}
	case Approved, Rejected:
		if ev.From == ev.To {
			return nil // its key went to another
		}
		v := d.vote(ev)
		a.Votes = cast(a.Votes, v)
		a.Status, a.DecidedAt = ApprovalGranted, ev.At
		a.By, a.Via, a.Comment = v.By, v.Via, v.Comment
		switch {
		case ev.To == Rejected:
			a.Status = ApprovalRefused
		case a.Yes() < a.Quorum:
			return fmt.Errorf("ledger: event %d of %s approves with %d of %d", ev.Seq, ev.Payment, a.Yes(), a.Quorum)
		}
		if err := a.voted(ev); err != nil {
			return err
		}
	case ApprovalExpired:
		a.Status = ApprovalLapsed
	case Authorized:
		if ev.From != Approved {
			return nil
		}
		a.UsedAt = ev.At
	default:
		return nil
	}
	a.Version++
	return nil
}

// voted refuses the last vote where nobody may cast it: the requester, or somebody
// who is not named.
func (a *Approval) voted(ev *Event) error {
	last := a.Votes[len(a.Votes)-1]
	if isAgent(last.By, a.Agent) || len(a.Approvers) > 0 && !a.Names(last.By) {
		return fmt.Errorf("ledger: event %d of %s is a vote that %q may not cast", ev.Seq, ev.Payment, last.By)
	}
	return nil
}

// vote is the answer that ev records.
func (d *eventData) vote(ev *Event) Vote {
	return Vote{
		By: strings.Clone(d.By), Via: strings.Clone(d.Via), Comment: strings.Clone(d.Comment),
		At: ev.At, Approve: ev.To != Rejected,
	}
}

func (d *eventData) describe(e *Entry) {
	e.Agent, e.ApprovalID, e.ChallengeID = d.Agent, payment.ApprovalID(d.Approval), d.Challenge
	e.Cost, e.Fingerprint, e.Host, e.Owner = payment.USD(d.Cost), d.Fingerprint, d.Host, d.Owner
	e.Policy, e.Shared, e.slot, e.TermsHash, e.Watched = d.Policy, d.Shared, d.Slot, d.Terms, d.Watched
	e.ValidBefore = micro(d.ValidBefore)
	e.SignBefore = e.ValidBefore
	e.Gas = d.Gas
	e.Run, e.Path, e.Budgets = d.Run, d.Path, nil
	for _, id := range d.Budgets {
		e.Budgets = append(e.Budgets, payment.BudgetID(strings.Clone(id)))
	}
}

// variant follows a permit for a further challenge.
func (d *eventData) variant(e *replayed, ev *Event) error {
	if e.Variants++; e.Variants > MaxVariants || ev.From != ev.To || ev.By != ByClient || !strings.HasPrefix(e.slot, "lane/") {
		return fmt.Errorf("ledger: event %d of %s is a variant that none may be", ev.Seq, ev.Payment)
	}
	e.ChallengeID, e.SignBefore, e.ValidBefore = d.Challenge, micro(d.SignBefore), micro(d.ValidBefore)
	e.longest = max(e.longest, e.SignBefore.Sub(ev.At))
	return nil
}

func (d *eventData) outcome(e *Entry, ev *Event) {
	e.Assumed = e.Assumed || d.Assumed
	e.Delivered = e.Delivered || d.Delivered
	e.Sends += d.Sent
	if d.HTTP != 0 {
		e.HTTP = d.HTTP
	}
	if d.Note != "" {
		e.Note = d.Note
	}
	if d.Tx != "" {
		e.Receipt.TxHash = d.Tx
	}
	if d.Spent != 0 {
		e.SpentAt = micro(d.Spent)
	}
	switch {
	case d.Counted != nil:
		e.Spent = payment.USD(*d.Counted)
	case ev.To.Freed():
		e.Spent = 0
	}
	if e.OutcomeAt.IsZero() && ev.To != Authorized {
		e.OutcomeAt, e.Recovered = ev.At, ev.By == ByRecovery
	}
}

func micro(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// Verification checks a ledger that is read once from end to end. It is for
// stores that are Verifiers.
type Verification struct {
	marks  []Mark
	sums   map[CounterKey]Counter
	asked  map[payment.ApprovalID]Approval // as the payments tell them
	lanes  map[laneName]*laneFound         // of pools
	budget map[payment.BudgetID]*budgetFound
	report Report
}

// NewVerification begins one, with the time and the marks of the ledger as
// Tx.Seen and Tx.Marks tell them.
func NewVerification(seen Seen, marks []Mark) *Verification {
	v := &Verification{marks: marks, sums: map[CounterKey]Counter{}, asked: map[payment.ApprovalID]Approval{}, lanes: map[laneName]*laneFound{}, budget: map[payment.BudgetID]*budgetFound{}}
	for i := range marks {
		if m := &marks[i]; !m.sound(seen.At) {
			v.Problem("the mark of %s is not where its window begins: payments would count no more", m.Window)
		}
	}
	return v
}

// Problem adds one that the store found itself.
func (v *Verification) Problem(format string, args ...any) {
	if len(v.report.Problems) < 100 {
		v.report.Problems = append(v.report.Problems, fmt.Sprintf(format, args...))
	}
}

// Payment checks one payment and its events, oldest first. Every payment must
// come once, after the lanes and the budgets and before the approvals and the counters.
func (v *Verification) Payment(e *Entry, events []Event) {
	v.report.Payments++
	v.report.Events += int64(len(events))
	got, err := replay(events)
	if err != nil {
		v.Problem("%s: %v", e.ID, err)
	} else if what := differ(&got, e); what != "" {
		v.Problem("%s: its events tell another %s than its record", e.ID, what)
	}
	if e.ApprovalID != "" {
		got.approval.Purpose = e.Purpose
		v.asked[e.ApprovalID] = got.approval
	}
	if h := e.Terms.Hash(); h != e.TermsHash {
		v.Problem("%s: its terms do not have the hash that was recorded", e.ID)
	}
	v.onLane(e)
	v.inBudgets(e)
	facts, sp := e.Facts(), spanOf(e)
	for i := range v.marks {
		m := &v.marks[i]
		if !sp.counted(m.At) {
			continue
		}
		if !sp.open && sp.at.Until.Before(m.Next) {
			v.Problem("%s: ageing of %s would pass over it", e.ID, m.Window)
		}
		for _, s := range scopesOf(nil, facts, m.Kinds) {
			key := NewCounterKey(s, m.Window)
			n := v.sums[key]
			n.USD, _ = n.USD.Add(e.Spent)
			n.Count++
			v.sums[key] = n
		}
	}
}

// Counter checks one counter against the payments.
func (v *Verification) Counter(key CounterKey, n Counter) {
	i := slices.IndexFunc(v.marks, func(m Mark) bool { return m.Window == key.Window })
	if i < 0 || !has(v.marks[i].Kinds, key.Scope.Kind) {
		v.Problem("counter %s / %s: it is not kept up with the payments", key.Scope.Key(), key.Window)
		return
	}
	if want := v.sums[key]; n != want {
		v.Problem("counter %s / %s: %s in %d payments, but they add up to %s in %d",
			key.Scope.Key(), key.Window, n.USD, n.Count, want.USD, want.Count)
	}
}

// Approval checks one approval. Each must come once.
func (v *Verification) Approval(a *Approval) {
	want, ok := v.asked[a.ID]
	delete(v.asked, a.ID)
	switch {
	case !ok:
		v.Problem("approval %s: no payment asked for it", a.ID)
	case a.Terms.Hash() != a.TermsHash:
		v.Problem("approval %s: its terms do not have the hash that was recorded", a.ID)
	default:
		if what := unlike(&want, a); what != "" {
			v.Problem("approval %s: the events of its payment tell another %s than its record", a.ID, what)
		}
	}
}

// Report is what was found. It comes last.
func (v *Verification) Report() Report {
	for id, a := range v.asked {
		v.Problem("approval %s of payment %s is missing", id, a.Payment)
	}
	clear(v.asked)
	for name, f := range v.lanes {
		if !f.seen {
			v.Problem("lane %s: its payment %s is missing", name, f.lane.Payment)
		}
	}
	clear(v.lanes)
	v.sumBudgets()
	return v.report
}

// written is s as JSON can write it: bytes that are no text are replaced.
func written(s string) string { return string([]rune(s)) }

// differ names the first fact in which a payment replayed from its events
// differs from its record.
func differ(a *replayed, b *Entry) string {
	return firstUnlike([]likeness{
		{"ID", a.ID == b.ID},
		{"head", a.Head == b.Head},
		{"state", a.State == b.State},
		{"version", a.Version == b.Version},
		{"agent", a.Agent == written(b.Agent) && a.Shared == b.Shared},
		{"host", a.Host == written(b.Host)},
		{"cost", a.Cost == b.Cost},
		{"terms hash", a.TermsHash == b.TermsHash},
		{"fingerprint", a.Fingerprint == b.Fingerprint},
		{"slot", a.slot == b.SlotKey()},
		{"spending", a.Spent == b.Spent},
		{"validity", a.ValidBefore.Equal(b.ValidBefore) && a.SignBefore.Equal(b.SignBefore) && a.longest <= longest(&b.Terms)},
		{"gas", a.Gas == b.Gas && slices.Equal(a.Carries, b.Carries)},
		{"number of variants", a.Variants == b.Variants},
		{"challenge", a.AuthorizedAt.IsZero() || a.ChallengeID == written(b.ChallengeID)},
		{"watch", a.Watched == b.Watched || a.AuthorizedAt.IsZero()},
		{"creation", a.CreatedAt.Equal(b.CreatedAt)},
		{"authorization time", a.AuthorizedAt.Equal(b.AuthorizedAt)},
		{"outcome time", a.OutcomeAt.Equal(b.OutcomeAt)},
		{"spend time", a.SpentAt.Equal(b.SpentAt)},
		{"delivery", a.Delivered == b.Delivered && a.HTTP == b.HTTP && a.Sends == b.Sends},
		{"owner", a.Owner == written(b.Owner)},
		{"assumption", a.Assumed == b.Assumed},
		{"recovery", a.Recovered == b.Recovered},
		{"approval", a.ApprovalID == b.ApprovalID},
		{"policy", a.Policy == b.Policy},
		{"run or budget", a.Run == written(b.Run) && a.Path == b.Path && slices.EqualFunc(a.Budgets, b.Budgets, func(x, y payment.BudgetID) bool { return string(x) == written(string(y)) })},
		{"payer, key, echo or other part", a.rest == b.rest()},
	})
}

// longest is the longest validity that terms let be permitted.
func longest(t *payment.Terms) time.Duration {
	if t.Validity > 0 {
		return min(t.Validity, maxValidity)
	}
	return maxValidity
}

// unlike names the first fact in which an approval differs from what the events
// of its payment tell.
func unlike(want, a *Approval) string {
	return firstUnlike([]likeness{
		{"payment", a.Payment == want.Payment && a.ID == want.ID},
		{"agent", written(a.Agent) == want.Agent},
		{"terms hash", a.TermsHash == want.TermsHash},
		{"cost", a.Cost == want.Cost},
		{"purpose", a.Purpose == want.Purpose},
		{"status", a.Status == want.Status && a.Version == want.Version},
		{"choice of approvers", a.Quorum == want.Quorum && a.Chat == want.Chat && a.Override == want.Override && slices.EqualFunc(a.Approvers, want.Approvers, func(x, y string) bool { return written(x) == y })},
		{"vote", slices.EqualFunc(a.Votes, want.Votes, sameVote)},
		{"creation", a.CreatedAt.Equal(want.CreatedAt)},
		{"expiry", a.ExpiresAt.Equal(want.ExpiresAt)},
		{"decision", a.DecidedAt.Equal(want.DecidedAt) && written(a.By) == want.By && written(a.Via) == want.Via && written(a.Comment) == want.Comment},
		{"use", a.UsedAt.Equal(want.UsedAt)},
	})
}

func sameVote(a, want Vote) bool {
	return written(a.By) == want.By && written(a.Via) == want.Via && written(a.Comment) == want.Comment && a.Approve == want.Approve && a.At.Equal(want.At)
}

// likeness is whether two records are alike in one fact.
type likeness struct {
	what string
	same bool
}

func firstUnlike(facts []likeness) string {
	for _, f := range facts {
		if !f.same {
			return f.what
		}
	}
	return ""
}

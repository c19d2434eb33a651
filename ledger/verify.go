package ledger

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Replay rebuilds from one payment's events, oldest first, what they tell of
// it: state, version, money, instants, slot key and outcome, but not the words
// and the echo. It verifies the chain.
func Replay(events []Event) (Entry, error) {
	if err := VerifyChain(events); err != nil {
		return Entry{}, err
	}
	var e Entry
	for i, ev := range events {
		var d eventData
		if err := json.Unmarshal(ev.Data, &d); err != nil {
			return e, fmt.Errorf("ledger: event %d of %s: %v", i+1, ev.Payment, err)
		}
		e.ID, e.State, e.Version, e.Head = ev.Payment, ev.To, ev.Seq, ev.Hash
		if i == 0 {
			e.CreatedAt = ev.At
		}
		if i == 0 || ev.To == Authorized && ev.From != Authorized {
			d.describe(&e)
		}
		if ev.To == Authorized && ev.From != Authorized {
			e.AuthorizedAt = ev.At
		}
		if ev.From.Live() {
			d.outcome(&e, ev)
		}
	}
	return e, nil
}

// eventData is what Replay reads of an event.
type eventData struct {
	Agent       string       `json:"agent"`
	Approval    string       `json:"approval"`
	Challenge   string       `json:"challenge"`
	Cost        int64        `json:"cost"`
	Fingerprint payment.Hash `json:"fingerprint"`
	Host        string       `json:"host"`
	Owner       string       `json:"owner"`
	Policy      payment.Hash `json:"policy"`
	Shared      bool         `json:"shared"`
	Slot        string       `json:"slot"`
	Terms       payment.Hash `json:"terms"`
	ValidBefore int64        `json:"valid_before"`
	Watched     bool         `json:"watched"`

	Assumed   bool   `json:"assumed"`
	Delivered bool   `json:"delivered"`
	HTTP      int    `json:"http"`
	Note      string `json:"note"`
	Sent      int    `json:"sent"`
	Spent     int64  `json:"spent"`
	Tx        string `json:"tx"`
}

func (d *eventData) describe(e *Entry) {
	e.Agent, e.ApprovalID, e.ChallengeID = d.Agent, payment.ApprovalID(d.Approval), d.Challenge
	e.Cost, e.Fingerprint, e.Host, e.Owner = payment.USD(d.Cost), d.Fingerprint, d.Host, d.Owner
	e.Policy, e.Shared, e.slot, e.TermsHash, e.Watched = d.Policy, d.Shared, d.Slot, d.Terms, d.Watched
	e.ValidBefore = micro(d.ValidBefore)
}

func (d *eventData) outcome(e *Entry, ev Event) {
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
	report Report
}

// NewVerification begins one, with the marks of the ledger as Tx.Marks tells
// them.
func NewVerification(marks []Mark) *Verification {
	return &Verification{marks: marks, sums: map[CounterKey]Counter{}}
}

// Problem adds one that the store found itself.
func (v *Verification) Problem(format string, args ...any) {
	if len(v.report.Problems) < 100 {
		v.report.Problems = append(v.report.Problems, fmt.Sprintf(format, args...))
	}
}

// Payment checks one payment and its events, oldest first. Every payment must
// come once, before the counters.
func (v *Verification) Payment(e *Entry, events []Event) {
	v.report.Payments++
	v.report.Events += int64(len(events))
	if got, err := Replay(events); err != nil {
		v.Problem("%s: %v", e.ID, err)
	} else if what := differ(&got, e); what != "" {
		v.Problem("%s: its events tell another %s than its record", e.ID, what)
	}
	if h := e.Terms.Hash(); h != e.TermsHash {
		v.Problem("%s: its terms do not have the hash that was recorded", e.ID)
	}
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
			n.USD, _ = n.USD.Add(e.Cost)
			n.Count++
			v.sums[key] = n
		}
	}
}

// Counter checks one counter against the payments.
func (v *Verification) Counter(key CounterKey, n Counter) {
	if want := v.sums[key]; n != want {
		v.Problem("counter %s / %s: %s in %d payments, but they add up to %s in %d",
			key.Scope.Key(), key.Window, n.USD, n.Count, want.USD, want.Count)
	}
}

// Report is what was found.
func (v *Verification) Report() Report { return v.report }

// written is s as JSON can write it: bytes that are no text are replaced.
func written(s string) string { return string([]rune(s)) }

// differ names the first fact in which a payment replayed from its events
// differs from its record.
func differ(replayed, e *Entry) string {
	a, b := replayed, e
	for _, f := range []struct {
		what string
		same bool
	}{
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
		{"validity", a.ValidBefore.Equal(b.ValidBefore)},
		{"challenge", a.State == Authorized || a.AuthorizedAt.IsZero() || a.ChallengeID == written(b.ChallengeID)},
		{"watch", a.Watched == b.Watched || a.AuthorizedAt.IsZero()},
		{"creation", a.CreatedAt.Equal(b.CreatedAt)},
		{"authorization time", a.AuthorizedAt.Equal(b.AuthorizedAt)},
		{"outcome time", a.OutcomeAt.Equal(b.OutcomeAt)},
		{"spend time", a.SpentAt.Equal(b.SpentAt)},
		{"delivery", a.Delivered == b.Delivered && a.HTTP == b.HTTP && a.Sends == b.Sends},
		{"owner", a.Owner == written(b.Owner)},
		{"assumption", a.Assumed == b.Assumed},
	} {
		if !f.same {
			return f.what
		}
	}
	return ""
}

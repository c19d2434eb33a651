package ledger

import (
	"fmt"
	"strings"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// DecideTx is Approvals.Decide in one step. An approval that expired is
// recorded as such, and ErrDecided returned with it. A grant, unlike a refusal,
// is ErrClockSkew where the clocks disagree.
func DecideTx(tx Tx, d Decision, env Env) (*Approval, error) {
	a, err := tx.Approval(d.ID)
	if err != nil {
		return nil, err
	}
	e, err := tx.Entry(a.Payment)
	if err != nil {
		return nil, err
	}
	seen, err := tx.Seen()
	if err != nil {
		return nil, err
	}
	now, _ := env.lenient(seen, d.Now)
	if d.Approve {
		// A clock that cannot be right must not bring an approval back.
		if now, _, err = env.strict(&seen, d.Now); err != nil {
			return nil, err
		}
	}
	if a.Status == ApprovalPending || a.Status == ApprovalGranted && a.UsedAt.IsZero() {
		if !now.Before(a.ExpiresAt) {
			if err := lapse(tx, e, a, ByRecovery, "", now); err != nil {
				return nil, err
			}
			expired := a.at(now)
			seen.At = latest(seen.At, now)
			if err := tx.SetSeen(seen); err != nil {
				return nil, err
			}
			return &expired, ErrDecided
		}
	}
	switch {
	case a.Status != ApprovalPending || e.State != PendingApproval:
		return a, ErrDecided
	case strings.TrimSpace(d.By) == "":
		return a, fmt.Errorf("ledger: the decision names nobody")
	case isAgent(d.By, a.Agent):
		return a, ErrSelf
	case !d.TermsHash.IsZero() && d.TermsHash != a.TermsHash, a.Terms.Hash() != a.TermsHash, e.TermsHash != a.TermsHash, e.Agent != a.Agent:
		return a, ErrTermsChanged
	}
	ruled := *a
	ruled.Status, ruled.DecidedAt, ruled.By, ruled.Via, ruled.Comment = ApprovalRefused, now, d.By, d.Via, d.Comment
	ruled.Version++
	n := *e
	n.State = Rejected
	if d.Approve {
		ruled.Status, n.State = ApprovalGranted, Approved
	}
	n.Version++
	r := newRecord(128)
	r.text("approval", string(a.ID))
	r.text("by", d.By)
	r.text("comment", d.Comment)
	r.hash("terms", &a.TermsHash)
	r.text("via", d.Via)
	if err := tx.Update(&n, newEvent(&n, e.State, ByPerson, now, r.done())); err != nil {
		return nil, err
	}
	if err := tx.PutApproval(&ruled); err != nil {
		return nil, err
	}
	seen.At = latest(seen.At, now)
	return &ruled, tx.SetSeen(seen)
}

// isAgent reports whether by is the agent, under its name or its public id.
func isAgent(by, agent string) bool {
	by = strings.TrimSpace(by)
	return strings.EqualFold(by, strings.TrimSpace(agent)) || strings.EqualFold(by, payment.AgentID(agent))
}

// at is a as it stands at now, its expiry seen whether or not it was recorded.
func (a Approval) at(now time.Time) Approval {
	open := a.Status == ApprovalPending || a.Status == ApprovalGranted && a.UsedAt.IsZero()
	if open && !now.Before(a.ExpiresAt) {
		a.Status = ApprovalLapsed
	}
	return a
}

// ApprovalAt is a as a store hands it out: the caller's own copy, expired if
// its time is over at now, whether or not that was recorded.
func ApprovalAt(a *Approval, now time.Time) Approval {
	c := a.at(now)
	c.Terms.Recipients = append([]payment.Recipient(nil), a.Terms.Recipients...)
	return c
}

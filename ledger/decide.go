package ledger

import (
	"errors"
	"fmt"
	"slices"
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
	if d.By, err = d.voter(tx, a); err != nil {
		return a, err
	}
	counted, err := standing(tx, a, a.Approvers)
	if err != nil {
		return nil, err
	}
	if d.Approve && counted[FoldApprover(d.By)] {
		return a, ErrVoted
	}
	ruled, err := d.vote(tx, e, a, now)
	if err != nil {
		return nil, err
	}
	seen.At = latest(seen.At, now)
	return ruled, tx.SetSeen(seen)
}

// voter is the name of who makes d, or why nobody who may.
func (d *Decision) voter(tx Tx, a *Approval) (string, error) {
	switch {
	case len(a.Approvers) > 0 && d.Way == InChat:
		return "", ErrChatDisabled
	case len(a.Approvers) > 0 && !a.Names(d.By):
		return "", fmt.Errorf("%w: it names %s", ErrNotNamed, strings.Join(a.Approvers, ", "))
	case len(a.Approvers) == 0 && d.Way == Remote:
		return "", ErrNoApprovers
	case d.Way == InChat && !a.Chat:
		return "", ErrChatDisabled
	case len(a.Approvers) > 0 || d.Credential != "":
		return named(tx, d.By, d.Credential)
	}
	return d.By, nil
}

// named is the approver's name as it was added, where credential is theirs now.
func named(tx Tx, name, credential string) (string, error) {
	who, err := tx.Approver(name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return "", err
	}
	if err != nil {
		who = &Approver{} // it takes as long to find that nobody has this name
	}
	if !who.Holds(credential) {
		return "", ErrCredential
	}
	return who.Name, nil
}

// standing tells whose yes to a counts now, by folded name, of those whom names
// has: a vote counts while its voter may rule with the credential that it was
// given with. What was said before a revocation, a rotation or a return does not.
func standing(tx Tx, a *Approval, names []string) (map[string]bool, error) {
	list, out := Approval{Approvers: names}, map[string]bool{}
	for _, v := range a.Votes {
		if !v.Approve || !list.Names(v.By) {
			continue
		}
		who, err := tx.Approver(v.By)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if err == nil && who.RevokedAt.IsZero() && !v.At.Before(who.CreatedAt) && !v.At.Before(who.RotatedAt) {
			out[FoldApprover(v.By)] = true
		}
	}
	return out, nil
}

// yes is how many people have said yes to a, with the last vote, which is sound.
func yes(tx Tx, a *Approval) (int, error) {
	if len(a.Approvers) == 0 {
		return a.Yes(), nil
	}
	counted, err := standing(tx, a, a.Approvers)
	if last := a.Votes[len(a.Votes)-1]; err == nil && last.Approve {
		counted[FoldApprover(last.By)] = true
	}
	return len(counted), err
}

// cast is votes with v. A yes takes the place of the yes that its voter gave with
// a credential which is no more.
func cast(votes []Vote, v Vote) []Vote {
	again := func(o Vote) bool { return v.Approve && FoldApprover(o.By) == FoldApprover(v.By) }
	return append(slices.DeleteFunc(slices.Clone(votes), again), v)
}

// vote records the answer d to what waits, and what follows from it.
func (d *Decision) vote(tx Tx, e *Entry, a *Approval, now time.Time) (*Approval, error) {
	ruled, n := *a, *e
	ruled.Votes = cast(ruled.Votes, Vote{By: d.By, Via: d.Via, Approve: d.Approve, At: now, Comment: d.Comment})
	said, err := yes(tx, &ruled)
	switch {
	case err != nil:
		return nil, err
	case !d.Approve:
		ruled.Status, n.State = ApprovalRefused, Rejected
	case said >= ruled.Quorum:
		ruled.Status, n.State = ApprovalGranted, Approved
	}
	if ruled.Status != ApprovalPending {
		ruled.DecidedAt, ruled.By, ruled.Via, ruled.Comment = now, d.By, d.Via, d.Comment
	}
	ruled.Version++
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
	return &ruled, tx.PutApproval(&ruled)
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
	c.Approvers, c.Votes = slices.Clone(a.Approvers), slices.Clone(a.Votes)
	return c
}

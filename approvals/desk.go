// Package approvals is where people rule on payments. It has no signer: nothing
// in it can pay.
package approvals

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// Ruling is a person's answer to a request for approval.
type Ruling struct {
	Approve    bool
	By         string // who rules, and never the requesting agent; where it is empty the credential tells
	Credential string // of By; required where the policy names approvers, and never stored
	Reason     string // for the record; may be empty

	// TermsHash is the hash of the terms that the person saw. Where it is set
	// and the stored terms differ, the ruling is refused.
	TermsHash payment.Hash
}

// String tells the ruling without the credential.
func (r Ruling) String() string {
	verb := "denied"
	if r.Approve {
		verb = "approved"
	}
	return fmt.Sprintf("%s by %s", verb, r.By)
}

// GoString is String.
func (r Ruling) GoString() string { return r.String() }

// Desk rules on approvals on behalf of whoever can open the ledger itself: the
// command line and the page. It is safe for concurrent use.
type Desk struct {
	store ledger.Store
	via   string
	way   ledger.Way
	now   func() time.Time
}

// NewDesk returns a desk over store. via names it in the record: cli, page,
// terminal or a name of your own. A ruling that came through the paying program
// goes by client, and one over a network by webhook: such desks rule only where
// the policy names approvers. What the agent's own host says goes by chat, which
// the policy has to allow, and which never stands for an approver. now is the
// desk's clock, time.Now where nil.
func NewDesk(store ledger.Store, via string, now func() time.Time) *Desk {
	if now == nil {
		now = time.Now
	}
	d := &Desk{store: store, via: via, now: now}
	switch via {
	case "client", "webhook":
		d.way = ledger.Remote
	case "chat":
		d.way = ledger.InChat
	}
	return d
}

// ErrNoName is returned for a ruling that does not say who rules.
var ErrNoName = errors.New("approvals: a ruling names who made it")

// Rule records r on the approval id, in one durable step with the payment's
// own move. Where the policy wants several people, a yes may leave it pending,
// with r among its Votes; one denial ends it. Where it names approvers, the
// credential is judged in that step too: a rotated or revoked one is dead.
//
// The errors are ledger.ErrNotFound, ledger.ErrDecided and ledger.ErrVoted with
// the approval as it stands, ledger.ErrTermsChanged, ledger.ErrSelf, ErrNoName,
// ErrCredential, ledger.ErrNotNamed, ledger.ErrNoApprovers,
// ledger.ErrChatDisabled, ledger.ErrClockSkew, and the store's own.
func (d *Desk) Rule(ctx context.Context, id payment.ApprovalID, r Ruling) (Approval, error) {
	if r.By == "" && r.Credential != "" {
		name, ok := Credential(r.Credential).Name()
		if !ok {
			return Approval{}, ErrCredential
		}
		r.By = name
	}
	if strings.TrimSpace(r.By) == "" {
		return Approval{}, ErrNoName
	}
	if !id.Valid() {
		return Approval{}, fmt.Errorf("approvals: %q is not an approval's id: %w", clip(string(id)), ledger.ErrNotFound)
	}
	return d.store.Approvals().Decide(ctx, ledger.Decision{
		ID: id, Approve: r.Approve, TermsHash: r.TermsHash,
		By: r.By, Credential: r.Credential, Way: d.way, Via: d.via, Comment: r.Reason, Now: d.now(),
	})
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

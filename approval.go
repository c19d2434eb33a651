package canopy

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/internal/host"
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// notifyTime bounds what channels get to tell people.
const notifyTime = 5 * time.Second

// Why Decide and DecideInChat refuse.
var (
	// ErrNoApprovers says that the policy names nobody who may rule through the
	// program: only the command line and the page can.
	ErrNoApprovers = ledger.ErrNoApprovers

	// ErrCredential says that the credential is not that of an approver who may
	// rule now.
	ErrCredential = ledger.ErrCredential

	// ErrChatDisabled says that the policy lets nobody rule in the chat, or
	// names approvers, for whom the chat never stands.
	ErrChatDisabled = ledger.ErrChatDisabled
)

// ApprovalStatus tells how a request for approval stands, or
// ledger.ErrNotFound. It sees this agent's approvals only.
func (c *Client) ApprovalStatus(ctx context.Context, id ApprovalID) (Approval, error) {
	if !id.Valid() {
		return Approval{}, fmt.Errorf("canopy: %q is not an approval's id: %w", clip(string(id)), ledger.ErrNotFound)
	}
	a, err := c.cfg.Store.Approvals().Approval(ctx, id, c.cfg.Now())
	if err == nil && a.Agent != c.cfg.Agent {
		err = ledger.ErrNotFound
	}
	if err != nil {
		return Approval{}, fmt.Errorf("canopy: approval %s: %w", id, err)
	}
	return a, nil
}

// WaitForApproval waits until a person has answered, or the request expired, or
// ctx ends. It only waits: an approved Fetch is carried out by the equal Fetch
// again. The answer is in the approval's Status; an error means that there is
// none yet.
func (c *Client) WaitForApproval(ctx context.Context, id ApprovalID) (Approval, error) {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		a, err := c.ApprovalStatus(ctx, id)
		if err != nil || a.Status != ledger.ApprovalPending {
			return a, err
		}
		if err := clock.Sleep(ctx, c.cfg.Clock, pause); err != nil {
			return a, err
		}
	}
}

// Decide rules on one of this agent's approvals through the program, with the
// credential of one of the approvers whom the policy names: it is refused with
// ErrNoApprovers where that names none, and with ErrCredential without theirs.
// The agent's own process holds none. Where the policy wants several people the
// approval may stay pending, with this ruling among its Votes. The other errors
// are those of approvals.Desk.Rule.
func (c *Client) Decide(ctx context.Context, id ApprovalID, r Ruling) (Approval, error) {
	a, err := c.ApprovalStatus(ctx, id)
	if err != nil {
		return Approval{}, err
	}
	if len(a.Approvers) == 0 {
		return a, fmt.Errorf("canopy: approval %s: %w", id, ErrNoApprovers)
	}
	return c.rule(ctx, "client", id, r)
}

// DecideInChat rules on one of this agent's approvals by what a person said to
// the host that the agent runs in, and is recorded as said in chat. Nothing
// proves that it was a person: it is refused with ErrChatDisabled unless the
// policy has chat_approval on, now and when the approval was asked, and always
// where the policy names approvers. A Ruling without By is made by "chat".
func (c *Client) DecideInChat(ctx context.Context, id ApprovalID, r Ruling) (Approval, error) {
	a, err := c.ApprovalStatus(ctx, id)
	if err != nil {
		return Approval{}, err
	}
	if v := c.evaluate(a); !v.Chat || len(v.Approvers) > 0 {
		return a, fmt.Errorf("canopy: approval %s: %w", id, ErrChatDisabled)
	}
	if r.By == "" && r.Credential == "" {
		r.By = "chat"
	}
	return c.rule(ctx, "chat", id, r)
}

// evaluate is what the policy says of what an approval asks for, as it is today.
func (c *Client) evaluate(a Approval) policy.Verdict {
	p := payment.Payment{ID: a.Payment, Agent: a.Agent, Terms: a.Terms, Purpose: a.Purpose}
	if o, err := host.ParseOrigin(a.Terms.Origin); err == nil {
		p.Host, p.Port = o.Host, o.Port
	}
	return c.cfg.Policy.Evaluate(p, c.cfg.Now(), policy.History{})
}

func (c *Client) rule(ctx context.Context, via string, id ApprovalID, r Ruling) (Approval, error) {
	a, err := approvals.NewDesk(c.cfg.Store, via, c.cfg.Now).Rule(ctx, id, r)
	if err != nil {
		err = fmt.Errorf("canopy: approval %s: %w", id, err)
	}
	return a, err
}

// verdictOf is nil for a granted approval, and else the error that its call
// ends with.
func (c *Client) verdictOf(a Approval, r Result) error {
	r.Status, r.ExpiresAt = Denied, a.ExpiresAt
	switch a.Status {
	case ledger.ApprovalGranted:
		return nil
	case ledger.ApprovalRefused:
		r.State = ledger.Rejected
		text := "A person denied it"
		if a.Comment != "" {
			text += ": " + plaintext.Clean(a.Comment, 200)
		}
		r.deny("rejected", text)
	case ledger.ApprovalLapsed:
		r.State = ledger.ApprovalExpired
		r.deny("approval_expired", "Nobody approved it in time")
	default:
		return &PendingError{r}
	}
	return &DeniedError{Result: r}
}

// pendingResult is what a call gets while a person is asked.
func (c *Client) pendingResult(ctx context.Context, e ledger.Entry) Result {
	r := resultOf(e)
	a, err := c.cfg.Store.Approvals().Approval(context.WithoutCancel(ctx), e.ApprovalID, c.cfg.Now())
	if err == nil {
		r.ExpiresAt = a.ExpiresAt
		if r.Reason == "" {
			r.Reason = a.Reason
		}
	}
	return r
}

// notify tells every channel, all at once, and logs the ones that fail.
func (c *Client) notify(ctx context.Context, e ledger.Entry) {
	if len(c.cfg.Channels) == 0 {
		return
	}
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), c.cfg.Clock, notifyTime)
	defer cancel()
	a, err := c.cfg.Store.Approvals().Approval(ctx, e.ApprovalID, c.cfg.Now())
	if err != nil {
		c.log(ctx, levelError, "approval not announced", &e, slog.String("error", err.Error()))
		return
	}
	var wg sync.WaitGroup
	for i, ch := range c.cfg.Channels {
		wg.Go(func() {
			if err := safeNotify(ctx, ch, a); err != nil {
				c.log(ctx, levelError, "approval channel failed", &e, slog.Int("channel", i), slog.String("error", err.Error()))
			}
		})
	}
	wg.Wait()
}

// safeNotify is ch.Notify, with a panic made an error.
func safeNotify(ctx context.Context, ch approvals.Channel, a Approval) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return ch.Notify(ctx, a)
}

package canopy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/ledger"
)

// notifyTime bounds what channels get to tell people.
const notifyTime = 5 * time.Second

// ErrNoApprovers says that the policy names nobody who may rule through the
// program: only the command line and the page can.
var ErrNoApprovers = errors.New("canopy: no_approvers: the policy names no approvers, so that only canopy approvals can rule")

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
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		a, err := c.ApprovalStatus(ctx, id)
		if err != nil || a.Status != ledger.ApprovalPending {
			return a, err
		}
		if err := clock.Sleep(ctx, c.cfg.Clock, pause); err != nil {
			return a, err
		}
	}
}

// Decide rules on an approval through the program. It is refused with
// ErrNoApprovers unless the policy names approvers; the agent's own process
// holds no approver's credential.
func (c *Client) Decide(ctx context.Context, id ApprovalID, r Ruling) (Approval, error) {
	a, err := c.ApprovalStatus(ctx, id)
	if err != nil {
		return Approval{}, err
	}
	return a, ErrNoApprovers
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

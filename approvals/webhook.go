package approvals

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/ledger"
)

// WebhookConfig is that of NewWebhook.
type WebhookConfig struct {
	// Name tells this webhook's deliveries from those of others on the ledger;
	// "webhook" where empty. Under another name everything is due again.
	Name string

	// URL is where messages are posted: https, or http on loopback. Required.
	URL string

	// Secret signs each delivery. Required.
	Secret HookSecret

	// Store keeps what is due. Required, and it has to have ledger.Deliveries.
	Store ledger.Store

	// Page is the address of the page that approvers use, for people to follow.
	// It carries no secret. Empty for none.
	Page string

	// Transport carries the posts; http.DefaultTransport's settings without a
	// proxy where nil. Redirects are not followed by any.
	Transport http.RoundTripper

	Timeout time.Duration // of one attempt; 10 s where 0
	Clock   clock.Clock   // the system's where nil
	Logger  *slog.Logger  // failures; nil for none
}

// Webhook is a Channel that posts approvals to a URL: that one is asked for,
// and how it ended. What is due stands in the ledger and is tried again, with
// growing pauses, by whichever process looks next: by Notify, and by Run in
// those that live long. An answer to the post says no more than that it
// arrived; people answer through Answers. It is safe for concurrent use.
type Webhook struct {
	cfg    WebhookConfig
	box    ledger.Deliveries
	client *http.Client
}

var _ Channel = (*Webhook)(nil)

// NewWebhook returns a webhook. It does no I/O and starts nothing.
func NewWebhook(c WebhookConfig) (*Webhook, error) {
	if c.Name == "" {
		c.Name = "webhook"
	}
	if err := ledger.CheckChannel(c.Name); err != nil {
		return nil, fmt.Errorf("approvals: WebhookConfig.Name: %w", err)
	}
	if err := CheckHookURL(c.URL); err != nil {
		return nil, fmt.Errorf("approvals: WebhookConfig.URL %w", err)
	}
	switch {
	case c.Secret.IsZero():
		return nil, errors.New("approvals: WebhookConfig.Secret is missing: see ParseHookSecret")
	case c.Timeout < 0:
		return nil, errors.New("approvals: WebhookConfig.Timeout is below 0")
	}
	box, ok := c.Store.(ledger.Deliveries)
	if !ok {
		return nil, fmt.Errorf("approvals: WebhookConfig.Store: a %T keeps no deliveries", c.Store)
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.Proxy, t.MaxResponseHeaderBytes = nil, 64<<10
		c.Transport = t
	}
	return &Webhook{cfg: c, box: box, client: &http.Client{
		Transport:     c.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// CheckHookURL tells why no webhook posts to s. The error does not quote it: it
// may be a secret.
func CheckHookURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return errors.New("is no address such as https://hooks.example/canopy")
	case u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())):
		return errors.New("has to be https; http is for loopback alone")
	case u.User != nil || u.Fragment != "":
		return errors.New("takes no user and no fragment")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Name is the webhook's name in the outbox.
func (w *Webhook) Name() string { return w.cfg.Name }

// Notify delivers what is due, a among it. Its error is that of a's attempt; the
// next one is in the ledger.
func (w *Webhook) Notify(ctx context.Context, a Approval) error {
	return w.round(ctx, func(d ledger.Delivery) bool { return d.Approval.ID == a.ID })
}

// Deliver makes one attempt at everything that is due, and returns the errors of
// those that failed.
func (w *Webhook) Deliver(ctx context.Context) error {
	return w.round(ctx, func(ledger.Delivery) bool { return true })
}

// Run delivers what is due every so often, and at once at first, until ctx ends.
// It returns nil then. Failures are logged and tried again.
func (w *Webhook) Run(ctx context.Context, every time.Duration) error {
	for {
		if err := w.Deliver(ctx); err != nil && ctx.Err() == nil {
			w.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "webhook", slog.String("channel", w.cfg.Name), slog.String("error", err.Error()))
		}
		if clock.Sleep(ctx, w.cfg.Clock, every) != nil {
			return nil
		}
	}
}

// A round gives up a target that failed so often in a row: what is left stays
// due for the next one.
const maxFailures = 3

// round claims and delivers one after the other until nothing is due. wanted
// says whose failures the caller is told of.
func (w *Webhook) round(ctx context.Context, wanted func(ledger.Delivery) bool) error {
	var errs []error
	for failed := 0; failed < maxFailures; {
		due, err := w.box.ClaimDeliveries(ctx, w.cfg.Name, w.cfg.Clock.Now(), w.cfg.Timeout+5*time.Second, 1)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		if len(due) == 0 {
			break
		}
		if err := w.deliver(ctx, due[0]); err != nil {
			if failed++; wanted(due[0]) {
				errs = append(errs, err)
			}
			continue
		}
		failed = 0
	}
	return errors.Join(errs...)
}

// deliver makes one attempt, and records what became of it.
func (w *Webhook) deliver(ctx context.Context, d ledger.Delivery) error {
	told := ledger.ToldAsked
	if d.Approval.Status != ledger.ApprovalPending {
		told = ledger.ToldOutcome
	}
	pause, err := w.post(ctx, d)
	next := time.Time{}
	if err != nil {
		err = fmt.Errorf("approvals: webhook %s: %s: %w", w.cfg.Name, d.Approval.ID, err)
		if told == ledger.ToldAsked || d.Attempts+1 < maxOutcomeAttempts {
			told, next = d.Told, w.cfg.Clock.Now().Add(max(pause, backoff(d.Attempts)))
		}
	}
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	// Of a context of its own: what arrived is not sent again because the
	// caller went away.
	record, cancel := clock.WithTimeout(context.WithoutCancel(ctx), w.cfg.Clock, 5*time.Second)
	defer cancel()
	return errors.Join(err, w.box.EndDelivery(record, w.cfg.Name, d.Approval.ID, told, next, failure))
}

// A request is told until it ends. An outcome that could not be told so often
// is given up: the ledger has it.
const maxOutcomeAttempts = 20

// backoff is the pause after so many failures before this one: 5 s, doubled
// each time, ten minutes at most, less up to a fifth of it by chance.
func backoff(failures int) time.Duration {
	d := min(5*time.Second<<min(failures, 10), 10*time.Minute)
	return d - rand.N(d/5)
}

// maxRetryAfter is the longest pause that a target may ask for.
const maxRetryAfter = time.Hour

// post sends one delivery. pause is what the target asked for, or 0.
func (w *Webhook) post(ctx context.Context, d ledger.Delivery) (pause time.Duration, err error) {
	now := w.cfg.Clock.Now()
	m, err := messageOf(d.Approval, w.cfg.Page, now)
	if err != nil {
		return 0, err
	}
	body, err := m.encode()
	if err != nil {
		return 0, err
	}
	ctx, cancel := clock.WithTimeout(ctx, w.cfg.Clock, w.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("the URL cannot be posted to")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "canopy-webhook")
	w.cfg.Secret.sign(req.Header, string(d.Approval.ID)+"."+d.Approval.Status.String(), now, body)
	resp, err := w.client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // the URL may be a secret of its own
		}
		return 0, err
	}
	defer resp.Body.Close()
	io.CopyN(io.Discard, resp.Body, 16<<10) // so that the connection can be used again
	if resp.StatusCode/100 == 2 {
		return 0, nil
	}
	if s, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 64); err == nil && s > 0 {
		pause = min(time.Duration(min(s, int64(maxRetryAfter/time.Second)))*time.Second, maxRetryAfter)
	}
	return pause, fmt.Errorf("the target answered %d", resp.StatusCode)
}

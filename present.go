package canopy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

const (
	maxResends    = 2
	maxRetryAfter = 30 * time.Second
)

// present sends e's authorization and records what comes of it. The same bytes
// are sent again where a second challenge states the same terms, at most twice,
// and on a lane they are signed again for its new challenge; nothing else is ever
// signed for this payment.
func (c *Client) present(ctx context.Context, p *purchase, rail Rail, e ledger.Entry, auth payment.Authorization) (*http.Response, error) {
	sent := secrets{auth}
	again := 0 // how often these bytes were sent before
	for sends := 1; ; sends++ {
		if err := c.mayGoOn(ctx); err != nil {
			return nil, c.giveUp(ctx, e, sends-1, payment.Receipt{}, err)
		}
		req, err := p.body.paid(p.req, auth)
		if err != nil {
			return nil, c.giveUp(ctx, e, sends-1, payment.Receipt{}, err)
		}
		resp, err := c.send(req)
		if err != nil {
			return nil, c.giveUp(ctx, e, sends, payment.Receipt{}, sent.redactError(err))
		}
		if !isChallenge(resp) {
			return c.delivered(ctx, p, rail, e, auth, sent, resp, sends), nil
		}
		now := c.second(resp, p, rail, e, auth)
		now.receipt, now.stop = sent.redact(now.receipt), sent.redactError(now.stop)
		resp.Body.Close()
		if claimed(now.receipt, e.Sends+sends-1) {
			return nil, c.giveUp(ctx, e, sends, now.receipt, nil)
		}
		vary := now.varies(e, auth)
		if now.stop != nil || again >= maxResends && !vary || !p.mayResend(e) {
			return nil, c.giveUp(ctx, e, sends, now.receipt, now.stop)
		}
		wait := resendAfter(resp, now.receipt, again+1)
		if !vary && e.SignBefore.Sub(c.cfg.Now())-wait < minValidity {
			return nil, c.giveUp(ctx, e, sends, now.receipt, errors.New("its validity ends before it could be sent again"))
		}
		if err := clock.Sleep(ctx, c.cfg.Clock, wait); err != nil {
			return nil, c.giveUp(ctx, e, sends, now.receipt, err)
		}
		if again++; vary {
			next, nextAuth, err := c.vary(ctx, rail, e, *now.offer)
			if err != nil {
				return nil, c.giveUp(ctx, next, sends, now.receipt, err)
			}
			e, auth, again = next, nextAuth, 0
			sent = append(sent, auth)
		}
	}
}

// varies reports whether e can be signed for the challenge that answered it: on a
// lane, where of all that is signed one moves money.
func (a challenged) varies(e ledger.Entry, auth payment.Authorization) bool {
	return a.offer != nil && e.Slot.Kind == payment.SlotLane && len(auth.Raw) == 0 && !a.offer.Broadcast &&
		a.offer.ChallengeID != e.ChallengeID && e.Variants < ledger.MaxVariants
}

// vary has e permitted for a further challenge, by a commit of its own, and signs
// it for that.
func (c *Client) vary(ctx context.Context, rail Rail, e ledger.Entry, o payment.Offer) (ledger.Entry, payment.Authorization, error) {
	if err := c.mayGoOn(ctx); err != nil {
		return e, payment.Authorization{}, err
	}
	detached, cancel := clock.WithTimeout(context.WithoutCancel(ctx), c.cfg.Clock, recordTime)
	defer cancel()
	next, err := c.cfg.Store.Advance(detached, ledger.Change{
		ID: e.ID, Version: e.Version, To: e.State, By: ledger.ByClient, Now: c.cfg.Now(),
		Variant: &ledger.Variant{
			ChallengeID: o.ChallengeID, Realm: o.Realm, Version: o.Version, Echo: o.Echo,
			Validity: e.Terms.Validity, Expires: o.Expires,
		},
	})
	if err != nil {
		return e, payment.Authorization{}, fmt.Errorf("signing it for a further challenge: %w", err)
	}
	auth, err := c.authorize(ctx, rail, next)
	return next, auth, err
}

// send is the transport's RoundTrip of a request that carries a payment: where
// it panics, the payment is in doubt like any other that got no answer.
func (c *Client) send(req *http.Request) (resp *http.Response, err error) {
	defer recovered(&err, "the transport")
	resp, err = c.cfg.Transport.RoundTrip(req)
	if err == nil && resp.Request == nil {
		resp.Request = req
	}
	return resp, err
}

// claimed reports whether the seller's word counts as settlement; that our
// nonce is used counts only if these bytes were sent before.
func claimed(r payment.Receipt, sentBefore int) bool {
	return r.Claim == payment.ClaimPaid || r.Claim == payment.ClaimUsed && sentBefore > 0
}

// recordable is what a seller's further word changes in the record of e, or nil.
// What was claimed with its transaction stands, and a transaction that was named
// is not forgotten for a word that names none, such as that the nonce is used.
func recordable(e ledger.Entry, r payment.Receipt) *payment.Receipt {
	if e.State.Paid() && (e.Receipt.TxHash != "" || r.Claim != payment.ClaimPaid) {
		return nil
	}
	if r.TxHash == "" {
		r.TxHash = e.Receipt.TxHash
	}
	return &r
}

// mayResend reports whether the same bytes may be sent again without the
// caller's asking: some sellers run their handler a second time.
func (p *purchase) mayResend(e ledger.Entry) bool {
	m := method(p.req)
	return e.Resend || m == http.MethodGet || m == http.MethodHead
}

// delivered records an answer that is not a challenge and returns it.
func (c *Client) delivered(ctx context.Context, p *purchase, rail Rail, e ledger.Entry, auth payment.Authorization, sent secrets, resp *http.Response, sends int) *http.Response {
	receipt, err := rail.Receipt(resp, grantOf(e, auth))
	if err != nil {
		receipt = payment.Receipt{Code: "bad_receipt", Message: plaintext.Clean(err.Error(), 300)}
	}
	receipt = sent.redact(receipt)
	ch := ledger.Change{
		To: doubt(e), Receipt: recordable(e, receipt), HTTP: resp.StatusCode, Sent: sends,
		Delivered: resp.StatusCode >= 200 && resp.StatusCode < 400,
	}
	if claimed(receipt, e.Sends+sends-1) {
		ch.To = ledger.Claimed
	}
	e, warning := c.record(ctx, e, ch)
	r := resultOf(e)
	r.Warning = warning
	return withResult(resp, p.req, r)
}

// grantOf is what a receipt of auth is held against.
func grantOf(e ledger.Entry, auth payment.Authorization) payment.Grant {
	g := e.Grant()
	g.TxHash = auth.TxHash
	return g
}

// giveUp records that no answer came, and returns the error that says so: a
// *PaidError where the seller claims settlement, else an *InDoubtError.
func (c *Client) giveUp(ctx context.Context, e ledger.Entry, sends int, receipt payment.Receipt, cause error) error {
	ch := ledger.Change{To: doubt(e), Sent: sends, Note: noteOf(cause)}
	if receipt != (payment.Receipt{}) {
		ch.Receipt = recordable(e, receipt)
	}
	if claimed(receipt, e.Sends+sends-1) {
		ch.To = ledger.Claimed
	}
	e, warning := c.record(ctx, e, ch)
	r := resultOf(e)
	r.Warning = warning
	if e.State.Paid() {
		return &PaidError{Result: r, Code: receipt.Code, Message: receipt.Message, SafeAfter: e.SafeAfter(), Delivered: e.Delivered, Err: cause}
	}
	phase := SentUnknown
	switch {
	case e.Sends == 0:
		phase = SignedNotSent
	case receipt.Claim == payment.ClaimRefused:
		phase = RefusedAfter
	}
	return &InDoubtError{Result: r, Phase: phase, Code: receipt.Code, Message: receipt.Message, SafeAfter: e.SafeAfter(), Err: cause}
}

// challenged is what a challenge after the payment says.
type challenged struct {
	receipt payment.Receipt
	offer   *payment.Offer // on the same terms; nil where none states them
	stop    error          // why the bytes are not sent again
}

var errOtherTerms = errors.New("the seller now asks for other terms")

// second reads a challenge that answered a payment.
func (c *Client) second(resp *http.Response, p *purchase, rail Rail, e ledger.Entry, auth payment.Authorization) challenged {
	body, err := c.readChallenge(resp)
	if err != nil {
		return challenged{stop: fmt.Errorf("reading the %d after payment: %w", resp.StatusCode, err)}
	}
	rest := resp.Body
	resp.Body = io.NopCloser(bytes.NewReader(body))
	receipt, err := rail.Receipt(resp, grantOf(e, auth))
	resp.Body = rest
	if err != nil {
		receipt = payment.Receipt{Code: "bad_receipt", Message: plaintext.Clean(err.Error(), 300)}
	}
	out := challenged{receipt: receipt}
	offers, err := rail.Offers(resp, body)
	if err != nil && len(offers) == 0 {
		return out // no terms stated
	}
	for _, o := range offers {
		t := o.Terms(method(p.req), p.origin.String(), p.target, p.digest)
		t.Validity = e.Terms.Validity
		if t.Hash() == e.TermsHash && o.Slot == e.Slot.Kind && len(o.Echo) <= payment.MaxEcho {
			out.offer = &o
			return out
		}
	}
	if len(offers) > 0 {
		out.stop = errOtherTerms
	}
	return out
}

// resendAfter is how long to wait before the same bytes are sent again.
func resendAfter(resp *http.Response, r payment.Receipt, sends int) time.Duration {
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s >= 0 {
		return min(time.Duration(min(s, 3600))*time.Second, maxRetryAfter)
	}
	if r.Claim == payment.ClaimPending && sends == 1 {
		return 0 // the seller joins the transaction that it has broadcast
	}
	return time.Duration(sends) * 250 * time.Millisecond
}

// join answers a call by the payment that already stands for it.
func (c *Client) join(ctx context.Context, p *purchase, e ledger.Entry, why *ledger.JoinedError) (*http.Response, error) {
	switch e.State {
	case ledger.PendingApproval, ledger.Approved:
		return nil, &PendingError{c.pendingResult(ctx, e)}
	case ledger.Authorized:
		return nil, &InFlightError{resultOf(e)}
	case ledger.InDoubt, ledger.Claimed, ledger.Settled:
	default:
		return nil, &InDoubtError{Result: resultOf(e), Phase: SentUnknown, SafeAfter: e.SafeAfter(), Err: why}
	}
	cause := c.resendable(p, e)
	if cause == nil {
		rail := c.rails[e.Terms.Rail]
		auth, err := c.authorize(ctx, rail, e)
		if err == nil && len(auth.Raw) > 0 {
			if e, err = c.push(ctx, e, auth); err != nil {
				return nil, err
			}
		}
		if err == nil {
			return c.present(ctx, p, rail, e, auth)
		}
		cause = err
	}
	r := resultOf(e)
	if e.State.Paid() {
		return nil, &PaidError{Result: r, Code: e.Receipt.Code, SafeAfter: e.SafeAfter(), Delivered: e.Delivered, Err: cause}
	}
	return nil, &InDoubtError{Result: r, Phase: SentUnknown, Code: e.Receipt.Code, SafeAfter: e.SafeAfter(), Err: cause}
}

// resendable tells why e's bytes cannot be sent again, or nil.
func (c *Client) resendable(p *purchase, e ledger.Entry) error {
	if err := c.reusable(e); err != nil {
		return err
	}
	if !p.mayResend(e) {
		return errors.New("this seller could carry out the request a second time")
	}
	return nil
}

// reusable tells why e's bytes cannot be made again, or nil.
func (c *Client) reusable(e ledger.Entry) error {
	switch {
	case c.rails[e.Terms.Rail] == nil:
		return fmt.Errorf("this client has no rail %s to send it again", e.Terms.Rail)
	case e.SignBefore.Sub(c.cfg.Now()) < minValidity:
		return errors.New("its bytes are dead, or about to be")
	case e.Payer != c.Address():
		return fmt.Errorf("it was paid from another account, %s", e.Payer)
	case !payment.IsDeterministic(c.cfg.Treasury.Signer):
		return errors.New("this signer cannot make the same bytes again")
	}
	return nil
}

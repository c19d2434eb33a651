package canopy

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/canopy-go/canopy/internal/bounded"
	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/payment"
)

// Fetch sends req under ctx, follows redirects, and pays where a seller asks
// for it and the policy allows it. The answer is the seller's, its body
// unbuffered and the caller's to close; PaymentOf tells what it cost. Any
// status but an unpaid 402 is an answer, whether the payment went through or
// not. Otherwise the error is a *PendingError, *DeniedError, *InDoubtError,
// *PaidError, *InFlightError, ErrKeyConflict, ErrBodyNotReplayable, or the
// transport's own.
//
// A challenge of a protocol that no rail knows is an answer like any other; to a
// client without rails each is a denial.
func (c *Client) Fetch(ctx context.Context, req *http.Request, opts ...Option) (*http.Response, error) {
	o, err := optionsOf(opts)
	if err != nil {
		return nil, err
	}
	if req == nil {
		return nil, errors.New("canopy: Fetch of a nil request")
	}
	o.announce = true
	hc := http.Client{Transport: fetcher{c, o}, CheckRedirect: checkRedirect}
	if o.stay {
		hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	resp, err := hc.Do(req.WithContext(ctx))
	var wrapped *url.Error
	if errors.As(err, &wrapped) && ours(wrapped.Err) {
		err = wrapped.Err
	}
	return resp, err
}

// fetcher is a RoundTripper that carries the options of one Fetch.
type fetcher struct {
	c *Client
	o options
}

func (f fetcher) RoundTrip(req *http.Request) (*http.Response, error) { return f.c.roundTrip(req, f.o) }

// ours reports whether err is one that Fetch documents.
func ours(err error) bool {
	switch err.(type) {
	case *PendingError, *DeniedError, *InDoubtError, *PaidError, *InFlightError:
		return true
	}
	return errors.Is(err, ErrKeyConflict) || errors.Is(err, ErrBodyNotReplayable) || errors.Is(err, ErrClockSkew)
}

const (
	maxChallenge  = 64 << 10 // bytes of a 402 that are read, decoded
	challengeTime = 15 * time.Second
)

// answer deals with a challenge: it pays and returns the paid answer, or
// returns resp itself where it is not ours to pay. It closes resp otherwise.
func (c *Client) answer(req *http.Request, resp *http.Response, body *replay, o options, began time.Time) (*http.Response, error) {
	deadline := began.Add(o.wait)
	for {
		asked, err := c.readOffers(resp)
		if err != nil {
			resp.Body.Close()
			return nil, fmt.Errorf("canopy: reading the %d: %w", resp.StatusCode, err)
		}
		if len(asked.offers) == 0 && asked.skipped == nil && len(c.rails) > 0 {
			return resp, nil // nobody's, or it states no terms
		}
		if r, ok := paidOnTheWay(req); ok {
			return withResult(resp, req, r), nil
		}
		if len(c.rails) == 0 {
			resp.Body.Close()
			return nil, &DeniedError{Result: denial("no_rail", noRail)}
		}
		if len(asked.offers) == 0 {
			resp.Body.Close()
			return nil, &DeniedError{denial("no_usable_offer", "none of the seller's offers can be paid"), asked.skipped}
		}
		// The body may still be on its way while the connection is open.
		p, err := c.newPurchase(req, body, o, began)
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		paid, err := c.buy(req.Context(), p, asked.offers)
		var pending *PendingError
		if o.wait <= 0 || !errors.As(err, &pending) {
			return paid, err
		}
		left := deadline.Sub(c.cfg.Now())
		if err := c.await(req.Context(), pending, left); err != nil {
			return nil, err
		}
		// Approved: the request is sent afresh, and its new 402 is matched.
		again, err := body.again(req)
		if err != nil {
			return nil, err
		}
		if resp, err = c.cfg.Transport.RoundTrip(again); err != nil {
			return nil, err
		}
		resp.Request = req
		if !isChallenge(resp) {
			return resp, nil
		}
	}
}

// await waits for a person's answer to what is pending, for at most left. It
// returns nil once it is approved, the pending error itself when the time is
// up, and a denial otherwise.
func (c *Client) await(ctx context.Context, pending *PendingError, left time.Duration) error {
	if left <= 0 {
		return pending
	}
	waiting, cancel := clock.WithTimeout(ctx, c.cfg.Clock, left)
	defer cancel()
	a, err := c.WaitForApproval(waiting, pending.Result.ApprovalID)
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return pending
	case err != nil:
		return fmt.Errorf("%w (%w)", pending, err) // it still waits for a person
	}
	return c.verdictOf(a, pending.Result)
}

// asked is what a challenge was found to ask for.
type asked struct {
	offers  []offered
	skipped error // what rails found wrong; nil where no rail knows the challenge
	empty   error // a rail knows the challenge, and it states no terms
}

// readOffers reads a challenge and gives it to every rail. resp.Body is left
// such that the caller of the client can still read all of it.
func (c *Client) readOffers(resp *http.Response) (asked, error) {
	var out asked
	body, err := c.readChallenge(resp)
	if err != nil {
		return out, err
	}
	for _, r := range c.cfg.Rails {
		rail := c.rails[r.Name()]
		found, err := rail.Offers(resp, body)
		for _, offer := range found {
			if len(offer.Echo) <= payment.MaxEcho {
				out.offers = append(out.offers, offered{rail: rail, offer: offer})
			}
		}
		switch {
		case err == nil, errors.Is(err, payment.ErrNotMine):
		case errors.Is(err, payment.ErrNoTerms):
			out.empty = err
		default:
			out.skipped = errors.Join(out.skipped, err)
		}
	}
	return out, nil
}

// readChallenge reads at most maxChallenge bytes of resp, within challengeTime,
// and leaves resp.Body as it was. A caller who asked for gzip itself gets the
// body in gzip, and we read it decoded.
func (c *Client) readChallenge(resp *http.Response) ([]byte, error) {
	if resp.Body == nil || resp.Body == http.NoBody {
		return nil, nil
	}
	orig := resp.Body
	stop := clock.AfterFunc(c.cfg.Clock, challengeTime, func() { orig.Close() })
	body, _, err := bounded.ReadAll(orig, maxChallenge)
	if !stop() {
		return nil, fmt.Errorf("the seller took more than %s to say what it asks", challengeTime)
	}
	resp.Body = bounded.Replay(body, err, orig)
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		if z, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, _, _ = bounded.ReadAll(z, maxChallenge)
		}
	}
	return body[:min(len(body), maxChallenge)], nil
}

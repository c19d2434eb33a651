package canopy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/canopy-go/canopy/internal/plaintext"
)

// Check is what a URL asks for, and whether the policy would let it be paid.
type Check struct {
	Status    Status
	Rail      string // empty where the page is free
	Scheme    string
	Chain     ChainID
	Network   string // as the seller spelled the chain
	Amount    USD    // what the recipients get together
	Fee       USD    // the fee bound
	Recipient Address
	Asset     Asset

	Recipients []Payee // all of them, the primary one first

	URL         string // that was asked, after redirects
	ResourceURL string // as the seller states it; data, not advice
	Description string // the seller's words, cleaned; data, not advice
	Realm       string
	HTTP        int // status of the answer

	Code    string // of Reason
	Reason  string // one line, where it is not allowed
	Reasons []Reason

	Others []Alternative // the seller's other offers, and why they were not chosen
	Cached bool          // the offers are at most 60 s old; the verdict is fresh
}

// Cost is the amount and the fee bound together: what limits, prices and
// choices use.
func (k Check) Cost() USD { return costOf(k.Amount, k.Fee) }

const (
	checkAge   = time.Minute
	checkCache = 256
)

// CheckURL asks for rawURL with GET, unpaid, and tells what it costs and what
// the policy says of that. Nothing is signed, reserved or stored; only the
// parsed offers are kept, for 60 seconds, and are never used to pay. A page that
// asks for nothing is allowed and costs nothing.
func (c *Client) CheckURL(ctx context.Context, rawURL string, opts ...Option) (Check, error) {
	seen, o, cached, err := c.look(ctx, rawURL, opts)
	if err != nil {
		return Check{}, err
	}
	check, err := c.checkOffers(ctx, seen, o)
	check.Cached = cached
	return check, err
}

// look is what rawURL asks for, as it answers now or did within a minute.
func (c *Client) look(ctx context.Context, rawURL string, opts []Option) (seen probed, o options, cached bool, err error) {
	if o, err = optionsOf(opts); err != nil {
		return seen, o, false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		return seen, o, false, fmt.Errorf("canopy: check: %w", err)
	}
	if req.URL.Host == "" {
		return seen, o, false, fmt.Errorf("canopy: check: %q has no host", clip(rawURL))
	}
	now := c.cfg.Now()
	if seen, cached = c.offers.get(rawURL, now); !cached {
		if seen, err = c.probe(c.announced(req)); err != nil {
			return seen, o, false, err
		}
		c.offers.put(rawURL, seen, now)
	}
	return seen, o, cached, nil
}

// probed is what a URL answered.
type probed struct {
	asked
	at     time.Time
	req    *http.Request // that was answered, after redirects
	status int
	asks   bool // a challenge, known or not
}

// probe asks for req without paying.
func (c *Client) probe(req *http.Request) (probed, error) {
	hc := http.Client{Transport: c.cfg.Transport, CheckRedirect: checkRedirect}
	resp, err := hc.Do(req)
	if err != nil {
		return probed{}, fmt.Errorf("canopy: check: %w", err)
	}
	defer resp.Body.Close()
	out := probed{req: resp.Request, status: resp.StatusCode, asks: isChallenge(resp)}
	if out.asks {
		if out.asked, err = c.readOffers(resp); err != nil {
			return probed{}, fmt.Errorf("canopy: check: reading the %d: %w", resp.StatusCode, err)
		}
	}
	return out, nil
}

// checkOffers judges what was probed as a Fetch would now.
func (c *Client) checkOffers(ctx context.Context, seen probed, o options) (Check, error) {
	out := Check{Status: Allowed, HTTP: seen.status, URL: seen.req.URL.String()}
	if !seen.asks {
		return out, nil
	}
	if len(seen.offers) == 0 {
		switch {
		case len(c.rails) == 0:
			out.deny("no_rail", noRail)
		case seen.skipped != nil:
			out.deny("no_usable_offer", "none of the seller's offers can be paid: "+plaintext.Clean(seen.skipped.Error(), 300))
		case seen.empty != nil:
			out.deny("no_terms", "the seller asks for payment and states no terms")
		default:
			out.deny("no_usable_offer", "the seller asks for payment in a way that no rail of this client knows")
		}
		return out, nil
	}
	now := c.cfg.Now()
	p, err := c.newPurchase(seen.req, newReplay(seen.req), o, now) // a GET has no body
	if err != nil {
		return c.checkDenied(out, seen.offers[0], err)
	}
	chosen, others, err := c.choose(ctx, p, seen.offers)
	if err != nil {
		if len(others) == len(seen.offers) {
			out.Others = others[1:] // the first one's denial is the answer
		}
		return c.checkDenied(out, seen.offers[0], err)
	}
	out.describe(chosen)
	v := chosen.verdict
	uses, err := c.cfg.Store.Use(ctx, v.Limits, now)
	if err != nil {
		return out, fmt.Errorf("canopy: check: reading the ledger: %w", err)
	}
	if v, err = c.underBudget(ctx, v.Apply(uses), now); err != nil {
		return out, fmt.Errorf("canopy: check: budget: %w", err)
	}
	r := Result{Status: v.Status}
	r.setReasons(v.Reasons)
	if err := c.previewLedger(ctx, &r, chosen.terms); err != nil {
		return out, err
	}
	out.Status, out.Code, out.Reason, out.Reasons = r.Status, r.Code, r.Reason, r.Reasons
	out.Others = others
	return out, nil
}

// checkDenied is out for an offer that is denied before the policy's caps.
func (c *Client) checkDenied(out Check, first offered, err error) (Check, error) {
	var denied *DeniedError
	if !errors.As(err, &denied) {
		return out, err
	}
	out.describe(first)
	out.Status, out.Code, out.Reason, out.Reasons = Denied, denied.Result.Code, denied.Result.Reason, denied.Result.Reasons
	if denied.Err != nil {
		out.Reason += ": " + denied.Err.Error()
	}
	return out, nil
}

func (k *Check) deny(code, text string) {
	r := denial(code, text)
	k.Status, k.Code, k.Reason, k.Reasons = r.Status, r.Code, r.Reason, r.Reasons
}

// describe fills in the offer.
func (k *Check) describe(o offered) {
	k.Rail, k.Scheme, k.Network, k.Chain = o.offer.Rail, o.offer.Scheme, o.offer.Network, o.offer.Asset.Chain
	k.Asset, k.Fee, k.Realm = o.offer.Asset, o.offer.FeeBound, plaintext.Clean(o.offer.Realm, 200)
	k.Amount, _ = o.offer.Asset.Value(o.offer.Amount)
	if k.Recipients = payees(o.offer.Asset, o.offer.Recipients); len(k.Recipients) > 0 {
		k.Recipient = k.Recipients[0].Address
	}
	k.ResourceURL, k.Description = plaintext.Clean(o.offer.Resource, 2048), plaintext.Clean(o.offer.Description, 500)
}

// offerCache keeps what URLs asked for, for a minute. The zero value is empty.
type offerCache struct {
	mu sync.Mutex
	m  map[string]probed
}

func (k *offerCache) get(url string, now time.Time) (probed, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, ok := k.m[url]
	age := now.Sub(p.at)
	return p, ok && age >= 0 && age < checkAge
}

func (k *offerCache) put(url string, p probed, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil {
		k.m = make(map[string]probed)
	}
	for u, old := range k.m {
		if age := now.Sub(old.at); age < 0 || age >= checkAge {
			delete(k.m, u)
		}
	}
	if len(k.m) >= checkCache {
		clear(k.m)
	}
	p.at = now
	k.m[url] = p
}

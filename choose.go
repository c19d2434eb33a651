package canopy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/canopy-go/canopy/internal/host"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// offered is an offer, the rail that read it, and what the policy says of it.
type offered struct {
	rail    Rail
	offer   payment.Offer
	terms   payment.Terms
	payment payment.Payment
	verdict policy.Verdict
	unread  string // why its balance is not known, where others' was looked for
}

// purchase is one request that a seller wants paid.
type purchase struct {
	req    *http.Request
	body   *replay
	opts   options
	began  time.Time
	now    time.Time
	origin host.Origin
	target string
	digest [32]byte
	print  payment.Hash // what equal calls share
}

// newPurchase checks what has to hold whatever the seller asks: an origin that
// may be paid, a body that can be sent again, somebody who can sign.
func (c *Client) newPurchase(req *http.Request, body *replay, o options, began time.Time) (*purchase, error) {
	if why := redirected(req); why != "" {
		return nil, &DeniedError{Result: denial("redirected", why)}
	}
	origin, err := host.FromURL(req.URL)
	if err != nil {
		return nil, &DeniedError{denial("bad_origin", "the seller's address cannot be judged"), err}
	}
	if req.Host != "" && req.Host != req.URL.Host {
		return nil, &DeniedError{Result: denial("host_mismatch", fmt.Sprintf("the request goes to %s and asks for %q", origin, clip(req.Host)))}
	}
	if origin.Scheme != "https" && !host.IsLoopback(origin) {
		return nil, &DeniedError{Result: denial("insecure_transport", fmt.Sprintf("%s is not encrypted: plain http is paid only on this machine", origin))}
	}
	if c.cfg.Treasury.Signer == nil {
		return nil, &DeniedError{Result: denial("no_signer", "this client has no key to pay with")}
	}
	p := &purchase{
		req: req, body: body, opts: o, began: began, now: c.cfg.Now(),
		origin: origin, target: req.URL.RequestURI(),
	}
	if p.digest, err = body.digest(); err != nil {
		return nil, err
	}
	p.print = fingerprint(method(req), origin.String(), p.target, p.digest)
	return p, nil
}

func method(req *http.Request) string { return cmp.Or(req.Method, http.MethodGet) }

// fingerprint is what a key stands for: method, URL and body digest.
func fingerprint(method, origin, target string, body [32]byte) payment.Hash {
	buf := make([]byte, 0, 256)
	for _, s := range [...]string{"canopy.fetch.v1", method, origin, target} {
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(s)))
		buf = append(buf, s...)
	}
	return sha256.Sum256(append(buf, body[:]...))
}

// choose returns the offer to go on with, and why not the others: one that a
// person already approved, else the first that is allowed, else the first that
// a person would be asked about, else the first one, whose denial is the answer.
// Offers that the account is known to cover come first, then the cheaper ones.
func (c *Client) choose(ctx context.Context, p *purchase, offers []offered) (offered, []Alternative, error) {
	var usable []offered
	var others []Alternative
	var denied error
	for _, o := range offers {
		if err := c.judge(ctx, p, &o); err == nil {
			usable = append(usable, o)
		} else {
			if no := (*DeniedError)(nil); !errors.As(err, &no) {
				return offered{}, nil, err // it was not judged
			}
			denied = cmp.Or(denied, err)
			others = append(others, o.alternative(Denied, denialText(err)))
		}
	}
	if len(usable) == 0 {
		return offered{}, others, denied
	}
	slices.SortStableFunc(usable, func(a, b offered) int { return cmp.Compare(a.verdict.Cost, b.verdict.Cost) })
	usable, poor, err := c.funds(ctx, usable)
	if err != nil {
		return offered{}, others, err
	}
	if len(usable) == 0 { // the account is short for all of them
		usable, poor = poor[:1], poor[1:]
	}
	for _, o := range poor {
		others = append(others, o.alternative(Denied, o.refusal()))
	}
	best := 0
	if len(usable) > 1 { // the ledger judges the caps of a single one as it reserves
		var verdicts []policy.Verdict
		var approved bool
		if best, verdicts, approved, err = c.best(ctx, p, usable); err != nil {
			return offered{}, others, err
		}
		for i, o := range usable {
			if i != best {
				o.verdict = verdicts[i]
				why := o.whyNot(usable[best], verdicts[best].Status, approved)
				others = append(others, o.alternative(o.verdict.Status, why))
			}
		}
	}
	if len(others) > 0 {
		return usable[best].chosen(others), others, nil
	}
	return usable[best], nil, nil
}

// best is the index of the offer to take among several that can be taken, their
// verdicts with what the caps leave, and whether a person approved the one.
func (c *Client) best(ctx context.Context, p *purchase, usable []offered) (best int, verdicts []policy.Verdict, approved bool, err error) {
	granted, err := c.granted(ctx, p)
	if err != nil {
		return 0, nil, false, fmt.Errorf("canopy: reading the ledger: %w", err)
	}
	found := payment.Denied
	verdicts = make([]policy.Verdict, len(usable))
	for i, o := range usable {
		v := o.verdict
		if v.Status != payment.Denied {
			uses, err := c.cfg.Store.Use(ctx, v.Limits, p.now)
			if err != nil {
				return 0, nil, false, fmt.Errorf("canopy: reading the ledger: %w", err)
			}
			v = v.Apply(uses)
		}
		verdicts[i] = v
		switch {
		case approved:
		case granted[o.terms.Hash()]:
			best, approved = i, true
		case v.Status > found:
			best, found = i, v.Status
		}
	}
	return best, verdicts, approved, nil
}

// judge completes o with its terms and the policy's verdict, or tells why the
// offer cannot be taken whatever the ledger holds.
func (c *Client) judge(ctx context.Context, p *purchase, o *offered) error {
	offer := o.offer
	if !offer.Expires.IsZero() && offer.Expires.Sub(p.now) < minValidity {
		return &DeniedError{Result: denial("expired_offer", "the seller's offer has expired, or is about to")}
	}
	if offer.Digest != nil && *offer.Digest != p.digest {
		return &DeniedError{Result: denial("body_mismatch", "the seller's offer is for a request with another body")}
	}
	if offer.Slot == payment.SlotNone {
		return &DeniedError{Result: denial("bad_terms", "the rail "+offer.Rail+" names no slot for its offer")}
	}
	o.terms = offer.Terms(method(p.req), p.origin.String(), p.target, p.digest)
	o.payment = payment.Payment{
		Agent: c.cfg.Agent, Terms: o.terms, Host: p.origin.Host, Port: p.origin.Port, Purpose: p.opts.purpose,
	}
	if err := o.terms.Check(c.Address()); err != nil {
		return &DeniedError{denial("bad_terms", "the seller's terms cannot be paid"), err}
	}
	var err error
	if o.verdict, err = c.verdict(ctx, &o.payment, p.now); err != nil {
		return err
	}
	if p.opts.hasMaxPrice && o.verdict.Cost > p.opts.maxPrice {
		return &DeniedError{Result: overPrice(o.terms, p.opts.maxPrice)}
	}
	o.terms.Validity = o.verdict.MaxValidity
	if offer.Validity > 0 {
		o.terms.Validity = min(o.terms.Validity, offer.Validity)
	}
	if offer.Slot == payment.SlotExpiring {
		o.terms.Validity = min(o.terms.Validity, expiringValidity)
	}
	if o.terms.Validity < minValidity {
		return &DeniedError{Result: denial("validity_too_short",
			fmt.Sprintf("an authorization would be valid for %s only, and %s are needed (max_validity is %s)", o.terms.Validity, minValidity, o.verdict.MaxValidity))}
	}
	o.payment.Terms = o.terms
	return nil
}

// overPrice denies t, which costs more than the caller would pay.
func overPrice(t payment.Terms, most USD) Result {
	word := "Amount"
	amount, _ := t.Asset.Value(t.Amount)
	if t.FeeBound > 0 {
		word = "Cost"
	}
	r := denial("max_price", fmt.Sprintf("%s %s exceeds the caller's maximum of %s", word, costText(amount, t.FeeBound), most))
	r.Amount, r.Fee, r.Recipients = amount, t.FeeBound, payees(t.Asset, t.Recipients)
	r.Reasons[0].Cost, r.Reasons[0].Limit = t.Cost(), most
	return r
}

const (
	minValidity      = 10 * time.Second // the least that is worth a signature
	expiringValidity = 25 * time.Second // the most that Tempo's expiring nonce takes, two clocks apart
)

// granted is the terms of this agent's payments to the host that a person has
// approved and that are not carried out.
func (c *Client) granted(ctx context.Context, p *purchase) (map[payment.Hash]bool, error) {
	out := map[payment.Hash]bool{}
	q := ledger.Query{Agent: c.cfg.Agent, Host: p.origin.Host, States: []ledger.State{ledger.Approved}, Limit: 100}
	for e, err := range c.cfg.Store.Entries(ctx, q) {
		if err != nil {
			return nil, err
		}
		out[e.TermsHash] = true
	}
	return out, nil
}

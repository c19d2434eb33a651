package x402

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"slices"

	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/payment"
)

// maxAccepts is how many entries of accepts are looked at.
const maxAccepts = 16

// challenge is a PaymentRequired document. Its parts may be absent.
type challenge struct {
	version    int
	accepts    jsonscan.Value
	resource   jsonscan.Value
	extensions jsonscan.Value
	message    jsonscan.Value // the seller's error
	payer      jsonscan.Value // version 1, after a refused payment
}

// Offers reads the offers of a 402: from the PAYMENT-REQUIRED header, or from
// the body where there is no header or an unreadable one. It returns
// payment.ErrNotMine where neither speaks x402, a *ChallengeError where the
// challenge is refused whole, and a *SkippedError, beside the offers that can be
// paid, where entries were skipped.
//
// Offers come in an order of their own, not the seller's: those that settle
// after the answer before those that settle first, then by what they say.
func (r *Rail) Offers(resp *http.Response, body []byte) ([]payment.Offer, error) {
	if resp.StatusCode != http.StatusPaymentRequired {
		return nil, payment.ErrNotMine
	}
	headers := resp.Header.Values(headerRequired)
	switch len(headers) {
	case 0:
		c, err := readBody(body)
		if err != nil {
			return nil, err
		}
		return r.offers(c)
	case 1:
	default:
		return nil, &ChallengeError{"several_headers", "PAYMENT-REQUIRED stands there more than once"}
	}
	found, readable, err := r.quoted(headers[0])
	if !readable {
		var refused *ChallengeError
		if errors.As(err, &refused) {
			return nil, refused
		}
		c, err := readBody(body)
		if err != nil {
			return nil, &ChallengeError{"unreadable_header", "PAYMENT-REQUIRED is neither base64 nor JSON, and the body has no terms"}
		}
		return r.offers(c)
	}
	if other, bad := readBody(body); bad == nil {
		if also, _ := r.offers(other); !contains(found, also) {
			return nil, &ChallengeError{"header_body_conflict", "the body offers what the header does not"}
		}
	}
	return found, err
}

// readHeader reads a PAYMENT-REQUIRED header. Its error is a *ChallengeError
// unless the header cannot be read at all.
func readHeader(value string) (challenge, error) {
	doc, err := unwrap(value)
	if err != nil {
		return challenge{}, err
	}
	v, err := parse(doc)
	if err != nil {
		return challenge{}, err
	}
	c, version, err := readChallenge(v)
	if err != nil {
		return c, err
	}
	if c.version = 2; !absent(version) && version.Raw() != "2" {
		return c, &ChallengeError{"unsupported_version", "PAYMENT-REQUIRED has version " + skipped("", version.Raw()).detail}
	}
	return c, nil
}

// readBody reads a body that says which version of x402 it speaks, and returns
// payment.ErrNotMine for any other.
func readBody(body []byte) (challenge, error) {
	head := bytes.TrimLeft(body[:min(len(body), maxDocument)], " \t\r\n")
	if !bytes.HasPrefix(head, []byte("{")) || !bytes.Contains(head, []byte(`"x402Version"`)) {
		return challenge{}, payment.ErrNotMine
	}
	v, err := parse(body)
	if err != nil {
		var refused *ChallengeError
		if errors.As(err, &refused) {
			return challenge{}, refused
		}
		return challenge{}, &ChallengeError{"unreadable_body", err.Error()}
	}
	c, version, err := readChallenge(v)
	if err != nil {
		return c, err
	}
	switch version.Raw() {
	case "1":
		c.version = 1
	case "2":
		c.version = 2
	case "":
		return c, payment.ErrNotMine // the text stands deeper in the document
	default:
		return c, &ChallengeError{"unsupported_version", "the body has version " + skipped("", version.Raw()).detail}
	}
	return c, nil
}

func readChallenge(v jsonscan.Value) (c challenge, version jsonscan.Value, err error) {
	err = v.Object(func(key string, val jsonscan.Value) error {
		switch key {
		case "x402Version":
			version = val
		case "accepts":
			c.accepts = val
		case "resource":
			c.resource = val
		case "extensions":
			c.extensions = val
		case "error":
			c.message = val
		case "payer":
			c.payer = val
		}
		return nil
	})
	return c, version, err
}

// offers reads each entry by itself: a bad one is skipped.
func (r *Rail) offers(c challenge) ([]payment.Offer, error) {
	if k := c.accepts.Kind(); k != jsonscan.Array && !absent(c.accepts) {
		return nil, &ChallengeError{"no_terms", "accepts is " + k.String()}
	}
	var (
		room  [2]usable // most sellers make one offer
		found = room[:0]
		bad   []Skipped
		past  int // entries that were not looked at
		echo  = c.echo()
	)
	if !absent(c.accepts) {
		c.accepts.Array(func(i int, v jsonscan.Value) error {
			if i >= maxAccepts {
				past++
				return nil
			}
			q, why := r.read(v, c.version)
			if why == (skip{}) {
				q.echo, why = echo.of(q)
			}
			if why == (skip{}) {
				found = append(found, q)
			} else {
				bad = append(bad, Skipped{i, why.code, why.detail})
			}
			return nil
		})
	}
	if past > 0 {
		bad = append(bad, Skipped{maxAccepts, "too_many", "this entry and all after it"})
	}
	if len(found) == 0 && len(bad) == 0 {
		return nil, &ChallengeError{"no_terms", "accepts is empty"}
	}
	var err error
	if len(bad) > 0 {
		err = &SkippedError{bad}
	}
	if len(found) == 0 {
		return nil, err
	}
	if len(found) > 1 {
		slices.SortFunc(found, usable.compare)
	}
	offers := make([]payment.Offer, len(found))
	recipients := make([]payment.Recipient, len(found))
	for i, q := range found {
		recipients[i] = payment.Recipient{Address: q.payTo, Amount: q.amount}
		offers[i] = q.offer(c)
		offers[i].Recipients = recipients[i : i+1 : i+1]
	}
	return offers, err
}

// contains reports whether each offer of some is, by its terms, in all.
func contains(all, some []payment.Offer) bool {
	return !slices.ContainsFunc(some, func(o payment.Offer) bool {
		return !slices.ContainsFunc(all, func(p payment.Offer) bool {
			return o.Asset == p.Asset && o.Amount == p.Amount && o.Recipients[0] == p.Recipients[0]
		})
	})
}

// compare orders usable entries by what they say, so that a seller's order of
// them decides nothing.
func (q usable) compare(p usable) int {
	flow := func(q usable) int {
		if q.upfront {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(flow(q), flow(p)),
		cmp.Compare(q.token.asset.Chain, p.token.asset.Chain),
		q.token.asset.Address.Compare(p.token.asset.Address),
		q.amount.Cmp(p.amount),
		q.payTo.Compare(p.payTo),
		bytes.Compare(q.echo, p.echo),
	)
}

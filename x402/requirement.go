package x402

import (
	"strconv"
	"strings"
	"time"

	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/payment"
)

const (
	// minTimeout is the shortest validity that is of use: a facilitator wants
	// 6 s of it left, and the request has to get there.
	minTimeout = 10

	// maxTimeout bounds the seconds that are counted; a policy allows far
	// less.
	maxTimeout = 100 * 365 * 24 * 3600
)

var burn = payment.Address{18: 0xde, 19: 0xad}

// requirement is one entry of accepts as it was written.
type requirement struct {
	scheme, network, amount, asset, payTo, timeout jsonscan.Value
	resource, description                          jsonscan.Value
	name, version, method, flow                    jsonscan.Value // of extra
}

// usable is an entry that can be paid.
type usable struct {
	token    *token
	raw      string // the whole entry
	network  string // as written
	amount   payment.Units
	payTo    payment.Address
	validity time.Duration // 0 where the seller states none
	upfront  bool          // settles before the answer

	resource, description string
	echo                  []byte
}

// read reads one entry of a document of that version.
func (r *Rail) read(v jsonscan.Value, version int) (usable, skip) {
	q, why := split(v, version)
	if why != (skip{}) {
		return usable{}, why
	}
	u := usable{raw: v.Raw(), network: text(q.network)}
	if s := text(q.scheme); s != exact {
		return u, skipped("unknown_scheme", s)
	}
	switch flow := text(q.flow); {
	case absent(q.flow), flow == "authorization":
	case flow == "upfront":
		u.upfront = true
	default:
		return u, skipped("unknown_flow", q.flow.Raw())
	}
	if !absent(q.method) && text(q.method) != "eip3009" {
		return u, skipped("unknown_method", q.method.Raw())
	}
	if why := r.readToken(&u, q, version); why != (skip{}) {
		return u, why
	}
	if why := r.readAmount(&u, q); why != (skip{}) {
		return u, why
	}
	u.resource, u.description = text(q.resource), text(q.description)
	return u, u.readTimeout(q)
}

// split takes an entry apart. The two versions differ in the amount's key.
func split(v jsonscan.Value, version int) (q requirement, why skip) {
	amount := "amount"
	if version == 1 {
		amount = "maxAmountRequired"
	}
	var extra jsonscan.Value
	err := v.Object(func(key string, val jsonscan.Value) error {
		switch key {
		case amount:
			q.amount = val
		case "scheme":
			q.scheme = val
		case "network":
			q.network = val
		case "asset":
			q.asset = val
		case "payTo":
			q.payTo = val
		case "maxTimeoutSeconds":
			q.timeout = val
		case "resource":
			q.resource = val
		case "description":
			q.description = val
		case "extra":
			extra = val
		}
		return nil
	})
	if err != nil {
		return q, skipped("malformed", "the entry is "+v.Kind().String())
	}
	if absent(extra) {
		return q, skip{}
	}
	if err := q.readExtra(extra); err != nil {
		return q, skipped("malformed", "extra is "+extra.Kind().String())
	}
	return q, skip{}
}

func (q *requirement) readExtra(extra jsonscan.Value) error {
	return extra.Object(func(key string, val jsonscan.Value) error {
		switch key {
		case "name":
			q.name = val
		case "version":
			q.version = val
		case "assetTransferMethod":
			q.method = val
		case "paymentFlow":
			q.flow = val
		}
		return nil
	})
}

// readToken finds the pinned token, by chain and address alone, and holds what
// the seller says of its domain against the table.
func (r *Rail) readToken(u *usable, q requirement, version int) skip {
	chain, ok := chainOf(u.network, version)
	if !ok {
		return skipped("unknown_network", q.network.Raw())
	}
	if !r.serves(chain) {
		return skipped("chain_not_configured", u.network)
	}
	address, why := r.address(q.asset, "bad_asset")
	if why != (skip{}) {
		return why
	}
	t := r.tokens[tokenKey{chain, address}]
	if t == nil {
		return skipped("unknown_asset", text(q.asset)+" on "+string(chain))
	}
	if t.asset.NoAuthorization {
		return skipped("no_authorization", t.asset.String())
	}
	if !absent(q.name) && text(q.name) != t.asset.Name {
		return skipped("domain_mismatch", "name "+q.name.Raw())
	}
	if !absent(q.version) && text(q.version) != t.asset.Version {
		return skipped("domain_mismatch", "version "+q.version.Raw())
	}
	u.token = t
	return skip{}
}

func (r *Rail) readAmount(u *usable, q requirement) skip {
	var err error
	if u.amount, err = payment.ParseUnits(text(q.amount)); err != nil {
		return skipped("bad_amount", q.amount.Raw())
	}
	if u.amount.IsZero() {
		return skipped("zero_amount", "")
	}
	var why skip
	if u.payTo, why = r.address(q.payTo, "bad_payee"); why != (skip{}) {
		return why
	}
	switch u.payTo {
	case payment.Address{}:
		return skipped("zero_payee", "")
	case u.token.asset.Address:
		return skipped("token_payee", "")
	case burn:
		return skipped("burn_payee", "")
	}
	return skip{}
}

// readTimeout reads a whole number of seconds. A fraction of zeros is what
// sellers write who count in floats.
func (u *usable) readTimeout(q requirement) skip {
	if q.timeout.Kind() == jsonscan.Missing {
		return skip{}
	}
	s, err := q.timeout.Number()
	if err != nil {
		return skipped("bad_timeout", q.timeout.Raw())
	}
	if whole, frac, ok := strings.Cut(s, "."); ok && strings.Trim(frac, "0") == "" {
		s = whole
	}
	n, err := strconv.ParseUint(s, 10, 64)
	switch {
	case err != nil && !allDigits(s) || n == 0:
		return skipped("bad_timeout", q.timeout.Raw())
	case n < minTimeout:
		return skipped("short_timeout", s+" s")
	}
	u.validity = time.Duration(min(n, maxTimeout)) * time.Second
	return skip{}
}

func allDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// offer is the entry as an offer; its recipients are the caller's to set.
func (u usable) offer(c challenge) payment.Offer {
	resource, description := u.resource, u.description
	if c.version == 2 {
		resource, description = c.about()
	}
	return payment.Offer{
		Rail: Name, Scheme: exact, Slot: payment.SlotEVM, Asset: u.token.asset, Amount: u.amount,
		Validity:    u.validity,
		Network:     u.network,
		Resource:    plaintext.Clean(resource, 2048),
		Description: plaintext.Clean(description, 512),
		Version:     c.version,
		Resend:      c.version == 2,
		Echo:        u.echo,
	}
}

// about is what a challenge of version 2 says that it sells.
func (c challenge) about() (url, description string) {
	if c.resource.Kind() != jsonscan.Object {
		return "", ""
	}
	c.resource.Object(func(key string, val jsonscan.Value) error {
		switch key {
		case "url":
			url = text(val)
		case "description":
			description = text(val)
		}
		return nil
	})
	return url, description
}

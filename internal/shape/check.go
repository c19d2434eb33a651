package shape

import (
	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/payment"
)

// Check is the result of canopy_check_url. Of a free page the status is
// allowed, the amount 0 and everything of an offer null.
type Check struct {
	Status      string       `json:"status"`
	Rail        *string      `json:"rail"`
	ChainID     *uint64      `json:"chainId"`
	AmountUSD   *payment.USD `json:"amountUsd"` // null where the price cannot be told
	Recipient   *Recipient   `json:"recipient"`
	ResourceURL *string      `json:"resourceUrl"`
	Scheme      *string      `json:"scheme"`
	Network     *string      `json:"network"`
	Realm       *string      `json:"realm"`
	Cached      bool         `json:"cached"`
	Reason      string       `json:"reason,omitempty"`

	// Where it is not allowed.
	Code    string   `json:"code,omitempty"`
	Reasons []Reason `json:"reasons,omitempty"`
}

// Recipient is who would be paid.
type Recipient struct {
	Address payment.Address `json:"address"`
	Slug    *string         `json:"slug"`
	Name    *string         `json:"name"`
}

// CheckOf is the shape of c.
func CheckOf(c canopy.Check) Check {
	out := Check{Status: c.Status.String(), Cached: c.Cached, Reason: plaintext.Clean(c.Reason, maxText)}
	if c.Status != canopy.Allowed {
		out.Code, out.Reasons = c.Code, reasonsOf(c.Reasons)
	}
	if c.Rail == "" {
		if c.Status == canopy.Allowed {
			out.AmountUSD = new(payment.USD)
		}
		return out
	}
	total, _ := c.Amount.Add(c.Fee)
	out.Rail, out.AmountUSD, out.Scheme = &c.Rail, &total, orNull(c.Scheme)
	if n, ok := c.Chain.Number(); ok {
		out.ChainID = &n
	}
	out.Network = orNull(c.Chain.Name())
	out.ResourceURL, out.Realm = said(c.ResourceURL, maxURL), said(c.Realm, 200)
	if !c.Recipient.IsZero() {
		out.Recipient = &Recipient{Address: c.Recipient}
	}
	return out
}

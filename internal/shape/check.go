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

	FeeUSD     *payment.USD `json:"feeUsd"` // the bound
	CostUSD    *payment.USD `json:"costUsd"`
	Recipients []Payee      `json:"recipients"` // all of them, the primary one first
	Others     []Other      `json:"others"`     // the seller's other offers
}

// Other is an offer that was not chosen.
type Other struct {
	Rail      string       `json:"rail"`
	ChainID   *uint64      `json:"chainId"`
	Network   *string      `json:"network"`
	AmountUSD *payment.USD `json:"amountUsd"`
	FeeUSD    *payment.USD `json:"feeUsd"`
	CostUSD   *payment.USD `json:"costUsd"`
	Status    string       `json:"status"`
	Reason    string       `json:"reason"` // why it was not chosen

	Token      payment.Address `json:"token"`
	Symbol     string          `json:"symbol"`
	Recipients []Payee         `json:"recipients"`
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
	out.Recipients, out.Others = payeesOf(c.Recipients), make([]Other, len(c.Others))
	for i, o := range c.Others {
		out.Others[i] = otherOf(o)
	}
	if c.Rail == "" {
		if c.Status == canopy.Allowed {
			out.AmountUSD, out.FeeUSD, out.CostUSD = new(payment.USD), new(payment.USD), new(payment.USD)
		}
		return out
	}
	out.AmountUSD, out.FeeUSD, out.CostUSD = counted(c.Amount), &c.Fee, counted(c.Cost())
	out.Rail, out.Scheme = &c.Rail, orNull(c.Scheme)
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

func otherOf(a canopy.Alternative) Other {
	o := Other{
		Rail: a.Rail, Network: orNull(a.Chain.Name()), AmountUSD: counted(a.Amount), FeeUSD: &a.Fee, CostUSD: counted(a.Cost()),
		Status: a.Status.String(), Reason: plaintext.Words(a.Reason, maxText),
		Token: a.Asset.Address, Symbol: a.Asset.Symbol, Recipients: payeesOf(a.Recipients),
	}
	if n, ok := a.Chain.Number(); ok {
		o.ChainID = &n
	}
	return o
}

func payeesOf(to []canopy.Payee) []Payee {
	out := make([]Payee, len(to))
	for i, p := range to {
		out[i] = Payee{p.Address, counted(p.Amount)}
	}
	return out
}

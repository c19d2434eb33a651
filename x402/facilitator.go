package x402

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/canopy-go/canopy/internal/host"
	"github.com/canopy-go/canopy/payment"
)

// Facilitator is a service that submits authorizations to a chain and pays the
// gas: the HTTP API of x402, of which only /settle is used.
type Facilitator struct {
	// URL is its address, to which /settle is added. Plain http is for this
	// machine only.
	URL string

	// Header is sent with every request, such as an API key. It is never
	// logged or told in errors, and what an answer repeats of it is in no
	// receipt.
	Header http.Header

	// Transport sends the requests. A transport of the rail's own where nil,
	// without a proxy. Redirects are never followed.
	Transport http.RoundTripper

	// Timeout bounds one request. Default 25 s: it may wait for a block, and
	// within the validity of 60 s there is time for a second one.
	Timeout time.Duration
}

// ErrNoFacilitator is wrapped where a chain has none.
var ErrNoFacilitator = errors.New("x402: no facilitator is configured")

// FacilitatorError says that a facilitator gave no answer that can be read.
// The authorization may have reached it.
type FacilitatorError struct {
	Host   string // of the facilitator; the rest of its URL may hold a key
	Status int    // 0 where no answer came
	Err    error
}

// Error tells the host and the cause.
func (e *FacilitatorError) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("x402: the facilitator %s answered %d: %v", e.Host, e.Status, e.Err)
	}
	return fmt.Sprintf("x402: the facilitator %s: %v", e.Host, e.Err)
}

// Unwrap is Err.
func (e *FacilitatorError) Unwrap() error { return e.Err }

// facilitator is a Facilitator that is ready for use.
type facilitator struct {
	host    string
	settle  string // URL
	header  http.Header
	client  *http.Client
	secrets []string
}

func newFacilitator(f Facilitator) (*facilitator, error) {
	u, err := url.Parse(f.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("URL is not an http or https URL")
	}
	origin, err := host.FromURL(u)
	if err != nil || u.Scheme == "http" && !host.IsLoopback(origin) {
		return nil, errors.New("URL is plain http: what it is sent is for its eyes only")
	}
	out := &facilitator{host: u.Host, header: f.Header.Clone(), secrets: secretsOf(u, f.Header)}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/")+"/settle", ""
	out.settle = u.String()
	if f.Timeout <= 0 {
		f.Timeout = 25 * time.Second
	}
	if f.Transport == nil {
		f.Transport = &http.Transport{
			ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute,
			TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		}
	}
	out.client = &http.Client{
		Transport: f.Transport, Timeout: f.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return out, nil
}

// facilitators makes those of a Config ready.
func (r *Rail) facilitators(all map[payment.ChainID]Facilitator) error {
	r.settle = make(map[payment.ChainID]*facilitator, len(all))
	for chain, f := range all {
		if !r.serves(chain) || !r.pays(chain) {
			return fmt.Errorf("x402: Config.Facilitators: the rail has no token to pay with on %s", chain)
		}
		ready, err := newFacilitator(f)
		if err != nil {
			return fmt.Errorf("x402: Config.Facilitators[%s]: %w", chain, err)
		}
		r.settle[chain] = ready
	}
	return nil
}

// pays reports whether the rail has a token on chain.
func (r *Rail) pays(chain payment.ChainID) bool {
	for key := range r.tokens {
		if key.chain == chain && r.token(chain, key.address) != nil {
			return true
		}
	}
	return false
}

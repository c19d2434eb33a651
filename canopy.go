package canopy

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// The nouns, under short names.
type (
	USD        = payment.USD
	Units      = payment.Units
	Address    = payment.Address
	ChainID    = payment.ChainID
	Asset      = payment.Asset
	PaymentID  = payment.ID
	ApprovalID = payment.ApprovalID
	Status     = payment.Status
	Offer      = payment.Offer
	Transfer   = payment.Transfer
	State      = ledger.State
	Approval   = ledger.Approval
	Ruling     = approvals.Ruling
	Reason     = policy.Reason
)

// Dollar is one dollar, as in 25*canopy.Dollar.
const Dollar = payment.Dollar

// The three outcomes of a decision.
const (
	Denied          = payment.Denied
	PendingApproval = payment.PendingApproval
	Allowed         = payment.Allowed
)

// Config is what a Client is made of. New copies it; later changes have no
// effect. Policy and Store are required.
type Config struct {
	// Agent names whose money this is: it selects the policy table and the
	// counters. It is bound here and never taken from an argument of a call.
	// Empty means "default"; else it is 1 to 64 letters, digits, dots, hyphens
	// and underscores.
	Agent string

	// Org is the organisation's name, for people. Empty means the policy's.
	Org string

	// Treasury is the account that pays. Without a signer everything but
	// paying works, and payments are denied with no_signer.
	Treasury Treasury

	Policy *policy.Policy // required
	Store  ledger.Store   // required; the caller closes it

	// Rails are the protocols to pay by; with equal cost an earlier one is
	// preferred. Without rails everything but paying works: each 402 is denied
	// with no_rail, and a transfer is an error.
	Rails []Rail

	// ForeignUse is what is done where a chain of the treasury shows a use of
	// our key that this ledger does not know. A ledger in memory knows nothing
	// of what an earlier process signed: warn there.
	ForeignUse ForeignUse

	// Channels tell people about payments that wait for approval.
	Channels []approvals.Channel

	// Transport sends the requests. It is used as it is and never changed; one
	// that skips the verification of certificates is an error. Nil means a
	// transport of the client's own, without a proxy, that accepts response
	// headers of up to 256 KiB.
	Transport http.RoundTripper

	// Lanes is how many payments of the account can be in flight at once on one
	// Tempo chain, by transactions of its own. Each takes a lane until the chain
	// shows what became of it, and a lane that was used before is cheaper than a
	// new one. More are denied with no_free_lane. Default 64. It counts where the
	// chain is one of the treasury's that is a Reconciler; else each payment
	// takes a new lane.
	Lanes int

	// BudgetToken binds the client to a budget that was granted: everything it
	// pays counts in that, and only budgets that are part of it can be used.
	// Empty binds it to none.
	BudgetToken BudgetToken

	// Announce has RoundTrip tell every server by a header what can be paid by,
	// where a rail has words for that. Fetch and CheckURL always do.
	Announce bool

	Now    func() time.Time // the clock; time.Now where nil
	Clock  clock.Clock      // what waiting goes by: the system's timers where nil, and else a simulator of this module
	Logger *slog.Logger     // nothing is logged where nil
}

// Treasury is the account that payments come from.
type Treasury struct {
	Signer payment.Signer

	// Chains are where balances are read, at most one for each chain. One that
	// is a Reconciler also tells what became of payments, so that holds on it
	// end by its word and no longer by the clock.
	Chains []Chain

	// Gas is what transactions of the account's own may cost, by chain. With it
	// direct transfers go by them on a chain that is a Reconciler and a Sender,
	// where no facilitator submits them. A chain that is left out has none.
	Gas map[ChainID]Gas
}

// Rail is a protocol for paying. It reads offers, builds authorizations and
// reads receipts; it holds no keys and decides nothing. Implementations are
// safe for concurrent use and do no I/O but what a Signer does.
type Rail interface {
	// Name is the rail's name in terms and results, such as x402.
	Name() string

	// Offers reads the offers of a 402 (or of a 401 with a Payment challenge)
	// whose body, decoded and bounded, is body; it leaves resp.Body alone.
	// payment.ErrNotMine means that the response is not of this rail. Another
	// error tells what was wrong with the entries that were skipped, beside
	// the offers that can be used; with no offers it tells why there are none.
	Offers(resp *http.Response, body []byte) ([]payment.Offer, error)

	// Authorize builds and signs the authorization that g stands for, with one
	// call of s.Sign. The same grant and a deterministic signer give the same
	// bytes. It does not sign once ctx has ended.
	Authorize(ctx context.Context, g payment.Grant, s payment.Signer) (payment.Authorization, error)

	// Decode reads back the signed bytes of a and returns the terms that they
	// carry out; what is not in the bytes is taken from g. It is an error if
	// slot or validity are not those of g, or, where g.Recover is set, if the
	// signature is not the payer's.
	Decode(a payment.Authorization, g payment.Grant) (payment.Terms, error)

	// Receipt reads what the seller says of g's settlement. It may read
	// resp.Body of a 402 only, which is then a bounded copy. The zero Receipt
	// means that nothing readable that matches g was said.
	Receipt(resp *http.Response, g payment.Grant) (payment.Receipt, error)
}

// Transferer is an optional power of a Rail: direct transfers.
type Transferer interface {
	// Transfer returns the offer that carries out t, without any I/O;
	// payment.ErrNotMine where t's chain is not the rail's.
	Transfer(ctx context.Context, t payment.Transfer) (payment.Offer, error)

	// Submits tells why an authorization on the chain could not be submitted,
	// or nil. It does no I/O.
	Submits(chain ChainID) error

	// Submit hands an authorization over for settlement, and returns what is
	// said of it; it gives up when ctx ends. With an error it may have been
	// handed over too. To submit the same one again is safe.
	Submit(ctx context.Context, a payment.Authorization) (payment.Receipt, error)
}

// Announcer is an optional power of a Rail: it tells sellers what it can pay by.
type Announcer interface {
	// Announce adds to h, the header of a request that is not paid yet, what
	// the protocol wants said, and nothing where the caller said it.
	Announce(h http.Header)
}

// Client pays sellers inside the limits of a policy. It is safe for concurrent
// use, holds no goroutine, and needs no closing.
type Client struct {
	cfg    Config
	rails  map[string]Rail
	offers offerCache
	probes probes
	boot   boot
	base   atomic.Pointer[ledger.Budget] // of Config.BudgetToken, once it is known
	run    string                        // what caps per run count by outside of budgets
}

var _ http.RoundTripper = (*Client)(nil)

// New returns a client. It does no I/O. The error names the field that is
// missing or unsafe.
func New(cfg Config) (*Client, error) {
	if cfg.Policy == nil {
		return nil, errors.New("canopy: Config.Policy is nil: without a policy nothing may be paid")
	}
	if cfg.Store == nil {
		return nil, errors.New("canopy: Config.Store is nil: use ledger.NewMemory for a ledger that is forgotten, or ledger/sqlite")
	}
	if cfg.Agent == "" {
		cfg.Agent = "default"
	}
	if err := policy.CheckName(cfg.Agent); err != nil {
		return nil, fmt.Errorf("canopy: Config.Agent: %w", err)
	}
	if cfg.Org == "" {
		cfg.Org = cfg.Policy.Org()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
		if cfg.Clock != nil {
			cfg.Now = cfg.Clock.Now
		}
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.Func(cfg.Now)
	}
	switch {
	case cfg.Lanes < 0 || cfg.Lanes > maxLanes:
		return nil, fmt.Errorf("canopy: Config.Lanes: %d is not 1 to %d", cfg.Lanes, maxLanes)
	case cfg.Lanes == 0:
		cfg.Lanes = defaultLanes
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	switch t := cfg.Transport.(type) {
	case nil:
		cfg.Transport = newTransport()
	case *http.Transport:
		if t.TLSClientConfig != nil && t.TLSClientConfig.InsecureSkipVerify {
			return nil, errors.New("canopy: Config.Transport skips the verification of certificates: anybody on the way could take the payment")
		}
	case *Client:
		return nil, errors.New("canopy: Config.Transport is a canopy.Client: each would pay for the other")
	}
	c := &Client{cfg: cfg, rails: make(map[string]Rail, len(cfg.Rails)), run: "run_" + rand.Text()}
	for i, r := range cfg.Rails {
		if r == nil {
			return nil, fmt.Errorf("canopy: Config.Rails[%d] is nil", i)
		}
		if c.rails[r.Name()] != nil {
			return nil, fmt.Errorf("canopy: Config.Rails has two rails named %s", r.Name())
		}
		c.rails[r.Name()] = guarded{r}
	}
	chains := make(map[ChainID]bool, len(cfg.Treasury.Chains))
	for i, ch := range cfg.Treasury.Chains {
		if ch == nil {
			return nil, fmt.Errorf("canopy: Config.Treasury.Chains[%d] is nil", i)
		}
		if chains[ch.ID()] {
			return nil, fmt.Errorf("canopy: Config.Treasury.Chains has two for %s", ch.ID())
		}
		chains[ch.ID()] = true
	}
	gas, err := cfg.Treasury.gas()
	if err != nil {
		return nil, err
	}
	for i, ch := range cfg.Channels {
		if ch == nil {
			return nil, fmt.Errorf("canopy: Config.Channels[%d] is nil", i)
		}
	}
	c.cfg.Rails = append([]Rail(nil), cfg.Rails...)
	c.cfg.Treasury.Chains = append([]Chain(nil), cfg.Treasury.Chains...)
	c.cfg.Treasury.Gas = gas
	c.cfg.Channels = append([]approvals.Channel(nil), cfg.Channels...)
	if err := c.checkPolicy(); err != nil {
		return nil, err
	}
	return c, nil
}

// noRail is why a client without rails pays nothing.
const noRail = "this client has no rail to pay by: Config.Rails is empty"

const (
	defaultLanes = 64
	maxLanes     = 1024
)

// newTransport is the transport of a client that was given none.
func newTransport() *http.Transport {
	return &http.Transport{
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		ResponseHeaderTimeout:  10 * time.Minute, // a seller may wait minutes for its chain
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// Agent is the name of the client's agent.
func (c *Client) Agent() string { return c.cfg.Agent }

// Address is the paying account, or the zero address without a signer.
func (c *Client) Address() Address {
	if c.cfg.Treasury.Signer == nil {
		return Address{}
	}
	return c.cfg.Treasury.Signer.Address()
}

// Pong is what Ping found.
type Pong struct {
	AgentID string
	Agent   string
	Status  string // active or frozen
	Frozen  string // why, where frozen
	Org     string
	Account Address // the zero address without a signer
	Latency time.Duration
}

// Ping reads the ledger and tells who pays. An error means that a payment would
// fail for the same reason.
func (c *Client) Ping(ctx context.Context) (Pong, error) {
	start := time.Now()
	p := Pong{
		AgentID: payment.AgentID(c.cfg.Agent), Agent: c.cfg.Agent, Status: "active",
		Org: c.cfg.Org, Account: c.Address(),
	}
	frozen, why, err := c.frozen(ctx)
	if err != nil {
		return p, fmt.Errorf("canopy: ping: %w", err)
	}
	if frozen {
		p.Status, p.Frozen = "frozen", why
	}
	p.Latency = time.Since(start)
	return p, nil
}

// frozen asks the store's switch, which not every store has.
func (c *Client) frozen(ctx context.Context) (bool, string, error) {
	f, ok := c.cfg.Store.(ledger.Freezer)
	if !ok {
		return false, "", nil
	}
	return f.Frozen(ctx, c.cfg.Agent)
}

// Freeze stops every payment of this agent, in every process on the ledger,
// before its next signature. Only an operator can undo it.
func (c *Client) Freeze(ctx context.Context, reason string) error {
	f, ok := c.cfg.Store.(ledger.Freezer)
	if !ok {
		return errors.New("canopy: freeze: the store has no switch")
	}
	return f.Freeze(ctx, c.cfg.Agent, "agent:"+c.cfg.Agent, reason)
}

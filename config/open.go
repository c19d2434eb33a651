package config

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/sqlite"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
	"github.com/canopy-go/canopy/x402"
)

// Client is a canopy.Client together with the ledger that was opened for it.
type Client struct {
	*canopy.Client
	Store  ledger.Store
	File   *File
	Chains []canopy.Chain // those of [[chain]] that can be asked

	// Webhooks are the channels of [[webhook]]. What could not be delivered at
	// once is tried again by their Run, in a program that lives long.
	Webhooks []*approvals.Webhook

	transport *http.Transport
}

// Close closes the ledger and idle connections. The client pays nothing
// afterwards.
func (c *Client) Close() error {
	c.transport.CloseIdleConnections()
	return c.Store.Close()
}

// BudgetEnv is the environment variable that binds a client to a budget, with
// the token that canopy budget grant told.
const BudgetEnv = "CANOPY_BUDGET"

// Open returns a client that pays for agent, "default" where agent is empty: it
// reads the key, opens the ledger, and dials what [network] allows. It contacts
// nobody: chains are asked from the first payment on. The caller closes it.
func (f *File) Open(ctx context.Context, agent string) (*Client, error) {
	key, err := f.Signer(ctx)
	if err != nil {
		return nil, err
	}
	if key == nil {
		return f.client(nil, payment.Address{}, agent)
	}
	return f.client(key, key.Address(), agent)
}

// View is what can be asked without a key: it judges and reads as a client
// does, and has no way to pay.
type View struct {
	Store ledger.Store
	File  *File

	client *Client
}

// View opens the ledger and what judges, and asks for no password; only where
// the keystore does not tell its account, it asks as Open does. The caller
// closes it.
func (f *File) View(ctx context.Context, agent string) (*View, error) {
	account, err := f.accountAsking(ctx)
	if err != nil {
		return nil, err
	}
	var key payment.Signer
	if !account.IsZero() {
		key = viewer{account}
	}
	c, err := f.client(key, account, agent)
	if err != nil {
		return nil, err
	}
	return &View{Store: c.Store, File: f, client: c}, nil
}

// Close closes the ledger.
func (v *View) Close() error { return v.client.Close() }

// Address is the account that a client of Open would pay from.
func (v *View) Address() payment.Address { return v.client.Address() }

// Budget is canopy.Client.Budget.
func (v *View) Budget(ctx context.Context) (canopy.Budget, error) { return v.client.Budget(ctx) }

// CannotPay is canopy.Client.CannotPay, of a client of Open.
func (v *View) CannotPay(ctx context.Context) ([]canopy.Reason, error) {
	return v.client.CannotPay(ctx)
}

// CheckURL is canopy.Client.CheckURL.
func (v *View) CheckURL(ctx context.Context, rawURL string, opts ...canopy.Option) (canopy.Check, error) {
	return v.client.CheckURL(ctx, rawURL, opts...)
}

// Explain is canopy.Client.Explain.
func (v *View) Explain(ctx context.Context, rawURL string, opts ...canopy.Option) (canopy.Check, policy.Explanation, error) {
	return v.client.Explain(ctx, rawURL, opts...)
}

// Chains are those of [[chain]] that can be asked.
func (v *View) Chains() []canopy.Chain { return v.client.Chains }

// Reconcile is canopy.Client.Reconcile, which needs no key.
func (v *View) Reconcile(ctx context.Context) (canopy.Reconciliation, error) {
	return v.client.Reconcile(ctx)
}

// ReconcileEvery is canopy.Client.ReconcileEvery.
func (v *View) ReconcileEvery(ctx context.Context, d time.Duration, each func(canopy.Reconciliation, error)) error {
	return v.client.ReconcileEvery(ctx, d, each)
}

// Preview is canopy.Client.Preview.
func (v *View) Preview(ctx context.Context, t canopy.Transfer) (canopy.Result, error) {
	return v.client.Preview(ctx, t)
}

// OpenLedger opens the ledger alone. It asks for no secret.
func (f *File) OpenLedger() (ledger.Store, error) {
	account, err := f.Account()
	if err != nil && !errors.Is(err, errLocked) {
		return nil, err
	}
	return f.openLedger(account)
}

// OpenAccountLedger is OpenLedger for what must be known of the account that
// pays: it fails where the key's environment variable is not set, and asks as
// Open does where the keystore does not tell its account.
func (f *File) OpenAccountLedger(ctx context.Context) (ledger.Store, error) {
	account, err := f.accountAsking(ctx)
	if err != nil {
		return nil, err
	}
	if env := f.Treasury.KeyEnv; env != "" && account.IsZero() {
		return nil, fmt.Errorf("config: treasury.key_env: environment variable %s is not set: it tells the account whose ledger this is", env)
	}
	return f.openLedger(account)
}

func (f *File) accountAsking(ctx context.Context) (payment.Address, error) {
	account, err := f.Account()
	if !errors.Is(err, errLocked) {
		return account, err
	}
	key, err := f.Signer(ctx)
	if err != nil {
		return payment.Address{}, err
	}
	return key.Address(), nil
}

func (f *File) openLedger(account payment.Address) (ledger.Store, error) {
	s, err := sqlite.Open(f.Ledger.Path, sqlite.Options{Now: f.Now, StateDir: f.Ledger.StateDir, Account: account})
	if err != nil {
		return nil, fmt.Errorf("config: ledger.path: %w", err)
	}
	return s, nil
}

// Check builds what Open does but the key and the ledger, and contacts nobody:
// its error, an *Error where it is of the file, is one that Open would have.
// What the environment does not hold is one too.
func (f *File) Check() error {
	transport := f.dialer()
	chains, err := f.chains(transport)
	if err != nil {
		return err
	}
	if _, err = f.rails(transport, chains); err != nil {
		return err
	}
	_, err = f.webhookConfigs()
	return err
}

// rails are the protocols to pay by, over rt.
func (f *File) rails(rt http.RoundTripper, chains []canopy.Chain) ([]canopy.Rail, error) {
	facilitators, err := f.facilitators(rt)
	if err != nil {
		return nil, err
	}
	rail, err := x402.New(x402.Config{Assets: f.Assets, Chains: f.railChains(), Facilitators: facilitators})
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	mppRail, err := f.mppRail(chains)
	if err != nil {
		return nil, err
	}
	return []canopy.Rail{rail, mppRail}, nil
}

func (f *File) client(key payment.Signer, account payment.Address, agent string) (*Client, error) {
	transport := f.dialer()
	chains, err := f.chains(transport)
	if err != nil {
		return nil, err
	}
	rails, err := f.rails(transport, chains)
	if err != nil {
		return nil, err
	}
	store, err := f.openLedger(account)
	if err != nil {
		return nil, err
	}
	hooks, channels, err := f.channels(key, store)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	foreign := canopy.FreezeOnForeignUse
	if f.Ledger.ForeignUse == "warn" {
		foreign = canopy.WarnOnForeignUse
	}
	c, err := canopy.New(canopy.Config{
		Agent: agent, BudgetToken: canopy.BudgetToken(os.Getenv(BudgetEnv)), Treasury: canopy.Treasury{Signer: key, Chains: chains, Gas: f.gas()}, Policy: f.Policy, Store: store, ForeignUse: foreign,
		Rails: rails, Lanes: f.MPP.Lanes, Transport: transport, Now: f.Now, Logger: f.Logger, Channels: channels,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("config: %w", err), store.Close())
	}
	return &Client{Client: c, Store: store, File: f, Chains: chains, Webhooks: hooks, transport: transport}, nil
}

// channels are the webhooks of a client that pays: one that only looks asks
// nobody, and needs no secret.
func (f *File) channels(key payment.Signer, store ledger.Store) (hooks []*approvals.Webhook, channels []approvals.Channel, err error) {
	if _, looks := key.(viewer); looks || key == nil {
		return nil, nil, nil
	}
	hooks, err = f.OpenWebhooks(store)
	for _, h := range hooks {
		channels = append(channels, h)
	}
	return hooks, channels, err
}

// railChains are the chains that the x402 rail may pay on: Base and its test
// network, and those of [[chain]] that have a token it can pay with.
func (f *File) railChains() []payment.ChainID {
	out := []payment.ChainID{payment.Base, payment.BaseSepolia}
	for _, c := range f.Chains {
		if !slices.Contains(out, c.ID) && slices.ContainsFunc(f.Assets.On(c.ID), func(a payment.Asset) bool { return !a.NoAuthorization }) {
			out = append(out, c.ID)
		}
	}
	return out
}

// viewer is an account whose key was not read.
type viewer struct{ account payment.Address }

// Address is the account.
func (v viewer) Address() payment.Address { return v.account }

// Sign refuses.
func (v viewer) Sign(context.Context, payment.Permit, [32]byte) ([]byte, error) {
	return nil, errors.New("config: this client was opened to look only")
}

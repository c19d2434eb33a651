package x402

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/canopy-go/canopy/internal/eip3009"
	"github.com/canopy-go/canopy/payment"
)

// Name is the rail's name in terms and results.
const Name = "x402"

// exact is the one scheme that the rail pays by.
const exact = "exact"

// Config is what a Rail is made of.
type Config struct {
	// Assets are the tokens that may be paid with. Empty means
	// payment.KnownAssets.
	Assets payment.Assets

	// Chains are the chains that may be paid on. Empty means every chain of
	// Assets.
	Chains []payment.ChainID

	// Facilitators submit direct transfers, by chain. Without one a chain has
	// no direct transfers; sellers have their own.
	Facilitators map[payment.ChainID]Facilitator
}

// Rail is the x402 protocol as a rail. It is safe for concurrent use.
type Rail struct {
	tokens map[tokenKey]*token
	chains map[payment.ChainID]bool // those of Config.Chains; nil for all
	settle map[payment.ChainID]*facilitator
	spell  spellings

	quotes  memo[quote]
	entries memo[usable]
	repeats memo[repeated]
}

type tokenKey struct {
	chain   payment.ChainID
	address payment.Address
}

// token is a pinned token with its domain separator.
type token struct {
	asset     payment.Asset
	separator [32]byte
}

// New returns the rail. It does no I/O. The error names what is unusable in
// cfg: a chain that is none, or without a token that the exact scheme can pay
// with.
func New(cfg Config) (*Rail, error) {
	assets := cfg.Assets.All()
	if len(assets) == 0 {
		assets = payment.KnownAssets().All()
	}
	r := &Rail{tokens: make(map[tokenKey]*token, len(assets))}
	payable := make(map[payment.ChainID]bool)
	for _, a := range assets {
		n, ok := a.Chain.Number()
		if !ok {
			return nil, fmt.Errorf("x402: Config.Assets: %s is not an EVM chain", a.Chain)
		}
		t := &token{asset: a}
		if !a.NoAuthorization {
			d := eip3009.Domain{Name: a.Name, Version: a.Version, ChainID: n, Contract: a.Address}
			t.separator = d.Separator()
			payable[a.Chain] = true
		}
		r.tokens[tokenKey{a.Chain, a.Address}] = t
	}
	for i, c := range cfg.Chains {
		if _, err := payment.ParseChainID(string(c)); err != nil {
			return nil, fmt.Errorf("x402: Config.Chains[%d]: %w", i, err)
		}
		if !payable[c] {
			return nil, fmt.Errorf("x402: Config.Chains[%d]: Config.Assets has no token on %s that takes EIP-3009 authorizations", i, c)
		}
		if r.chains == nil {
			r.chains = make(map[payment.ChainID]bool, len(cfg.Chains))
		}
		r.chains[c] = true
	}
	if err := r.facilitators(cfg.Facilitators); err != nil {
		return nil, err
	}
	return r, nil
}

// Name is the rail's name.
func (r *Rail) Name() string { return Name }

// serves reports whether the rail may pay on chain.
func (r *Rail) serves(chain payment.ChainID) bool { return r.chains == nil || r.chains[chain] }

// token returns the token that the rail can pay with, and nil where there is
// none.
func (r *Rail) token(chain payment.ChainID, address payment.Address) *token {
	if t := r.tokens[tokenKey{chain, address}]; t != nil && !t.asset.NoAuthorization && r.serves(chain) {
		return t
	}
	return nil
}

// Assets are the tokens that the rail can pay with, by chain, symbol and
// address.
func (r *Rail) Assets() []payment.Asset {
	var out []payment.Asset
	for key, t := range r.tokens {
		if r.token(key.chain, key.address) != nil {
			out = append(out, t.asset)
		}
	}
	slices.SortFunc(out, func(a, b payment.Asset) int {
		return cmp.Or(cmp.Compare(a.Chain, b.Chain), cmp.Compare(a.Symbol, b.Symbol), a.Address.Compare(b.Address))
	})
	return out
}

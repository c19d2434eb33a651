package mpp

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/internal/eip3009"
	"github.com/canopy-go/canopy/payment"
)

// Name is the rail's name in terms and results.
const Name = "mpp"

// The schemes that the rail pays by, as terms name them.
const (
	SchemeTempo    = "tempo/charge"      // a transaction on Tempo
	SchemeProof    = payment.SchemeProof // a signature that moves nothing, for a charge of zero
	SchemeTransfer = "tempo/transfer"    // a transaction on Tempo without a seller
	SchemeEVM      = "evm/charge"        // an EIP-3009 authorization
)

// Config is what a Rail is made of. The zero value pays in the tokens of
// payment.KnownAssets.
type Config struct {
	// Assets are the tokens that may be paid with. Empty means
	// payment.KnownAssets.
	Assets payment.Assets

	// Chains are the chains that may be paid on; a challenge cannot name
	// another. Empty means every chain of Assets. A challenge that names no
	// chain is paid on the only Tempo chain among them, and refused where there
	// are several.
	Chains []payment.ChainID

	// Tempo are chains of Assets that are Tempo networks, besides
	// payment.Tempo and payment.TempoTest.
	Tempo []payment.ChainID

	// Fees bound what a transaction of our own can cost beside its amount.
	Fees Fees

	// Nodes broadcast transactions, by chain: for sellers that want the hash of
	// one that is on the chain, and for direct transfers. Without one a Tempo
	// chain has neither; other sellers broadcast themselves.
	Nodes map[payment.ChainID]Node

	// Clock is what waiting for a transaction goes by. Default the system's.
	Clock clock.Clock

	// ClientID is told to sellers in the memo of a payment, hashed. Empty tells
	// nothing.
	ClientID string

	// Envelope is how a sponsored transaction is handed over.
	Envelope Envelope

	// NoProofs refuses charges of zero, which are answered by a signature that
	// moves nothing but says whose account this is.
	NoProofs bool

	// ProofRealms are realms that a proof is given for although the host that
	// asks has another name. A proof says nothing of who asked, so that a host
	// could show it to the one that it is for.
	ProofRealms []string
}

// Envelope is the form in which a transaction is handed to a sponsor.
type Envelope uint8

// The envelopes. Every server takes the first one but some older ones of
// mpp-go, which take the second.
const (
	EnvelopeSender      Envelope = iota // 0x78, with the sender's address
	EnvelopeTransaction                 // 0x76, with a placeholder
)

// Rail is the Payment authentication scheme of MPP as a rail. It is safe for
// concurrent use.
type Rail struct {
	tokens   map[tokenKey]*token
	chains   map[payment.ChainID]bool // those of Config.Chains; nil for all
	pin      payment.ChainID          // the only Tempo chain; empty where there are several
	fees     Fees
	nodes    map[payment.ChainID]Node
	clock    clock.Clock
	clientID string
	envelope Envelope
	proofs   bool
	realms   []string // of Config.ProofRealms
	accept   string
}

type tokenKey struct {
	chain   payment.ChainID
	address payment.Address
}

// decimals are those of every token of Tempo.
const decimals = 6

// token is a pinned token.
type token struct {
	asset     payment.Asset
	chain     uint64
	tempo     bool     // a TIP-20 token, moved by transactions
	separator [32]byte // of the EIP-712 domain, where it is not
}

// New returns the rail. It does no I/O. The error names what is unusable in
// cfg.
func New(cfg Config) (*Rail, error) {
	assets := cfg.Assets.All()
	if len(assets) == 0 {
		assets = payment.KnownAssets().All()
	}
	fees, err := cfg.Fees.filled()
	if err != nil {
		return nil, fmt.Errorf("mpp: Config.Fees: %w", err)
	}
	if cfg.Envelope > EnvelopeTransaction {
		return nil, fmt.Errorf("mpp: Config.Envelope: %d is none", cfg.Envelope)
	}
	r := &Rail{
		tokens: make(map[tokenKey]*token, len(assets)), fees: fees, nodes: make(map[payment.ChainID]Node, len(cfg.Nodes)),
		clock: cfg.Clock, clientID: cfg.ClientID, envelope: cfg.Envelope, proofs: !cfg.NoProofs, realms: slices.Clone(cfg.ProofRealms),
	}
	if r.clock == nil {
		r.clock = clock.System{}
	}
	isTempo := func(c payment.ChainID) bool {
		return c == payment.Tempo || c == payment.TempoTest || slices.Contains(cfg.Tempo, c)
	}
	payable := map[payment.ChainID]bool{}
	for _, a := range assets {
		n, ok := a.Chain.Number()
		if !ok {
			return nil, fmt.Errorf("mpp: Config.Assets: %s is not an EVM chain", a.Chain)
		}
		t := &token{asset: a, chain: n, tempo: isTempo(a.Chain)}
		switch {
		case t.tempo && a.Decimals != decimals:
			return nil, fmt.Errorf("mpp: Config.Assets: %s has %d decimals, a token of Tempo has %d", a, a.Decimals, decimals)
		case t.tempo:
		case a.NoAuthorization:
			continue // nothing here moves it
		default:
			d := eip3009.Domain{Name: a.Name, Version: a.Version, ChainID: n, Contract: a.Address}
			t.separator = d.Separator()
		}
		r.tokens[tokenKey{a.Chain, a.Address}] = t
		payable[a.Chain] = true
	}
	if err := r.pinTo(cfg, payable, isTempo); err != nil {
		return nil, err
	}
	for id, node := range cfg.Nodes {
		switch {
		case node == nil:
			return nil, fmt.Errorf("mpp: Config.Nodes: the one for %s is nil", id)
		case !isTempo(id) || !payable[id]:
			return nil, fmt.Errorf("mpp: Config.Nodes: %s is no Tempo network with a token to pay with", id)
		}
		r.nodes[id] = node
	}
	r.accept = r.accepted()
	return r, nil
}

// pinTo keeps the chains that may be paid on.
func (r *Rail) pinTo(cfg Config, payable map[payment.ChainID]bool, isTempo func(payment.ChainID) bool) error {
	if len(cfg.Chains) > 0 {
		r.chains = make(map[payment.ChainID]bool, len(cfg.Chains))
	}
	for i, c := range cfg.Chains {
		if _, err := payment.ParseChainID(string(c)); err != nil {
			return fmt.Errorf("mpp: Config.Chains[%d]: %w", i, err)
		}
		if !payable[c] {
			return fmt.Errorf("mpp: Config.Chains[%d]: Config.Assets has no token on %s that this rail can move", i, c)
		}
		r.chains[c] = true
	}
	several := false
	for c := range payable {
		if isTempo(c) && r.serves(c) {
			several = several || r.pin != ""
			r.pin = c
		}
	}
	if several {
		r.pin = ""
	}
	return nil
}

// Name is the rail's name.
func (r *Rail) Name() string { return Name }

// serves reports whether the rail may pay on chain.
func (r *Rail) serves(chain payment.ChainID) bool { return r.chains == nil || r.chains[chain] }

// token returns the token that the rail can pay with, and nil where there is
// none.
func (r *Rail) token(chain payment.ChainID, address payment.Address) *token {
	if t := r.tokens[tokenKey{chain, address}]; t != nil && r.serves(chain) {
		return t
	}
	return nil
}

// Assets are the tokens that the rail can pay with, by chain, symbol and
// address.
func (r *Rail) Assets() []payment.Asset {
	var out []payment.Asset
	for _, t := range r.tokens {
		if r.serves(t.asset.Chain) {
			out = append(out, t.asset)
		}
	}
	slices.SortFunc(out, func(a, b payment.Asset) int {
		return cmp.Or(cmp.Compare(a.Chain, b.Chain), cmp.Compare(a.Symbol, b.Symbol), slices.Compare(a.Address[:], b.Address[:]))
	})
	return out
}

// accepted is what Accept-Payment says.
func (r *Rail) accepted() string {
	var onTempo, onEVM bool
	for _, t := range r.tokens {
		if r.serves(t.asset.Chain) {
			onTempo, onEVM = onTempo || t.tempo, onEVM || !t.tempo
		}
	}
	var kinds []acceptable
	if onTempo {
		kinds = append(kinds, acceptable{methodTempo, intentCharge, 1000})
	}
	if onEVM {
		kinds = append(kinds, acceptable{methodEVM, intentCharge, 900})
	}
	return writeAccept(kinds)
}

// Announce tells by Accept-Payment what the rail can pay by, where the caller
// does not.
func (r *Rail) Announce(h http.Header) {
	if h.Get(headerAccept) == "" && r.accept != "" {
		h.Set(headerAccept, r.accept)
	}
}

package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/canopy-go/canopy/internal/host"
	"github.com/canopy-go/canopy/payment"
)

// entry is one line of an allow or deny list. All the parts that it has must
// match.
type entry struct {
	text string
	line int

	everything bool // *
	hasHost    bool
	hasAddress bool
	splits     bool            // splits:any
	chain      payment.ChainID // empty for none
	host       host.Pattern
	address    payment.Address
	asset      token // zero for none

	named host.Host // in host, for Lint
	below bool      // host is *.named
}

// token is a token as lists name it: by chain and address, never by symbol.
type token struct {
	chain   payment.ChainID
	address payment.Address
}

var entryKinds = []string{"host:", "address:", "chain:", "asset:", "splits:any"}

// parseEntry reads an entry of an allow list, or where deny is set of a deny
// list: "*", or parts separated by spaces.
func parseEntry(s string, deny bool) (entry, error) {
	e := entry{text: s}
	if s == "*" {
		e.everything = true
		return e, nil
	}
	parts := strings.Fields(s)
	if len(parts) == 0 {
		return e, errors.New("an entry is empty")
	}
	for _, part := range parts {
		if err := e.parsePart(part); err != nil {
			return e, err
		}
	}
	switch {
	case e.asset != token{} && e.chain != "" && e.asset.chain != e.chain:
		return e, fmt.Errorf("%q can never match: the asset is on another chain", clip(s))
	case e.splits && deny:
		return e, errors.New("splits:any widens an allow entry: it has no meaning in deny")
	case e.splits && !e.hasHost:
		return e, errors.New("splits:any needs a host: in the same entry")
	}
	return e, nil
}

func (e *entry) parsePart(part string) error {
	kind, value, ok := strings.Cut(part, ":")
	twice := false
	var err error
	switch {
	case part == "*":
		return errors.New(`"*" stands alone in its entry: narrow it by chain: or asset: entries of their own`)
	case kind == "host" && ok:
		twice, e.hasHost = e.hasHost, true
		if strings.Contains(value, "//") {
			return fmt.Errorf(`%q is a URL: write the host alone, like "host:feed.example"`, clip(part))
		}
		if e.host, err = host.ParsePattern(value); err == nil {
			value, e.below = strings.CutPrefix(value, "*.")
			e.named, err = host.Normalize(value)
		}
	case kind == "address" && ok:
		twice, e.hasAddress = e.hasAddress, true
		e.address, err = payment.ParseAddress(value)
		if err == nil && e.address.IsZero() {
			err = errors.New("the zero address is nobody's")
		}
	case kind == "chain" && ok:
		twice = e.chain != ""
		e.chain, err = parseChain(value)
	case kind == "asset" && ok:
		twice = e.asset != token{}
		e.asset, err = parseAsset(value)
	case part == "splits:any":
		twice, e.splits = e.splits, true
	case kind == "splits" && ok:
		return fmt.Errorf("%q: only splits:any is known", clip(part))
	case (kind == "service" || kind == "category") && ok:
		return fmt.Errorf("%s: %w", kind, errLater)
	default:
		return unknownPart(part)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", clip(part), trimmed(err))
	}
	if twice {
		return fmt.Errorf("two %s: parts in one entry cannot both match: write two entries", kind)
	}
	return nil
}

// unknownPart says what a part lacks.
func unknownPart(part string) error {
	if _, err := payment.ParseAddressLoose(part); err == nil {
		return fmt.Errorf(`%q has no kind: write "address:%s"`, part, part)
	}
	if _, err := host.ParsePattern(part); err == nil && strings.Contains(part, ".") {
		return fmt.Errorf(`%q has no kind: write "host:%s"`, clip(part), clip(part))
	}
	kind, _, ok := strings.Cut(part, ":")
	if ok {
		kind += ":"
	}
	return fmt.Errorf("%q is not an entry: one begins with host:, address:, chain: or asset:, or is \"*\"%s", clip(part), didYouMean(kind, entryKinds...))
}

// trimmed is err without the name of the package that it came from.
func trimmed(err error) error {
	s := err.Error()
	for _, prefix := range []string{"host: ", "payment: "} {
		s = strings.TrimPrefix(s, prefix)
	}
	return errors.New(s)
}

func parseChain(s string) (payment.ChainID, error) {
	c, err := payment.ParseChainID(s)
	if err == nil {
		return c, nil
	}
	if c, byName := payment.ChainByName(s); byName == nil {
		return "", fmt.Errorf("name the chain by its number: chain:%s", c)
	}
	return "", err
}

// parseAsset reads a token as CHAIN/ADDRESS, such as
// eip155:8453/0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913.
func parseAsset(s string) (token, error) {
	chain, address, ok := strings.Cut(s, "/")
	if !ok {
		return token{}, errors.New("a token is named by chain and address, never by symbol: asset:eip155:8453/0x8335…2913")
	}
	var t token
	var err error
	if t.chain, err = parseChain(chain); err != nil {
		return token{}, err
	}
	if t.address, err = payment.ParseAddress(address); err != nil {
		return token{}, err
	}
	if t.address.IsZero() {
		return token{}, errors.New("the zero address is no token")
	}
	return t, nil
}

// narrows reports whether e names no destination, only chains or tokens.
func (e *entry) narrows() bool { return !e.everything && !e.hasHost && !e.hasAddress }

// fits reports whether the parts of e that are about the whole payment match:
// host, chain and token.
func (e *entry) fits(p *payment.Payment) bool {
	a := &p.Terms.Asset
	return (!e.hasHost || e.host.Match(host.Host{Name: p.Host, Port: p.Port})) &&
		(e.chain == "" || e.chain == a.Chain) &&
		(e.asset == token{} || e.asset.address == a.Address && e.asset.chain == a.Chain)
}

// denies reports whether e, in a deny list, denies p.
func (e *entry) denies(p *payment.Payment) bool {
	if e.everything {
		return true
	}
	if !e.fits(p) {
		return false
	}
	if !e.hasAddress {
		return true
	}
	for i := range p.Terms.Recipients {
		if p.Terms.Recipients[i].Address == e.address {
			return true
		}
	}
	return false
}

// admits reports whether e, in an allow list and naming a destination, admits
// the i-th recipient of p.
// An address admits the recipients that have it; a host admits the primary
// recipient, and the further ones only with splits:any.
func (e *entry) admits(p *payment.Payment, i int) bool {
	switch {
	case e.everything:
		return true
	case !e.fits(p):
		return false
	case e.hasAddress && p.Terms.Recipients[i].Address == e.address:
		return true
	case i == 0:
		return !e.hasAddress
	}
	return e.splits && (!e.hasAddress || p.Terms.Recipients[0].Address == e.address)
}

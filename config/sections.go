package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/payment"
)

func (f *File) treasury(d *document, dir string) {
	t := d.table("treasury")
	f.Treasury = Treasury{
		KeyEnv:      t.env("key_env"),
		Keystore:    in(dir, t.text("keystore")),
		PasswordEnv: t.env("password_env"),
		PasswordCmd: t.texts("password_cmd"),
	}
	t.done()
	switch {
	case t.has("key_env") && t.has("keystore"):
		t.problem("key_env", "and keystore name two keys: keep one")
	case !t.has("keystore") && t.has("password_env"):
		t.problem("password_env", "opens a keystore, and none is named: add keystore")
	case !t.has("keystore") && t.has("password_cmd"):
		t.problem("password_cmd", "opens a keystore, and none is named: add keystore")
	case t.has("password_env") && t.has("password_cmd"):
		t.problem("password_env", "and password_cmd are two sources of one password: keep one")
	}
	if v, ok := t.values["password_cmd"].([]any); ok && len(v) == 0 {
		t.problem("password_cmd", `is empty: name a command and its arguments, such as ["pass", "show", "canopy"]`)
	}
}

func (f *File) ledger(d *document, dir string) {
	t := d.table("ledger")
	path := t.text("path")
	if strings.Contains(path, "://") {
		t.problem("path", "is the path of a file, not a URL")
	}
	f.Ledger = Ledger{
		Path:       in(dir, path),
		StateDir:   in(dir, t.text("state_dir")),
		ForeignUse: t.text("foreign_use"),
	}
	if t.env("url_env") != "" {
		t.problem("url_env", "Postgres is not in this version: keep the ledger in a file, as path")
	}
	switch f.Ledger.ForeignUse {
	case "", "freeze", "warn":
	default:
		t.problem("foreign_use", `is "freeze" or "warn"`)
	}
	t.done()
	if f.Ledger.Path == "" {
		f.Ledger.Path = filepath.Join(dir, "canopy.db")
	}
	if f.Ledger.StateDir == "" {
		f.Ledger.StateDir = stateDir(os.Getenv("XDG_STATE_HOME"))
	}
	if f.Ledger.StateDir == "" {
		f.Warnings = append(f.Warnings, "ledger.state_dir: there is no home directory to remember the ledger in, so that a lost one goes unnoticed: name a directory")
	}
}

// stateDir is where a ledger is remembered by default; empty where the machine
// has no home for it.
func stateDir(base string) string {
	if filepath.IsAbs(base) {
		return filepath.Join(base, "canopy")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".local", "state", "canopy")
}

func (f *File) note(key, text string) {
	f.Notes = append(f.Notes, key+": has no effect: "+text)
}

func (f *File) chainTables(d *document) {
	seen := map[payment.ChainID]string{}
	for _, t := range d.tables("chain") {
		c := Chain{
			RPC:                   f.rpc(t, "rpc"),
			RPCEnv:                t.texts("rpc_env"),
			FacilitatorHeadersEnv: t.env("facilitator_headers_env"),
			MaxGas:                native(t, "max_gas"),
			GasPerDay:             native(t, "gas_per_day"),
		}
		c.ID = chainID(t, "id")
		c.Tempo = tempo(t, c.ID)
		if c.Tempo && t.has("facilitator") {
			t.problem("facilitator", "is of no use on a Tempo network: direct transfers are broadcast by its rpc")
		}
		for i, name := range c.RPCEnv {
			if !envName(name) {
				t.problem(fmt.Sprintf("rpc_env[%d]", i), "names an environment variable, such as BASE_RPC_URL")
			} else if slices.Contains(c.RPCEnv[:i], name) {
				t.problem(fmt.Sprintf("rpc_env[%d]", i), "names %s again: a node cannot confirm itself", name)
			}
		}
		if s := t.text("facilitator"); s != "" && f.httpURL(t, "facilitator", s) {
			c.Facilitator = s
			if u, err := url.Parse(s); err == nil && u.Scheme == "http" && !loopback(u.Hostname()) {
				t.problem("facilitator", "is plain http: what it is sent is for its eyes only, use https")
			}
		}
		checkGas(t, c)
		if c.FacilitatorHeadersEnv != "" && !t.has("facilitator") {
			t.problem("facilitator_headers_env", "belongs to a facilitator, and none is named: add facilitator")
		}
		t.done()
		if c.ID == "" {
			continue
		}
		if first, ok := seen[c.ID]; ok {
			t.problem("id", "%s stands in %s already: put both into one [[chain]]", c.ID, first)
			continue
		}
		seen[c.ID] = t.path
		f.noteChain(t, c)
		f.Chains = append(f.Chains, c)
	}
}

// tempo reports whether id is a Tempo network: of those that are known, whatever
// the table says is right or refused.
func tempo(t *table, id payment.ChainID) bool {
	flag, says := t.flag("tempo")
	if id == payment.Tempo || id == payment.TempoTest {
		if says && !flag {
			t.problem("tempo", "is false, and %s is a Tempo network: leave the key out", id.Name())
		}
		return true
	}
	if flag && payment.KnownAssets().HasChain(id) {
		t.problem("tempo", "is true, and %s is no Tempo network: leave the key out", id.Name())
		return false
	}
	return flag
}

func (f *File) noteChain(t *table, c Chain) {
	for _, key := range []string{"max_gas", "gas_per_day"} {
		if t.has(key) && c.Facilitator != "" {
			f.note(join(t.path, key), "direct transfers go through the facilitator, which pays the gas")
		}
	}
	for i, s := range c.RPC {
		if u, err := url.Parse(s); err == nil && u.Scheme == "http" && !loopback(u.Hostname()) {
			f.Warnings = append(f.Warnings, fmt.Sprintf("%s.rpc[%d]: is plain http: whoever is on the way can answer in its place", t.path, i))
		}
	}
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// chainID reads a chain by CAIP-2 or by the name of one that is known.
func chainID(t *table, key string) payment.ChainID {
	s := t.text(key)
	if s == "" {
		if !t.has(key) {
			t.problem(key, `is missing: name the chain, such as "eip155:8453"`)
		}
		return ""
	}
	id, err := payment.ChainByName(s)
	if err != nil {
		t.problem(key, `is a chain such as "eip155:8453" or "base", not %q`, clip(s))
	}
	return id
}

// native reads an amount of a chain's own coin, kept as text.
func native(t *table, key string) string {
	s := t.text(key)
	if s == "" {
		return ""
	}
	if _, err := payment.ParseCoin(s); err != nil {
		t.problem(key, `is an amount of the chain's own coin, such as "0.0005", not %q`, clip(s))
	}
	return s
}

// rpc is a list of nodes, none of which stands there twice.
func (f *File) rpc(t *table, key string) []string {
	before := len(t.doc.problems)
	list := t.texts(key)
	for i, s := range list {
		f.httpURL(t, fmt.Sprintf("%s[%d]", key, i), s)
	}
	if len(list) == 0 || len(t.doc.problems) > before {
		return list
	}
	var bad *chain.URLError
	if _, err := chain.New(chain.Config{ID: payment.Base, URLs: list}); errors.As(err, &bad) { // any chain: only the URLs count
		t.problem(fmt.Sprintf("%s[%d]", key, bad.Index), "%v", bad.Err)
	}
	return list
}

// httpURL checks a URL, and never repeats it: some carry a key.
func (f *File) httpURL(t *table, key, s string) bool {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		example := "https://rpc.example"
		if key == "proxy" {
			example = "http://proxy.example:3128"
		}
		t.problem(key, "is a URL such as %s", example)
		return false
	case u.User != nil:
		t.problem(key, "has a user or a password in it: a secret does not stand in the file, take it from the environment (rpc_env, facilitator_headers_env)")
		return false
	}
	return true
}

func (f *File) assets(d *document) {
	f.Assets = payment.KnownAssets()
	for _, t := range d.tables("asset") {
		before := len(d.problems)
		a := payment.Asset{
			Chain: chainID(t, "chain"), Address: address(t, "address"),
			Symbol: t.text("symbol"), Name: t.text("name"), Version: t.text("version"),
		}
		decimals, ok := t.number("decimals")
		t.done()
		switch {
		case len(d.problems) > before:
			continue
		case !ok:
			t.problem("decimals", "is missing: how many decimals has the token, 6 to 18")
			continue
		case decimals < 6 || decimals > 18:
			t.problem("decimals", "must be 6 to 18")
			continue
		}
		a.Decimals = uint8(decimals)
		a.NoAuthorization = f.isTempo(a.Chain)
		if known, ok := f.Assets.Lookup(a.Chain, a.Address); ok && known != a {
			t.problem("address", "is %s, which is known with other values or listed twice: take the entry out", known)
			continue
		}
		with, err := f.Assets.With(a)
		if err != nil {
			t.problem("", "%s", strings.TrimPrefix(err.Error(), "payment: "))
			continue
		}
		f.Assets = with
	}
	for i, c := range f.Chains {
		if !f.Assets.HasChain(c.ID) {
			path := fmt.Sprintf("chain[%d].id", i)
			d.problems.add(d.lines[path], path, "no dollar is known on %s: add it as [[asset]]", c.ID)
		}
	}
}

// isTempo reports whether chain is a Tempo network.
func (f *File) isTempo(chain payment.ChainID) bool {
	return chain == payment.Tempo || chain == payment.TempoTest ||
		slices.ContainsFunc(f.Chains, func(c Chain) bool { return c.ID == chain && c.Tempo })
}

// Payable are the tokens that can be paid with on chain, by symbol and address:
// on a Tempo network all that are known, elsewhere those that take
// authorizations.
func (f *File) Payable(chain payment.ChainID) []payment.Asset {
	on := f.Assets.On(chain)
	if f.isTempo(chain) {
		return on
	}
	return slices.DeleteFunc(on, func(a payment.Asset) bool { return a.NoAuthorization })
}

func address(t *table, key string) payment.Address {
	s := t.text(key)
	if s == "" {
		if !t.has(key) {
			t.problem(key, "is missing: the token's contract, 0x and 40 hex digits")
		}
		return payment.Address{}
	}
	a, err := payment.ParseAddress(s)
	if err != nil {
		t.problem(key, "%s", strings.TrimPrefix(err.Error(), "payment: not an address: "))
	}
	return a
}

func (f *File) network(d *document) {
	t := d.table("network")
	for i, s := range t.texts("allow_private") {
		p, err := prefix(s)
		if err != nil {
			t.problem(fmt.Sprintf("allow_private[%d]", i), `is an address or a range such as "127.0.0.0/8", not %q`, clip(s))
			continue
		}
		f.Network.AllowPrivate = append(f.Network.AllowPrivate, p)
	}
	if s := t.text("proxy"); s != "" && f.httpURL(t, "proxy", s) {
		f.Network.Proxy, _ = url.Parse(s)
	}
	t.done()
}

// prefix reads an address or a range. Bits behind the mask are a mistake; IPv4
// in IPv6 is written as IPv4.
func prefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		if a.Zone() != "" {
			return netip.Prefix{}, &net.ParseError{Type: "address", Text: s}
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	if p != p.Masked() || p.Addr().Is4In6() {
		return netip.Prefix{}, &net.ParseError{Type: "range", Text: s}
	}
	return p, nil
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
)

// Seller is a running seller. What its routes cost is in Prices; GET /free and /free-stream cost nothing.
type Seller struct {
	Version     int    // of x402: 1 or 2
	URL         string // http://127.0.0.1:port
	PayTo       common.Address
	Facilitator common.Address // the account that settles, different at each seller

	process *process
}

// Price is what a route costs, in base units of the token.
type Price struct {
	Method, Path string
	Units        uint64
}

// Prices are the priced routes of both sellers. POST /echo answers with the body and content type it got,
// /stream with 20 lines of 4096 bytes (held back by both packages until they are settled; /free-stream is not),
// /slow after 1.5 s, /broken with 500 (so nothing is settled).
var Prices = []Price{
	{"GET", "/cent", 10_000},
	{"GET", "/subcent", 500},
	{"POST", "/echo", 20_000},
	{"GET", "/stream", 30_000},
	{"GET", "/two", 2_000_000},
	{"GET", "/six", 6_000_000},
	{"GET", "/slow", 10_000},
	{"GET", "/broken", 10_000},
}

// UpfrontPrices are further routes of the v2 seller. They settle before the handler runs, so
// /upfront-broken answers 500 and has been paid.
var UpfrontPrices = []Price{
	{"GET", "/upfront", 10_000},
	{"GET", "/upfront-broken", 10_000},
}

// Prices returns every priced route of s.
func (s *Seller) Prices() []Price {
	if s.Version == 1 {
		return Prices
	}
	return append(append([]Price(nil), Prices...), UpfrontPrices...)
}

// Served returns how often the handler of a route, such as "GET /cent", ran.
func (s *Seller) Served(t testing.TB, route string) int {
	t.Helper()
	resp, err := http.Get(s.URL + "/stats")
	if err != nil {
		t.Fatalf("stats: %v", err)
	}
	defer resp.Body.Close()
	var served map[string]int
	if err := json.NewDecoder(resp.Body).Decode(&served); err != nil {
		t.Fatalf("stats: %v", err)
	}
	return served[route]
}

// NewSeller starts one more seller on c, with a payee and a facilitator account of its own. It ends with
// the test.
func NewSeller(t testing.TB, c *Chain, version int) *Seller {
	t.Helper()
	s, err := startSeller(c, version)
	if err != nil {
		t.Fatalf("starting a seller: %v", err)
	}
	t.Cleanup(s.process.stop)
	return s
}

func startSeller(c *Chain, version int) (*Seller, error) {
	payee, err := newAccount()
	if err != nil {
		return nil, err
	}
	facilitator, err := newAccount()
	if err != nil {
		return nil, err
	}
	if err := c.fund(facilitator.Address); err != nil {
		return nil, err
	}
	p, ready, err := startProcess(
		[]string{"FACILITATOR_KEY=" + facilitator.HexKey()},
		fmt.Sprintf("v%dseller.mjs", version),
		"--rpc", c.URL, "--pay-to", payee.Address.Hex(),
	)
	if err != nil {
		return nil, err
	}
	return &Seller{
		Version: version, URL: ready.URL, PayTo: ready.PayTo, Facilitator: ready.Facilitator, process: p,
	}, nil
}

// Account is a key made for one test.
type Account struct {
	Key     *ecdsa.PrivateKey
	Address common.Address
}

// NewAccount makes a key. It holds nothing yet: see Chain.Mint and Chain.Payer.
func NewAccount(t testing.TB) Account {
	t.Helper()
	a, err := newAccount()
	if err != nil {
		t.Fatalf("making a key: %v", err)
	}
	return a
}

func newAccount() (Account, error) {
	key, err := crypto.GenerateKey()
	if err != nil {
		return Account{}, err
	}
	return Account{Key: key, Address: crypto.PubkeyToAddress(key.PublicKey)}, nil
}

// HexKey returns the private key as 0x and 64 hex digits.
func (a Account) HexKey() string { return hexutil.Encode(crypto.FromECDSA(a.Key)) }

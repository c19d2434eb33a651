package chain_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/payment"
)

// says is what a node answers about gas; a nil pointer where it says nothing.
type says struct {
	nonce, mined, coin, base, tip any
	data                          string
	down                          bool
}

func (s says) node() *fakeNode {
	n := newFakeNode()
	n.bend = func(c rpc) (reply, bool) {
		var tag string
		if len(c.Params) > 1 {
			json.Unmarshal(c.Params[1], &tag)
		}
		switch {
		case s.down:
			return reply{code: -32000, text: "out of order"}, c.Method != "eth_chainId"
		case c.Method == "eth_getTransactionCount" && tag == "pending":
			return reply{result: s.nonce}, true
		case c.Method == "eth_getTransactionCount":
			return reply{result: s.mined}, true
		case c.Method == "eth_getBalance":
			return reply{result: s.coin}, true
		case c.Method == "eth_getBlockByNumber":
			return reply{result: map[string]any{"baseFeePerGas": s.base}}, true
		case c.Method == "eth_maxPriorityFeePerGas":
			return reply{result: s.tip}, true
		case c.Method == "eth_call" && strings.Contains(string(c.Params[0]), "0x420000000000000000000000000000000000000f"):
			return reply{result: s.data}, true
		}
		return reply{}, false
	}
	return n
}

func TestGas(t *testing.T) {
	t.Parallel()
	word := func(n string) string { return "0x" + strings.Repeat("0", 64-len(n)) + n }
	usual := says{nonce: "0x9", mined: "0x7", coin: "0xde0b6b3a7640000", base: "0x3b9aca00", tip: "0xf4240", data: "0x"}
	with := func(f func(*says)) says {
		s := usual
		f(&s)
		return s
	}
	good := payment.GasQuote{Nonce: 9, Mined: 7, Coin: payment.UnitsOf(1e18), BaseFee: 1e9, Tip: 1e6}
	change := func(f func(*payment.GasQuote)) payment.GasQuote {
		q := good
		f(&q)
		return q
	}
	down := says{down: true}
	absurd := says{nonce: "0x30", mined: "0x30", coin: "0x" + strings.Repeat("f", 64), base: "0xffffffffffffffff", tip: "0xffffffffffffffff", data: "0x"}
	for name, tt := range map[string]struct {
		nodes []says
		want  payment.GasQuote
		err   error
	}{
		"one":                  {[]says{usual}, good, nil},
		"two":                  {[]says{usual, usual}, good, nil},
		"one is down":          {[]says{down, usual}, good, nil},
		"all are":              {[]says{down, down}, good, errors.ErrUnsupported},
		"fees of one alone":    {[]says{absurd, usual}, change(func(q *payment.GasQuote) { q.Nonce = 0x30 }), nil},
		"and from behind":      {[]says{usual, usual, absurd}, change(func(q *payment.GasQuote) { q.Nonce = 0x30 }), nil},
		"what waits elsewhere": {[]says{usual, with(func(s *says) { s.nonce = "0xb" })}, change(func(q *payment.GasQuote) { q.Nonce = 11 }), nil},
		"a nonce far ahead":    {[]says{usual, with(func(s *says) { s.nonce = "0x4a" })}, good, chain.ErrDisagree},
		"a pool that is lost":  {[]says{with(func(s *says) { s.nonce = "0x0" })}, change(func(q *payment.GasQuote) { q.Nonce = 7 }), nil},
		"a fee for data":       {[]says{usual, with(func(s *says) { s.data = word("64") })}, change(func(q *payment.GasQuote) { q.DataFee = payment.UnitsOf(200) }), nil},
		"an impossible one":    {[]says{with(func(s *says) { s.data = word(strings.Repeat("f", 64)) })}, good, chain.ErrAnswer},
		"half of one":          {[]says{with(func(s *says) { s.data = "0x00" })}, good, chain.ErrAnswer},
		"no base fee":          {[]says{with(func(s *says) { s.base = nil })}, good, chain.ErrAnswer},
		"a fee of 65 bits":     {[]says{with(func(s *says) { s.base = "0x10000000000000000" })}, good, chain.ErrAnswer},
		"a nonce of text":      {[]says{with(func(s *says) { s.nonce = "9" })}, good, chain.ErrAnswer},
		"a balance of words":   {[]says{with(func(s *says) { s.coin = "a lot" })}, good, chain.ErrAnswer},
		"no tip":               {[]says{with(func(s *says) { s.tip = "" })}, good, chain.ErrAnswer},
	} {
		var nodes []*fakeNode
		for _, s := range tt.nodes {
			nodes = append(nodes, s.node())
		}
		c, timer := connect(t, nodes...)
		timer.frozen = true // every node is waited for
		got, err := c.Gas(t.Context(), account, 420)
		quiet(t, err)
		switch {
		case tt.err == errors.ErrUnsupported:
			if err == nil {
				t.Errorf("%s: %+v", name, got)
			}
		case !errors.Is(err, tt.err) || err == nil && got != tt.want:
			t.Errorf("%s: %+v, %v; want %+v, %v", name, got, err, tt.want, tt.err)
		}
	}
}

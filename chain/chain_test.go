package chain_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/payment"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]chain.Config{
		"no id":          {URLs: []string{"https://rpc.example"}},
		"no EVM id":      {ID: "solana:5", URLs: []string{"https://rpc.example"}},
		"no URL":         {ID: payment.Base},
		"websocket":      {ID: payment.Base, URLs: []string{"wss://rpc.example/" + secret}},
		"not a URL":      {ID: payment.Base, URLs: []string{"://" + secret}},
		"no host":        {ID: payment.Base, URLs: []string{"https:///" + secret}},
		"one node twice": {ID: payment.Base, URLs: []string{"https://rpc.example/" + secret, "https://rpc.example/" + secret}},
	} {
		_, err := chain.New(c)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		quiet(t, err)
	}
	if _, err := chain.New(chain.Config{ID: payment.Base, URLs: []string{"https://a.example", "http://127.0.0.1:1"}}); err != nil {
		t.Error(err)
	}
}

// TestOneNodeInTwoSpellings refuses a second spelling, and takes what is another
// node.
func TestOneNodeInTwoSpellings(t *testing.T) {
	t.Parallel()
	for second, same := range map[string]bool{
		"https://NODE.example/v2/key?a=1&b=2":                  true,
		"HTTPS://node.example/v2/key?a=1&b=2":                  true,
		"https://node.example:443/v2/key?a=1&b=2":              true,
		"https://node.example:/v2/key?a=1&b=2":                 true,
		"https://node.example./v2/key?a=1&b=2":                 true,
		"https://node.example/v2/key/?a=1&b=2":                 true,
		"https://node.example//v2/./key?a=1&b=2":               true,
		"https://node.example/v2/%6bey?b=2&a=1":                true,
		"https://node.example/v2/key?a=1&b=2#x":                true,
		"https://u:" + secret + "@node.example/v2/key?a=1&b=2": true,
		"https://node.example/v2/KEY?a=1&b=2":                  false,
		"https://node.example/v2/key?a=1&b=3":                  false,
		"https://node.example:8443/v2/key?a=1&b=2":             false,
		"https://other.example/v2/key?a=1&b=2":                 false,
	} {
		_, err := chain.New(chain.Config{ID: payment.Base, URLs: []string{"https://node.example/v2/key?a=1&b=2", second}})
		if (err != nil) != same {
			t.Errorf("%s: %v, want an error: %t", second, err, same)
		}
		quiet(t, err)
	}
	for _, urls := range [][]string{
		{"http://geth_node", "http://GETH_node:80/"},
		{"http://[::1]:8545", "http://[0:0:0:0:0:0:0:1]:8545/"},
		{"https://bücher.example", "https://xn--bcher-kva.example"},
	} {
		if _, err := chain.New(chain.Config{ID: payment.Base, URLs: urls}); err == nil {
			t.Errorf("%v count as two", urls)
		}
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	a, b := newFakeNode(), newFakeNode()
	b.finalized, b.latest = 998, 1020 // b is behind in one and ahead in the other
	a.balance, b.balance = 5_000_000, 5_000_000
	for _, n := range []*fakeNode{a, b} {
		n.settle(1, 900, payee, 70)
		n.cancel(3, 901)
	}
	c, _ := connect(t, a, b)
	ctx := t.Context()
	if c.ID() != payment.Base || c.Sources() != 2 {
		t.Errorf("%s with %d sources", c.ID(), c.Sources())
	}
	at, err := c.Finalized(ctx)
	if err != nil || at.Number != 998 || !at.Time.Equal(blockTime(998)) {
		t.Fatalf("finalized is %+v, %v; want the lower one, 998", at, err)
	}
	if got, err := c.Latest(ctx); err != nil || got.Number != 1010 {
		t.Errorf("latest is %+v, %v; want the lower one, 1010", got, err)
	}
	if got, err := c.Balance(ctx, usdc, account); err != nil || got != payment.UnitsOf(5_000_000) {
		t.Errorf("balance %v, %v", got, err)
	}
	used, err := c.Used(ctx, []payment.Slot{slot(1), slot(2), slot(3)}, at)
	if err != nil || !slices.Equal(used, []bool{true, false, true}) {
		t.Errorf("used %v, %v", used, err)
	}
	uses, err := c.Uses(ctx, usdc, account, 0, at)
	if err != nil || len(uses) != 2 {
		t.Fatalf("uses %+v, %v", uses, err)
	}
	want := payment.Settlement{Slot: slot(1), TxHash: fmt.Sprintf("0x%064x", 0x1001), Block: 900, Time: blockTime(900),
		Moved: []payment.Recipient{{Address: payee, Amount: payment.UnitsOf(70)}}}
	if !uses[0].Equal(want) {
		t.Errorf("use %+v, want %+v", uses[0], want)
	}
	if u := uses[1]; !u.Canceled || u.Slot != slot(3) || len(u.Moved) != 0 {
		t.Errorf("cancellation %+v", u)
	}
	for _, u := range uses {
		if ok, err := c.Confirm(ctx, u); err != nil || !ok {
			t.Errorf("confirm: %v, %v", ok, err)
		}
	}
	forged := uses[0]
	forged.Moved = nil
	if ok, err := c.Confirm(ctx, forged); err != nil || ok {
		t.Errorf("confirms what nobody shows: %v, %v", ok, err)
	}
	for at := range uint64(999) {
		if at > 20 && at%97 != 0 && at < 980 {
			continue
		}
		for _, off := range []time.Duration{0, time.Second} {
			if n, err := c.BlockAt(ctx, blockTime(at).Add(off), payment.Block{Number: 998, Time: blockTime(998)}); err != nil || n > at || 998-n > 4*(998-at)+16 {
				t.Fatalf("block at %d + %s is %d, %v", at, off, n, err)
			}
		}
	}
	if n, err := c.BlockAt(ctx, genesis.Add(-time.Hour), at); err != nil || n != 0 {
		t.Errorf("before the first block: %d, %v", n, err)
	}
	if a.called("eth_chainId") != 1 || b.called("eth_chainId") != 1 {
		t.Errorf("the chain's id was asked %d and %d times", a.called("eth_chainId"), b.called("eth_chainId"))
	}
}

func TestForeignQuestions(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, newFakeNode())
	other := usdc
	other.Chain = payment.BaseSepolia
	at := payment.Block{Number: 1}
	foreign, lane := slot(1), payment.Slot{Kind: payment.SlotLane, Chain: payment.Base}
	foreign.Chain = payment.BaseSepolia
	_, err1 := c.Balance(t.Context(), other, account)
	_, err2 := c.Uses(t.Context(), other, account, 0, at)
	_, err3 := c.Used(t.Context(), []payment.Slot{foreign}, at)
	_, err4 := c.Used(t.Context(), []payment.Slot{lane}, at)
	_, err5 := c.Confirm(t.Context(), payment.Settlement{Slot: foreign})
	for i, err := range []error{err1, err2, err3, err4, err5} {
		if err == nil {
			t.Errorf("question %d about something else has an answer", i+1)
		}
	}
}

// TestBadNodes has one node that is no good. With another good one nothing can
// be released, and everything else is still answered; alone it is an error that
// says why and tells no key.
func TestBadNodes(t *testing.T) {
	t.Parallel()
	status := func(code int, body string) func(http.ResponseWriter, *http.Request, []rpc) bool {
		return func(w http.ResponseWriter, _ *http.Request, _ []rpc) bool {
			w.WriteHeader(code)
			w.Write([]byte(body))
			return true
		}
	}
	for name, tt := range map[string]struct {
		bend func(*fakeNode)
		want error
	}{
		"wrong chain": {func(n *fakeNode) { n.id = "0x1" }, chain.ErrWrongChain},
		"HTML":        {func(n *fakeNode) { n.raw = status(200, "<html><b>please log in</b></html>") }, chain.ErrAnswer},
		"HTML 502":    {func(n *fakeNode) { n.raw = status(502, "<html>"+secret+"</html>") }, chain.ErrUnreachable},
		"nothing":     {func(n *fakeNode) { n.raw = status(200, "") }, chain.ErrAnswer},
		"null":        {func(n *fakeNode) { n.raw = status(200, "null") }, chain.ErrAnswer},
		"no answers":  {func(n *fakeNode) { n.raw = status(200, "[]") }, chain.ErrAnswer},
		"another id":  {func(n *fakeNode) { n.raw = status(200, `[{"jsonrpc":"2.0","id":7,"result":"0x1"}]`) }, chain.ErrAnswer},
		"twice":       {func(n *fakeNode) { n.raw = status(200, `[{"id":1,"result":"0x2105"},{"id":1,"result":"0x2105"}]`) }, chain.ErrAnswer},
		"no id":       {func(n *fakeNode) { n.raw = status(200, `[{"result":"0x2105"}]`) }, chain.ErrAnswer},
		"no result":   {func(n *fakeNode) { n.raw = status(200, `[{"id":1}]`) }, chain.ErrAnswer},
		"huge":        {func(n *fakeNode) { n.raw = status(200, strings.Repeat(" ", 9<<20)) }, chain.ErrAnswer},
		"redirect": {func(n *fakeNode) {
			n.raw = func(w http.ResponseWriter, r *http.Request, _ []rpc) bool {
				http.Redirect(w, r, "/elsewhere/"+secret, http.StatusTemporaryRedirect)
				return true
			}
		}, chain.ErrUnreachable},
		"hangs up": {func(n *fakeNode) {
			n.raw = func(http.ResponseWriter, *http.Request, []rpc) bool { panic(http.ErrAbortHandler) }
		}, chain.ErrUnreachable},
		"refuses, naming the key": {func(n *fakeNode) {
			n.bend = func(rpc) (reply, bool) { return reply{code: -32001, text: "bad key " + secret + "0"}, true }
		}, nil},
		"a block that is none": {func(n *fakeNode) {
			n.bend = func(c rpc) (reply, bool) { return reply{result: "0x1"}, c.Method == "eth_getBlockByNumber" }
		}, chain.ErrAnswer},
		"no block": {func(n *fakeNode) {
			n.bend = func(c rpc) (reply, bool) { return reply{}, c.Method == "eth_getBlockByNumber" }
		}, chain.ErrAnswer},
		"a block of the year 10000": {func(n *fakeNode) {
			n.bend = func(c rpc) (reply, bool) {
				h := header(1000)
				h["timestamp"] = "0xfffffffffff"
				return reply{result: h}, c.Method == "eth_getBlockByNumber"
			}
		}, chain.ErrAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad, good := newFakeNode(), newFakeNode()
			tt.bend(bad)
			alone, _ := connect(t, bad)
			_, err := alone.Finalized(t.Context())
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("alone: %v, want %v", err, tt.want)
			}
			quiet(t, err)
			if text := fmt.Sprint(err); len(text) > 400 {
				t.Errorf("an error of %d characters: %.100s", len(text), text)
			}
			two, _ := connect(t, bad, good)
			if at, err := two.Finalized(t.Context()); err == nil {
				t.Errorf("one node's word is enough: %+v", at)
			}
			if b, err := two.Latest(t.Context()); err != nil || b.Number != 1010 {
				t.Errorf("latest of the good one: %+v, %v", b, err)
			}
			// Three, of which two are good, release again.
			three, clock := connect(t, good, bad, newFakeNode())
			clock.frozen = false
			if at, err := three.Finalized(t.Context()); err != nil || at.Number != 1000 {
				t.Errorf("two of three: %+v, %v", at, err)
			}
		})
	}
}

// TestAnotherBlock has a node give another block than the one asked for.
func TestAnotherBlock(t *testing.T) {
	t.Parallel()
	n := newFakeNode()
	n.bend = func(c rpc) (reply, bool) { return reply{result: header(5)}, c.Method == "eth_getBlockByNumber" }
	c, _ := connect(t, n)
	if at, err := c.BlockAt(t.Context(), genesis, payment.Block{Number: 998, Time: blockTime(998)}); !errors.Is(err, chain.ErrAnswer) {
		t.Errorf("block %d, %v", at, err)
	}
}

// TestLiars has one of two nodes lie about a slot, a block or a log.
func TestLiars(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	honest, liar := newFakeNode(), newFakeNode()
	honest.settle(1, 900, payee, 70)
	c, _ := connect(t, honest, liar)
	at, err := c.Finalized(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Used(ctx, []payment.Slot{slot(1), slot(2)}, at); !errors.Is(err, chain.ErrDisagree) {
		t.Errorf("one says used, the other not: %v", err)
	}
	if used, err := c.Used(ctx, []payment.Slot{slot(2)}, at); err != nil || used[0] {
		t.Errorf("both say unused: %v, %v", used, err)
	}

	// The liar shows a cancellation, or another payee, of a payment that moved.
	for name, lie := range map[string]struct {
		bend        func(*fakeNode)
		least, most int // uses that are told
	}{
		"cancelled":     {func(n *fakeNode) { n.cancel(1, 900) }, 2, 2},
		"another payee": {func(n *fakeNode) { n.settle(1, 900, payment.Address{1}, 70) }, 1, 1},
		"nothing moved": {func(n *fakeNode) { n.settle(1, 900, payee, 70); n.logs = n.logs[:1] }, 1, 2},
	} {
		liar := newFakeNode()
		lie.bend(liar)
		c, _ := connect(t, honest, liar)
		truths := 0
		for range 20 { // whichever is asked for what was moved
			uses, err := c.Uses(ctx, usdc, account, 0, at)
			if err != nil || len(uses) < lie.least || len(uses) > lie.most {
				t.Fatalf("%s: %v, %v", name, uses, err)
			}
			for _, u := range uses { // of each of them
				if ok, err := c.Confirm(ctx, u); ok || !errors.Is(err, chain.ErrDisagree) {
					t.Errorf("%s: confirmed %v, %v", name, ok, err)
				}
				if !u.Canceled && len(u.Moved) == 1 && u.Moved[0].Address == payee {
					truths++
				}
			}
		}
		if truths == 0 || truths < 20 && name != "another payee" {
			t.Errorf("%s: the truth was told %d times of 20", name, truths)
		}
	}

	liar.bend = func(c rpc) (reply, bool) {
		h := header(1000)
		h["hash"] = "0x" + strings.Repeat("ee", 32)
		return reply{result: h}, c.Method == "eth_getBlockByNumber"
	}
	if at, err := c.Finalized(ctx); !errors.Is(err, chain.ErrDisagree) {
		t.Errorf("two blocks of one number: %+v, %v", at, err)
	}
	liar.bend = func(c rpc) (reply, bool) {
		h := header(1000)
		h["timestamp"] = q(uint64(blockTime(9999).Unix()))
		return reply{result: h}, c.Method == "eth_getBlockByNumber"
	}
	if at, err := c.Finalized(ctx); !errors.Is(err, chain.ErrDisagree) {
		t.Errorf("two times of one block: %+v, %v", at, err)
	}
}

// TestBlockAtByALiar has one node date blocks wrongly, whichever it is: what is
// given is not after the time by the word of the others, and no word alone is
// enough.
func TestBlockAtByALiar(t *testing.T) {
	t.Parallel()
	honest, last := newFakeNode(), payment.Block{Number: 998, Time: blockTime(998)}
	for name, date := range map[string]time.Time{"of 1970": time.Unix(1, 0), "of 2100": time.Unix(4102444800, 0)} {
		liar := newFakeNode()
		liar.bend = func(c rpc) (reply, bool) {
			if c.Method != "eth_getBlockByNumber" || !strings.HasPrefix(text(c), "0x") {
				return reply{}, false
			}
			n, _ := strconv.ParseUint(text(c)[2:], 16, 64)
			h := header(n)
			h["timestamp"] = q(uint64(date.Unix()))
			return reply{result: h}, true
		}
		for _, nodes := range [][]*fakeNode{{honest, liar}, {liar, honest}, {liar, honest, newFakeNode()}} {
			c, clock := connect(t, nodes...)
			clock.frozen = len(nodes) == 2
			for range 4 {
				if n, err := c.BlockAt(t.Context(), blockTime(900), last); err != nil || n > 900 {
					t.Errorf("%s: block %d of %d nodes, %v", name, n, len(nodes), err)
				}
			}
		}
	}
	silent := newFakeNode()
	silent.bend = func(c rpc) (reply, bool) { return reply{}, c.Method == "eth_getBlockByNumber" }
	for _, nodes := range [][]*fakeNode{{honest, silent}, {silent, honest}} {
		c, _ := connect(t, nodes...)
		for range 2 {
			if n, err := c.BlockAt(t.Context(), blockTime(900), last); !errors.Is(err, chain.ErrAnswer) {
				t.Errorf("block %d by the word of one of two, %v", n, err)
			}
		}
	}
	c, clock := connect(t, silent, honest, newFakeNode())
	clock.frozen = false
	if n, err := c.BlockAt(t.Context(), blockTime(900), last); err != nil || n > 900 || n == 0 {
		t.Errorf("block %d by the word of two of three, %v", n, err)
	}
}

// TestOneStalls has a node that never answers beside two that do.
func TestOneStalls(t *testing.T) {
	t.Parallel()
	stuck := newFakeNode()
	release := make(chan struct{})
	stuck.raw = func(_ http.ResponseWriter, r *http.Request, _ []rpc) bool {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return true
	}
	good := newFakeNode()
	good.balance = 1
	c, clock := connect(t, stuck, good, newFakeNode())
	t.Cleanup(func() { close(release) })
	clock.frozen = false
	start := time.Now()
	if at, err := c.Finalized(t.Context()); err != nil || at.Number != 1000 {
		t.Errorf("two of three: %+v, %v", at, err)
	}
	if _, err := c.Balance(t.Context(), usdc, account); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("waited %s for a node that is not needed", took)
	}
	two, _ := connect(t, stuck, good)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := two.Finalized(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one of two: %v", err)
	} else {
		quiet(t, err)
	}
}

// TestPatience waits for a node that asks to be asked later, and only so often.
func TestPatience(t *testing.T) {
	t.Parallel()
	for name, busy := range map[string]func(n *fakeNode, times int){
		"429": func(n *fakeNode, times int) {
			n.raw = func(w http.ResponseWriter, _ *http.Request, _ []rpc) bool {
				if n.requests() > times {
					return false
				}
				w.Header().Set("Retry-After", "2")
				w.WriteHeader(http.StatusTooManyRequests)
				return true
			}
		},
		"-32005": func(n *fakeNode, times int) {
			n.bend = func(rpc) (reply, bool) { return reply{code: -32005, text: "slow down"}, n.requests() <= times }
		},
		"-32005 for all": func(n *fakeNode, times int) {
			n.raw = func(w http.ResponseWriter, _ *http.Request, _ []rpc) bool {
				if n.requests() > times {
					return false
				}
				w.Write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"slow down"}}`))
				return true
			}
		},
	} {
		n := newFakeNode()
		busy(n, 3)
		c, clock := connect(t, n)
		clock.frozen = false
		if _, err := c.Latest(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		slept := clock.sleeps()
		if len(slept) != 3 || slept[0] > 2*time.Second || slept[2] < slept[0] {
			t.Errorf("%s: slept %v", name, slept)
		}
		n = newFakeNode()
		busy(n, 1000)
		c, clock = connect(t, n)
		clock.frozen = false
		if _, err := c.Latest(t.Context()); err == nil || n.requests() != 4 {
			t.Errorf("%s for ever: %v after %d requests, want an error after 4", name, err, n.requests())
		} else {
			quiet(t, err)
		}
	}
}

// TestPatienceEnds stops waiting when the caller does.
func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	n := newFakeNode()
	n.bend = func(rpc) (reply, bool) { return reply{code: 429}, true }
	c, _ := connect(t, n)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Latest(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

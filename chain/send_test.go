package chain_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/payment"
)

var signed = []byte{0x76, 0xc0, 0x01}

func TestBroadcast(t *testing.T) {
	t.Parallel()
	says := func(code int, text string) func(*fakeNode) {
		return func(n *fakeNode) {
			n.bend = func(c rpc) (reply, bool) { return reply{code: code, text: text}, c.Method == "eth_sendRawTransaction" }
		}
	}
	down := func(n *fakeNode) {
		n.raw = func(w http.ResponseWriter, _ *http.Request, _ []rpc) bool { w.WriteHeader(502); return true }
	}
	takes := func(*fakeNode) {}
	late := says(-32003, "Tempo tx valid_before (1796082081) must be > current time + 3s (1796082089)")
	poor := says(-32003, "insufficient fee token balance: have 0, need 7500")
	for name, tt := range map[string]struct {
		a, b    func(*fakeNode)
		want    error // ErrExpired, or another
		refused int   // the code of an RPCError
		ok      bool
	}{
		"both take it":          {a: takes, b: takes, ok: true},
		"one takes it":          {a: takes, b: down, ok: true},
		"the other takes it":    {a: poor, b: takes, ok: true},
		"it is imported":        {a: says(-32003, "transaction already imported"), b: down, ok: true},
		"it is known":           {a: says(-32000, "already known"), b: poor, ok: true},
		"it is known, loudly":   {a: says(-32000, "ALREADY_EXISTS: Already Known"), b: down, ok: true},
		"too late":              {a: late, b: down, want: chain.ErrExpired, refused: -32003},
		"too late by one clock": {a: late, b: takes, ok: true},
		"poor":                  {a: poor, b: poor, refused: -32003},
		"nowhere":               {a: down, b: down, want: chain.ErrUnreachable},
		"the wrong chain":       {a: func(n *fakeNode) { n.id = "0x1" }, b: down, want: chain.ErrWrongChain},
		"another transaction": {a: func(n *fakeNode) {
			n.bend = func(c rpc) (reply, bool) {
				return reply{result: "0x" + strings.Repeat("11", 32)}, c.Method == "eth_sendRawTransaction"
			}
		}, b: down, want: chain.ErrAnswer},
		"nothing": {a: func(n *fakeNode) {
			n.bend = func(c rpc) (reply, bool) { return reply{result: nil}, c.Method == "eth_sendRawTransaction" }
		}, b: down, want: chain.ErrAnswer},
	} {
		a, b := newTempoNode(), newTempoNode()
		tt.a(a)
		tt.b(b)
		c := connectTempo(t, a, b)
		got, err := c.Broadcast(t.Context(), signed)
		if want := "0x" + hex.EncodeToString(hash(string(signed))); got != want {
			t.Errorf("%s: hash %s, want %s", name, got, want)
		}
		quiet(t, err)
		var refused *chain.RPCError
		switch {
		case tt.ok != (err == nil):
			t.Errorf("%s: %v", name, err)
		case tt.want != nil && !errors.Is(err, tt.want):
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		case tt.want != chain.ErrExpired && errors.Is(err, chain.ErrExpired):
			t.Errorf("%s: %v", name, err)
		case tt.refused != 0 && (!errors.As(err, &refused) || refused.Code != tt.refused):
			t.Errorf("%s: %v, want code %d", name, err, tt.refused)
		}
		for _, n := range []*fakeNode{a, b} {
			if n.id != "0xa5bf" && n.called("eth_sendRawTransaction") > 0 {
				t.Errorf("%s: it was sent to another chain", name)
			}
			if n.called("eth_sendRawTransaction") > 1 {
				t.Errorf("%s: it was sent %d times", name, n.called("eth_sendRawTransaction"))
			}
		}
	}
}

// TestBroadcastPutOff sends the same bytes again, and only so often, where a
// node asks for patience.
func TestBroadcastPutOff(t *testing.T) {
	t.Parallel()
	n := newTempoNode()
	n.bend = func(c rpc) (reply, bool) {
		return reply{code: -32005, text: "slow down"}, c.Method == "eth_sendRawTransaction" && n.requests() < 4
	}
	c, clock := connectTo(t, chain.Config{ID: payment.TempoTest}, n)
	clock.frozen = false
	if _, err := c.Broadcast(t.Context(), signed); err != nil || len(clock.sleeps()) != 2 {
		t.Errorf("%v after %v", err, clock.sleeps())
	}
	if !slices.Equal(n.raws, []string{"0x76c001"}) {
		t.Errorf("sent %v", n.raws)
	}
}

func TestReceipt(t *testing.T) {
	t.Parallel()
	good := sent{n: 1, block: 900, key: &laneKey}
	bad := sent{n: 2, block: 901, key: &laneKey, failed: true}
	behind, ahead := newTempoNode(), newTempoNode(good, bad)
	ahead.ends[bad.hash()]["blockTimestamp"] = nil
	c := connectTempo(t, behind, ahead)
	at := payment.Block{Number: 900, Hash: payment.Hash(nonceOf(0)), Time: blockTime(900)}
	at.Hash = payment.Hash{30: byte((900 + 0xb10c) >> 8), 31: byte((900 + 0xb10c) & 0xff)}
	for range 5 { // whichever node is first
		found, ok, block, err := c.Receipt(t.Context(), good.hash())
		if err != nil || !found || !ok || block != at {
			t.Errorf("%v %v %+v, %v; want block %+v", found, ok, block, err, at)
		}
		found, ok, block, err = c.Receipt(t.Context(), bad.hash())
		if err != nil || !found || ok || block.Number != 901 || !block.Time.IsZero() {
			t.Errorf("failed: %v %v %+v, %v", found, ok, block, err)
		}
	}
	if found, ok, block, err := c.Receipt(t.Context(), sent{n: 3}.hash()); err != nil || found || ok || block != (payment.Block{}) {
		t.Errorf("none: %v %v %+v, %v", found, ok, block, err)
	}
	for name, end := range map[string]any{
		"another":    ahead.ends[bad.hash()],
		"no status":  map[string]any{"transactionHash": good.hash(), "blockNumber": "0x384"},
		"pending":    map[string]any{"transactionHash": good.hash(), "status": "0x1", "blockNumber": nil},
		"no receipt": "yes",
		"no time":    map[string]any{"transactionHash": good.hash(), "status": "0x1", "blockNumber": "0x384", "blockTimestamp": "soon"},
	} {
		n := newTempoNode()
		n.bend = func(c rpc) (reply, bool) { return reply{result: end}, c.Method == "eth_getTransactionReceipt" }
		if found, ok, _, err := connectTempo(t, n).Receipt(t.Context(), good.hash()); !errors.Is(err, chain.ErrAnswer) || found || ok {
			t.Errorf("%s: %v %v, %v", name, found, ok, err)
		}
	}
	for _, text := range []string{"", "0x", "0x12", good.hash() + "00", `0x"`, fmt.Sprintf("%064x", 1)} {
		if _, _, _, err := c.Receipt(t.Context(), text); err == nil || strings.Contains(err.Error(), "node") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

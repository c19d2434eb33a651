package chain_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/payment"
)

var final = payment.Block{Number: 1000, Time: blockTime(1000)}

// TestForgedLogs refuses what was not asked for, and never reads it as ours.
func TestForgedLogs(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(map[string]any){
		"another token":   func(l map[string]any) { l["address"] = payee.Lower() },
		"no token":        func(l map[string]any) { l["address"] = "0x" },
		"another account": func(l map[string]any) { l["topics"].([]string)[1] = topic(payee) },
		"no account":      func(l map[string]any) { l["topics"] = l["topics"].([]string)[:1] },
		"no topics":       func(l map[string]any) { l["topics"] = []string{} },
		"a later block":   func(l map[string]any) { l["blockNumber"] = q(1001) },
		"removed":         func(l map[string]any) { l["removed"] = true },
		"short topics":    func(l map[string]any) { l["topics"].([]string)[1] = "0x01" },
		"no hash":         func(l map[string]any) { l["transactionHash"] = "0x" },
	} {
		n := newFakeNode()
		n.settle(1, 900, payee, 70)
		logs := n.logs
		change(logs[0])
		n.bend = func(c rpc) (reply, bool) { return reply{result: logs}, c.Method == "eth_getLogs" }
		c, _ := connect(t, n)
		if uses, err := c.Uses(t.Context(), usdc, account, 0, final); !errors.Is(err, chain.ErrAnswer) {
			t.Errorf("%s: %+v, %v", name, uses, err)
		}
	}
	// Odd, and not an error: it shows no transfer of the use.
	for name, change := range map[string]func([]map[string]any){
		"no amount":        func(l []map[string]any) { l[1]["data"] = "0x" },
		"padded payee":     func(l []map[string]any) { l[1]["topics"].([]string)[2] = "0x" + strings.Repeat("ff", 32) },
		"no payee":         func(l []map[string]any) { l[1]["topics"] = l[1]["topics"].([]string)[:2] },
		"another tx":       func(l []map[string]any) { l[1]["transactionHash"] = "0x" + strings.Repeat("11", 32) },
		"before the use":   func(l []map[string]any) { l[1]["logIndex"] = "0x0" },
		"another event":    func(l []map[string]any) { l[1]["topics"].([]string)[0] = "0x" + strings.Repeat("22", 32) },
		"an earlier block": func(l []map[string]any) { l[1]["blockNumber"] = q(899) },
	} {
		n := newFakeNode()
		n.settle(1, 900, payee, 70)
		change(n.logs)
		c, _ := connect(t, n)
		uses, err := c.Uses(t.Context(), usdc, account, 0, final)
		if err != nil || len(uses) != 1 || len(uses[0].Moved) != 0 || uses[0].Canceled {
			t.Errorf("%s: %+v, %v", name, uses, err)
		}
	}
}

// TestSeveralInOneTransaction tells apart what each use of one transaction
// moved.
func TestSeveralInOneTransaction(t *testing.T) {
	t.Parallel()
	n := newFakeNode()
	n.stamps = false
	tx := "0x" + strings.Repeat("33", 32)
	n.settle(2, 900, payee, 20)
	n.settle(1, 900, payment.Address{9}, 10)
	n.cancel(3, 900)
	for _, l := range n.logs {
		l["transactionHash"] = tx
	}
	// An ordinary transfer of the account belongs to none of them.
	n.log(900, 50, tx, word(99), "Transfer(address,address,uint256)", topic(account), topic(payee))
	c, _ := connect(t, n)
	uses, err := c.Uses(t.Context(), usdc, account, 0, final)
	if err != nil || len(uses) != 3 {
		t.Fatalf("%+v, %v", uses, err)
	}
	for i, want := range []struct {
		nonce byte
		to    payment.Address
		moved uint64
	}{{1, payment.Address{9}, 10}, {2, payee, 20}, {3, payee, 0}} {
		u := uses[i]
		if u.Slot != slot(want.nonce) || !u.Time.IsZero() || u.Canceled != (want.moved == 0) {
			t.Errorf("use %d is %+v", i, u)
		}
		if want.moved > 0 && (len(u.Moved) != 1 || u.Moved[0] != payment.Recipient{Address: want.to, Amount: payment.UnitsOf(want.moved)}) {
			t.Errorf("use %d moved %+v", i, u.Moved)
		}
	}
}

// TestRanges splits a long search, and smaller where a node finds it too much.
func TestRanges(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(w http.ResponseWriter, span uint64) bool{
		"none": func(http.ResponseWriter, uint64) bool { return false },
		"by an error": func(w http.ResponseWriter, span uint64) bool {
			if span > 700 {
				fmt.Fprint(w, `[{"id":1,"error":{"code":-32600,"message":"block range too large"}}]`)
			}
			return span > 700
		},
		"by a code that others use for busy": func(w http.ResponseWriter, span uint64) bool {
			if span > 1300 {
				fmt.Fprint(w, `[{"id":1,"error":{"code":-32005,"message":"query returned more than 10000 results"}}]`)
			}
			return span > 1300
		},
		"by too long an answer": func(w http.ResponseWriter, span uint64) bool {
			if span > 700 {
				fmt.Fprint(w, strings.Repeat(" ", 8<<20+1))
			}
			return span > 700
		},
	} {
		n := newFakeNode()
		n.finalized, n.latest = 12_000, 12_010
		for i := range 120 {
			n.settle(byte(i+1), uint64(i*100+1), payee, uint64(i+1))
		}
		n.raw = func(w http.ResponseWriter, _ *http.Request, calls []rpc) bool {
			if calls[0].Method != "eth_getLogs" {
				return false
			}
			var p struct{ FromBlock, ToBlock string }
			json.Unmarshal(calls[0].Params[0], &p)
			from, _ := strconv.ParseUint(p.FromBlock[2:], 16, 64)
			to, _ := strconv.ParseUint(p.ToBlock[2:], 16, 64)
			if to < from || to > 12_000 || to-from >= 5000 {
				t.Errorf("%s: asked for %d to %d", name, from, to)
			}
			return refuse(w, to-from+1)
		}
		c, clock := connect(t, n)
		clock.frozen = false
		uses, err := c.Uses(t.Context(), usdc, account, 0, payment.Block{Number: 12_000})
		if err != nil || len(uses) != 120 {
			t.Fatalf("%s: %d uses, %v", name, len(uses), err)
		}
		for i, u := range uses {
			if u.Slot != slot(byte(i+1)) || len(u.Moved) != 1 {
				t.Errorf("%s: use %d is %+v", name, i, u)
			}
		}
	}
	n := newFakeNode()
	n.bend = func(c rpc) (reply, bool) { return reply{code: -32000, text: "no"}, c.Method == "eth_getLogs" }
	c, _ := connect(t, n)
	if _, err := c.Uses(t.Context(), usdc, account, 0, final); err == nil || n.called("eth_getLogs") > 20 {
		t.Errorf("a node that refuses every range: %v after %d calls", err, n.called("eth_getLogs"))
	}
}

// TestBatches puts many questions into few requests, and smaller ones where a
// node takes no more.
func TestBatches(t *testing.T) {
	t.Parallel()
	slots := make([]payment.Slot, 250)
	for i := range slots {
		slots[i] = slot(byte(i))
	}
	check := func(t *testing.T, n *fakeNode, most int) {
		t.Helper()
		n.settle(7, 900, payee, 1)
		c, _ := connect(t, n)
		used, err := c.Used(t.Context(), slots, final)
		if err != nil {
			t.Fatal(err)
		}
		for i, u := range used {
			if u != (byte(i) == 7) {
				t.Errorf("slot %d used: %v", i, u)
			}
		}
		if n.requests() > most {
			t.Errorf("%d requests, want at most %d", n.requests(), most)
		}
	}
	check(t, newFakeNode(), 1+1) // one call of a node that runs code
	check(t, singly(newFakeNode()), 1+1+3)
	for name, refuse := range map[string]func(http.ResponseWriter){
		"413":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusRequestEntityTooLarge) },
		"error": func(w http.ResponseWriter) { fmt.Fprint(w, `{"error":{"code":-32600,"message":"batch too large"}}`) },
		"400 with error": func(w http.ResponseWriter) {
			w.WriteHeader(400)
			fmt.Fprint(w, `{"error":{"code":-32600,"message":"batch too large"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := singly(newFakeNode())
			n.raw = func(w http.ResponseWriter, _ *http.Request, calls []rpc) bool {
				if len(calls) > 12 {
					refuse(w)
				}
				return len(calls) > 12
			}
			check(t, n, 1+1+4+22) // 100, 50, 25, then 12 at once
		})
	}
	// A node that answers a part of a batch has not answered.
	n := singly(newFakeNode())
	n.raw = func(w http.ResponseWriter, _ *http.Request, calls []rpc) bool {
		if len(calls) > 1 {
			w.Write(n.answer(calls[:len(calls)-1]))
		}
		return len(calls) > 1
	}
	c, _ := connect(t, n)
	if used, err := c.Used(t.Context(), slots[:5], final); !errors.Is(err, chain.ErrAnswer) {
		t.Errorf("a part of the answers: %v, %v", used, err)
	}
	// Neither true nor false is no answer, nor is that of an account without code.
	for _, odd := range []string{"0x", "0x" + strings.Repeat("0", 63) + "2", "0x01"} {
		n := newFakeNode()
		n.bend = func(c rpc) (reply, bool) { return reply{result: odd}, c.Method == "eth_call" }
		c, _ := connect(t, n)
		if used, err := c.Used(t.Context(), slots[:1], final); !errors.Is(err, chain.ErrAnswer) {
			t.Errorf("%s: %v, %v", odd, used, err)
		}
	}
}

// singly has n refuse to run code that is not laid.
func singly(n *fakeNode) *fakeNode {
	n.runs = false
	return n
}

// TestTraffic holds reconciling to 2 MiB for 1,000 holds, all of them settled,
// with two nodes that both show every use and answer without gzip.
func TestTraffic(t *testing.T) {
	t.Parallel()
	a, b := newFakeNode(), newFakeNode()
	slots := make([]payment.Slot, 1000)
	for i := range slots {
		slots[i] = slot(0)
		slots[i].NonceID = [32]byte{0: 2, 30: byte(i >> 8), 31: byte(i)}
		for _, n := range []*fakeNode{a, b} {
			tx, nonce := fmt.Sprintf("0x%064x", i+1), fmt.Sprintf("0x%x", slots[i].NonceID)
			n.log(uint64(i), 2*i, tx, nil, "AuthorizationUsed(address,bytes32)", topic(account), nonce)
			n.log(uint64(i), 2*i+1, tx, word(10_000), "Transfer(address,address,uint256)", topic(account), topic(payee))
			n.used[slots[i].NonceID] = true
		}
	}
	c, _ := connect(t, a, b)
	at, err := c.Finalized(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := c.Traffic()
	used, err := c.Used(t.Context(), slots, at)
	if err != nil || len(used) != len(slots) {
		t.Fatal(err)
	}
	if states := c.Traffic() - before; states > 150<<10 { // all there is of holds that are released
		t.Errorf("%d bytes for the state of 1,000 slots", states)
	}
	first, err := c.BlockAt(t.Context(), blockTime(3), at)
	if err != nil {
		t.Fatal(err)
	}
	uses, err := c.Uses(t.Context(), usdc, account, min(first, 0), at)
	if err != nil || len(uses) != len(slots) {
		t.Fatalf("%d uses, %v", len(uses), err)
	}
	const most = 2 << 20
	if total := int64(a.bytes + b.bytes); c.Traffic() != total || total > most {
		t.Errorf("%d bytes, counted as %d; at most %d", total, c.Traffic(), most)
	} else {
		t.Logf("%d KiB for 1,000 settled holds", total>>10)
	}
}

// TestUnionOfUses has nodes leave uses out, or tell them otherwise: what any of
// them shows is there, each once, and what too few tell is an error.
func TestUnionOfUses(t *testing.T) {
	t.Parallel()
	full, partial, silent := newFakeNode(), newFakeNode(), newFakeNode()
	for n := range byte(4) {
		full.settle(n+1, 900+uint64(n), payee, 70)
	}
	partial.stamps = false
	partial.settle(2, 901, payee, 70)
	partial.cancel(4, 903)
	c, _ := connect(t, full, partial)
	uses, err := c.Uses(t.Context(), usdc, account, 0, final)
	if err != nil || len(uses) != 5 || uses[3].Canceled == uses[4].Canceled {
		t.Fatalf("%+v, %v", uses, err)
	}
	for i, u := range uses { // of the fourth in the order of the answers
		if want := slot(byte(min(i+1, 4))); u.Slot != want || u.Canceled && i < 3 {
			t.Errorf("use %d is %+v", i, u)
		}
	}
	silent.bend = func(c rpc) (reply, bool) { return reply{code: -32601, text: "no"}, c.Method == "eth_getLogs" }
	c, _ = connect(t, full, silent)
	if uses, err := c.Uses(t.Context(), usdc, account, 0, final); err == nil {
		t.Errorf("one of two is enough: %+v", uses)
	}
}

// TestByAll marks what every node shows, whichever is asked for what was moved,
// and no use that one of them leaves out, makes up or tells otherwise.
func TestByAll(t *testing.T) {
	t.Parallel()
	nodes := []*fakeNode{newFakeNode(), newFakeNode(), newFakeNode()}
	for i, n := range nodes {
		n.stamps = i > 0
		n.settle(1, 900, payee, 70)
		n.cancel(4, 930)
		n.settle(6, 950, payee, 70)
	}
	nodes[0].settle(2, 910, payee, 70) // left out by the others
	nodes[1].cancel(3, 940)            // made up, beside a settlement of the others
	nodes[0].settle(3, 940, payee, 70)
	nodes[2].settle(3, 940, payee, 70)
	nodes[1].settle(5, 940, payment.Address{1}, 70) // to somebody else; all are asked for it by that cancellation
	nodes[0].settle(5, 940, payee, 70)
	nodes[2].settle(5, 940, payee, 70)
	for _, some := range [][]*fakeNode{nodes, {nodes[2], nodes[1]}, {nodes[0], nodes[1]}} {
		c, _ := connect(t, some...)
		for range 20 {
			uses, err := c.Uses(t.Context(), usdc, account, 0, final)
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			for _, u := range uses {
				if u.ByAll {
					got = append(got, u.Slot.NonceID[31])
				}
			}
			if !slices.Equal(got, []byte{1, 4, 6}) {
				t.Fatalf("of %d nodes marked are %v of %+v", len(some), got, uses)
			}
		}
	}
	alone, _ := connect(t, nodes[0])
	uses, err := alone.Uses(t.Context(), usdc, account, 0, final)
	if err != nil || len(uses) != 6 || slices.ContainsFunc(uses, func(s payment.Settlement) bool { return !s.ByAll }) {
		t.Errorf("of one: %+v, %v", uses, err)
	}
}

// TestWholeRefused has a node tell of uses and not of what they moved, or show
// one that it then does not explain: another is asked, and it does not count.
func TestWholeRefused(t *testing.T) {
	t.Parallel()
	coy, vague := newFakeNode(), newFakeNode()
	coy.bend = func(c rpc) (reply, bool) {
		return reply{code: -32000, text: "no"}, c.Method == "eth_getLogs" && asksMoved(c)
	}
	vague.settle(9, 950, payee, 1)
	vague.bend = coy.bend
	for name, n := range map[string]*fakeNode{"coy": coy, "vague": vague} {
		good := newFakeNode()
		good.settle(1, 900, payee, 70)
		if name == "coy" {
			n.settle(1, 900, payee, 70)
		}
		two, _ := connect(t, good, n)
		three, _ := connect(t, good, n, good)
		for range 20 { // whichever is asked for what was moved
			uses, err := two.Uses(t.Context(), usdc, account, 0, final)
			if err == nil && (name == "vague" || len(uses) != 1 || len(uses[0].Moved) != 1) {
				t.Errorf("%s: %+v of two", name, uses)
			}
			uses, err = three.Uses(t.Context(), usdc, account, 0, final)
			if err != nil || len(uses) != 1 || len(uses[0].Moved) != 1 {
				t.Errorf("%s: %+v, %v of three", name, uses, err)
			}
		}
	}
}

// asksMoved reports whether a question about logs is one for transfers too.
func asksMoved(c rpc) bool {
	return strings.Contains(string(c.Params[0]), hex.EncodeToString(hash("Transfer(address,address,uint256)")))
}

// TestNoLogsYet refuses the word of a node that is not at the last block, or
// gives nothing at all: it is not that there was no use.
func TestNoLogsYet(t *testing.T) {
	t.Parallel()
	behind := newFakeNode()
	behind.finalized, behind.latest = 990, 999
	null := newFakeNode()
	null.bend = func(c rpc) (reply, bool) { return reply{}, c.Method == "eth_getLogs" }
	headless := newFakeNode()
	headless.bend = func(c rpc) (reply, bool) { return reply{}, c.Method == "eth_blockNumber" }
	for name, n := range map[string]*fakeNode{"behind": behind, "null": null, "no head": headless} {
		alone, _ := connect(t, n)
		if uses, err := alone.Uses(t.Context(), usdc, account, 0, final); !errors.Is(err, chain.ErrAnswer) {
			t.Errorf("%s: %+v, %v", name, uses, err)
		}
		three, clock := connect(t, n, newFakeNode(), newFakeNode())
		clock.frozen = false
		if _, err := three.Uses(t.Context(), usdc, account, 0, final); err != nil {
			t.Errorf("%s beside two others: %v", name, err)
		}
	}
	// A node that takes one call in a request is asked one by one.
	single := newFakeNode()
	single.settle(1, 900, payee, 70)
	single.raw = func(w http.ResponseWriter, _ *http.Request, calls []rpc) bool {
		if len(calls) > 1 {
			fmt.Fprint(w, `{"error":{"code":-32600,"message":"batch too large"}}`)
		}
		return len(calls) > 1
	}
	c, _ := connect(t, single)
	if uses, err := c.Uses(t.Context(), usdc, account, 0, final); err != nil || len(uses) != 1 {
		t.Errorf("one by one: %+v, %v", uses, err)
	}
}

// TestOneStandsStill has one of three nodes stand still, or claim that blocks
// are final that are not: the others say what is.
func TestOneStandsStill(t *testing.T) {
	t.Parallel()
	still, hasty := newFakeNode(), newFakeNode()
	still.finalized, still.latest = 10, 20
	hasty.finalized = 1010
	for name, n := range map[string]*fakeNode{"still": still, "hasty": hasty} {
		c, _ := connect(t, newFakeNode(), n, newFakeNode())
		if at, err := c.Finalized(t.Context()); err != nil || at.Number != 1000 {
			t.Errorf("%s: %+v, %v", name, at, err)
		}
	}
	c, _ := connect(t, still, hasty)
	if at, err := c.Finalized(t.Context()); err != nil || at.Number != 10 {
		t.Errorf("two of two: %+v, %v", at, err)
	}
	other := newFakeNode()
	other.finalized = 900
	other.bend = func(c rpc) (reply, bool) {
		h := header(1000)
		h["hash"] = "0x" + strings.Repeat("ee", 32)
		return reply{result: h}, c.Method == "eth_getBlockByNumber" && string(c.Params[0]) == `"0x3e8"`
	}
	c, _ = connect(t, newFakeNode(), newFakeNode(), other)
	if at, err := c.Finalized(t.Context()); !errors.Is(err, chain.ErrDisagree) {
		t.Errorf("one has another block: %+v, %v", at, err)
	}
}

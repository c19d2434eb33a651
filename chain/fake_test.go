package chain_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/payment"
)

var (
	token   = payment.Address{19: 0xcc}
	account = payment.Address{19: 0xa1}
	payee   = payment.Address{19: 0xb2}
	usdc    = payment.Asset{Chain: payment.Base, Address: token, Symbol: "USDC", Decimals: 6, Name: "USD Coin", Version: "2"}
	genesis = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
)

// rpc is one call as a node reads it.
type rpc struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

// reply is what a node says to it: result, or the error.
type reply struct {
	result any
	code   int
	text   string
}

// fakeNode is an honest node of a chain of two-second blocks, which a test
// bends.
type fakeNode struct {
	id        string
	finalized uint64
	latest    uint64
	stamps    bool // logs carry blockTimestamp
	runs      bool // code that is not laid

	mu      sync.Mutex
	used    map[[32]byte]bool
	logs    []map[string]any
	balance uint64
	lanes   map[string]uint64         // counters of lanes, by key
	nonce   uint64                    // of the account itself
	txs     map[string]map[string]any // by hash
	ends    map[string]map[string]any // receipts
	raws    []string                  // what was sent
	counts  map[string]int            // of calls, by method
	asked   int                       // requests
	batches []int                     // their sizes
	bytes   int                       // of requests and answers

	// bend answers a call in the node's place where it returns true; raw does
	// so for a whole request.
	bend func(c rpc) (reply, bool)
	raw  func(w http.ResponseWriter, r *http.Request, calls []rpc) bool
}

func newFakeNode() *fakeNode {
	return &fakeNode{id: "0x2105", finalized: 1000, latest: 1010, stamps: true, runs: true, used: map[[32]byte]bool{}, counts: map[string]int{},
		lanes: map[string]uint64{}, txs: map[string]map[string]any{}, ends: map[string]map[string]any{}}
}

// settle puts a use of a nonce, and what it moved, into a block.
func (f *fakeNode) settle(nonce byte, block uint64, to payment.Address, amount uint64) {
	tx := fmt.Sprintf("0x%064x", uint64(nonce)+0x1000)
	f.log(block, 2*int(nonce), tx, nil, "AuthorizationUsed(address,bytes32)", topic(account), nonceHex(nonce))
	f.log(block, 2*int(nonce)+1, tx, word(amount), "Transfer(address,address,uint256)", topic(account), topic(to))
	f.used[nonceOf(nonce)] = true
}

func (f *fakeNode) cancel(nonce byte, block uint64) {
	f.log(block, 2*int(nonce), fmt.Sprintf("0x%064x", uint64(nonce)+0x1000), nil, "AuthorizationCanceled(address,bytes32)", topic(account), nonceHex(nonce))
	f.used[nonceOf(nonce)] = true
}

func (f *fakeNode) log(block uint64, index int, tx string, data []byte, event string, topics ...string) {
	l := map[string]any{
		"address": token.Lower(), "topics": append([]string{"0x" + hex.EncodeToString(hash(event))}, topics...),
		"data": "0x" + hex.EncodeToString(data), "blockNumber": q(block), "transactionHash": tx, "logIndex": q(uint64(index)),
		"blockHash": blockHash(block), "transactionIndex": "0x0", "removed": false,
	}
	if f.stamps {
		l["blockTimestamp"] = q(uint64(blockTime(block).Unix()))
	}
	f.logs = append(f.logs, l)
}

func hash(s string) []byte { h := keccak.Sum256([]byte(s)); return h[:] }
func q(n uint64) string    { return "0x" + strconv.FormatUint(n, 16) }
func word(n uint64) []byte { b := payment.UnitsOf(n).Bytes(); return b[:] }

func topic(a payment.Address) string {
	return "0x" + strings.Repeat("0", 24) + hex.EncodeToString(a[:])
}

func nonceOf(n byte) [32]byte { return [32]byte{0: 1, 31: n} }
func nonceHex(n byte) string  { b := nonceOf(n); return "0x" + hex.EncodeToString(b[:]) }

func slot(n byte) payment.Slot {
	return payment.Slot{Kind: payment.SlotEVM, Chain: payment.Base, Token: token, From: account, NonceID: nonceOf(n)}
}

func blockTime(n uint64) time.Time { return genesis.Add(time.Duration(n) * 2 * time.Second) }
func blockHash(n uint64) string    { return fmt.Sprintf("0x%064x", n+0xb10c) }

// busy is what a block's header lists: all its transactions.
var busy = slices.Repeat([]string{"0x" + strings.Repeat("77", 32)}, 150)

func header(n uint64) map[string]any {
	return map[string]any{"number": q(n), "hash": blockHash(n), "timestamp": q(uint64(blockTime(n).Unix())), "transactions": busy}
}

func (f *fakeNode) call(c rpc) reply {
	if f.bend != nil {
		if r, ok := f.bend(c); ok {
			return r
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch c.Method {
	case "eth_chainId":
		return reply{result: f.id}
	case "eth_blockNumber":
		return reply{result: q(f.latest)}
	case "eth_getBlockByNumber":
		var tag string
		json.Unmarshal(c.Params[0], &tag)
		n := f.finalized
		switch tag {
		case "finalized":
		case "latest":
			n = f.latest
		default:
			n, _ = strconv.ParseUint(tag[2:], 16, 64)
		}
		if n > f.latest {
			return reply{result: nil}
		}
		return reply{result: header(n)}
	case "eth_call":
		var p struct{ To string }
		json.Unmarshal(c.Params[0], &p)
		input := inputOf(c)
		if p.To == "" && f.runs {
			out, err := run(input, f.contract)
			if err != nil {
				return reply{code: 3, text: "execution reverted: " + err.Error()}
			}
			return reply{result: "0x" + hex.EncodeToString(out)}
		}
		to, err := payment.ParseAddress(p.To)
		if err != nil {
			return reply{code: -32602, text: "missing field to"}
		}
		out, ok := f.contract(to, input)
		if !ok {
			return reply{code: 3, text: "execution reverted"}
		}
		return reply{result: "0x" + hex.EncodeToString(out)}
	case "eth_getLogs":
		return reply{result: f.find(c.Params[0])}
	case "eth_getTransactionCount":
		return reply{result: q(f.nonce)}
	case "eth_getTransactionByHash":
		return reply{result: f.txs[text(c)]}
	case "eth_getTransactionReceipt":
		return reply{result: f.ends[text(c)]}
	case "eth_sendRawTransaction":
		raw, _ := hex.DecodeString(text(c)[2:])
		f.raws = append(f.raws, text(c))
		return reply{result: "0x" + hex.EncodeToString(hash(string(raw)))}
	}
	return reply{code: -32601, text: "the method does not exist"}
}

// text is the first parameter of a call.
func text(c rpc) (s string) {
	json.Unmarshal(c.Params[0], &s)
	return s
}

// inputOf is what a call calls with.
func inputOf(c rpc) []byte {
	var p struct{ Data string }
	json.Unmarshal(c.Params[0], &p)
	input, _ := hex.DecodeString(p.Data[2:])
	return input
}

// contract answers a call of the token.
func (f *fakeNode) contract(to payment.Address, input []byte) ([]byte, bool) {
	switch {
	case to == nonces && len(input) == 4+64 && bytes.Equal(input[:4], hash("getNonce(address,uint256)")[:4]):
		return word(f.lanes[hex.EncodeToString(input[36:])]), payment.Address(input[16:36]) == account
	case to != token:
		return nil, true // nothing is there
	case len(input) == 4+64 && bytes.Equal(input[:4], hash("authorizationState(address,bytes32)")[:4]):
		if f.used[[32]byte(input[36:])] {
			return word(1), true
		}
		return word(0), true
	case len(input) == 4+32 && bytes.Equal(input[:4], hash("balanceOf(address)")[:4]):
		return word(f.balance), true
	}
	return nil, false
}

// find answers a question about logs.
func (f *fakeNode) find(question json.RawMessage) []map[string]any {
	var p struct {
		FromBlock, ToBlock string
		Address            json.RawMessage
		Topics             []json.RawMessage
	}
	json.Unmarshal(question, &p)
	from, _ := strconv.ParseUint(p.FromBlock[2:], 16, 64)
	to, _ := strconv.ParseUint(p.ToBlock[2:], 16, 64)
	some := func(raw json.RawMessage, s any) bool { return bytes.Contains(raw, fmt.Appendf(nil, "%q", s)) }
	out := []map[string]any{}
	for _, l := range f.logs {
		n, _ := strconv.ParseUint(l["blockNumber"].(string)[2:], 16, 64)
		topics := l["topics"].([]string)
		if n >= from && n <= to && some(p.Address, l["address"]) && some(p.Topics[0], topics[0]) && some(p.Topics[1], topics[1]) {
			out = append(out, l)
		}
	}
	return out
}

func (f *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var calls []rpc
	if err := json.Unmarshal(body, &calls); err != nil {
		http.Error(w, "not a batch", http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	f.asked++
	f.batches = append(f.batches, len(calls))
	for _, c := range calls {
		f.counts[c.Method]++
	}
	f.mu.Unlock()
	if f.raw != nil && f.raw(w, r, calls) {
		return
	}
	answer := f.answer(calls)
	f.mu.Lock()
	f.bytes += len(body) + len(answer)
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Write(answer)
}

func (f *fakeNode) answer(calls []rpc) []byte {
	out := make([]map[string]any, len(calls))
	for i, c := range calls {
		r := f.call(c)
		out[i] = map[string]any{"jsonrpc": "2.0", "id": c.ID}
		if r.code != 0 {
			out[i]["error"] = map[string]any{"code": r.code, "message": r.text}
		} else {
			out[i]["result"] = r.result
		}
	}
	slices.Reverse(out) // in any order
	b, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return b
}

func (f *fakeNode) called(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[method]
}

func (f *fakeNode) requests() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// timer is a clock that wakes everybody at once, and remembers for how long
// they wanted to sleep.
type timer struct {
	mu     sync.Mutex
	slept  []time.Duration
	frozen bool // wakes nobody
}

func (t *timer) Now() time.Time { return genesis }

func (t *timer) After(d time.Duration) (<-chan time.Time, func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slept = append(t.slept, d)
	c := make(chan time.Time, 1)
	if !t.frozen {
		c <- genesis
	}
	return c, func() {}
}

func (t *timer) sleeps() []time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.slept)
}

// connect serves the nodes, and returns a chain that asks them.
func connect(t testing.TB, nodes ...*fakeNode) (*chain.Chain, *timer) {
	t.Helper()
	return connectTo(t, chain.Config{ID: payment.Base}, nodes...)
}

func connectTo(t testing.TB, config chain.Config, nodes ...*fakeNode) (*chain.Chain, *timer) {
	t.Helper()
	clock := &timer{frozen: true}
	urls := make([]string, len(nodes))
	for i, n := range nodes {
		s := httptest.NewServer(n)
		t.Cleanup(s.Close)
		urls[i] = s.URL + "/v2/" + secret + fmt.Sprint(i) + "?token=" + secret
	}
	config.URLs, config.Clock = urls, clock
	c, err := chain.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c, clock
}

const secret = "s3cr3tk3y"

// quiet fails the test where err tells what may be a key.
func quiet(t testing.TB, err error) {
	t.Helper()
	if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(fmt.Sprintf("%#v", err), secret)) {
		t.Errorf("the error tells a part of the URL: %v", err)
	}
}

package canopytest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/payment"
)

// TestTempoNode sends to a chain and asks it over JSON-RPC, and by itself: the
// answers are the same.
func TestTempoNode(t *testing.T) {
	t.Parallel()
	own := canopytest.NewChain(canopytest.ChainConfig{ID: payment.TempoTest})
	w := &world{T: t, clock: own.Clock(), chain: own, wallet: newWallet()}
	from, sponsor := w.wallet.Address(), otherWallet("sponsor")
	own.Fund(from, 100*payment.Dollar)
	own.Fund(sponsor.Address(), payment.Dollar)
	read, err := chain.New(chain.Config{ID: payment.TempoTest, URLs: []string{canopytest.NewNode(own).Start(t), canopytest.NewNode(own).Start(t)}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	send := func(raw []byte) string {
		t.Helper()
		hash, err := read.Broadcast(ctx, raw)
		if err != nil {
			t.Fatal(err)
		}
		again, err := read.Broadcast(ctx, raw) // mined
		if err != nil || again != hash {
			t.Errorf("again: %s, %v", again, err)
		}
		return hash
	}
	paid := send(w.wallet.raw(w.memoTx(10_000, memo1)))
	send(w.wallet.raw(newTempoTx(own, transferCall(own.Dollar().Address, payee, 3)).on(big.NewInt(7), 1)))
	failed := send(w.wallet.raw(w.memoTx(1_000_000_000, memo1).on(big.NewInt(8), 0)))
	send(w.wallet.raw(w.memoTx(20_000, [32]byte{6}).expiring()))
	send(w.wallet.raw(w.memoTx(1_000_000_000, [32]byte{7}).expiring())) // fails
	send(w.wallet.raw(w.memoTx(30_000, [32]byte{8}).on(new(big.Int), 0)))
	send(w.wallet.sponsoredRaw(w.memoTx(40_000, [32]byte{9}).expiring(), sponsor))
	other := w.memoTx(5, memo1).on(big.NewInt(9), 0)
	token := own.Dollar().Address
	token[19] = 1 // alphaUSD, of which there is none
	other.calls[0].To = token[:]
	send(w.wallet.raw(other))
	if err := own.Send(own.Dollar(), from, payee, payment.UnitsOf(4)); err != nil {
		t.Fatal(err)
	}
	for _, to := range []payment.Address{payee, canopytest.FeeManager} { // no use
		if err := own.Send(own.Dollar(), from, to, payment.Units{}); err != nil {
			t.Fatal(err)
		}
	}
	own.Finalize()

	at, err := read.Finalized(ctx)
	want, _ := own.Finalized(ctx)
	if err != nil || at != want {
		t.Errorf("finalized %+v, %v, want %+v", at, err, want)
	}
	uses, err := read.Uses(ctx, own.Dollar(), from, 0, at)
	same, _ := own.Uses(ctx, own.Dollar(), from, 0, at)
	if err != nil || len(same) != 9 || !slices.EqualFunc(uses, same, payment.Settlement.Equal) {
		t.Errorf("uses, %v:", err)
		for i := range max(len(uses), len(same)) {
			if i >= len(uses) || i >= len(same) || !uses[i].Equal(same[i]) {
				t.Errorf("%d:\n%+v\n%+v", i, uses[min(i, len(uses)-1)], same[min(i, len(same)-1)])
			}
		}
	}
	for _, s := range same {
		for who, rec := range map[string]interface {
			Confirm(context.Context, payment.Settlement) (bool, error)
		}{"node": read, "chain": own} {
			if ok, err := rec.Confirm(ctx, s); !ok || err != nil {
				t.Errorf("%s: %+v is not confirmed: %v", who, s, err)
			}
		}
	}
	sponsored, err := read.Uses(ctx, own.Dollar(), sponsor.Address(), 0, at)
	same, _ = own.Uses(ctx, own.Dollar(), sponsor.Address(), 0, at)
	if err != nil || len(same) != 1 || !slices.EqualFunc(sponsored, same, payment.Settlement.Equal) {
		t.Errorf("the sponsor's uses %+v, %v, want %+v", sponsored, err, same)
	}
	var slots []payment.Slot
	for key := byte(0); key < 11; key++ {
		for nonce := range uint64(3) {
			slots = append(slots, payment.Slot{Kind: payment.SlotLane, Chain: own.ID(), From: from, NonceID: [32]byte{31: key}, Nonce: nonce})
		}
	}
	used, err := read.Used(ctx, slots, at)
	sameUsed, _ := own.Used(ctx, slots, at)
	if err != nil || !slices.Equal(used, sameUsed) || !slices.Contains(used, true) {
		t.Errorf("used %v, %v, want %v", used, err, sameUsed)
	}
	for _, hash := range []string{paid, failed, "0x" + strings.Repeat("ab", 32)} {
		found, ok, block, err := read.Receipt(ctx, hash)
		f, o, b, _ := own.Receipt(ctx, hash)
		if err != nil || found != f || ok != o || block != b {
			t.Errorf("receipt %v %v %+v, %v, want %v %v %+v", found, ok, block, err, f, o, b)
		}
	}
	if held, err := read.Balance(ctx, own.Dollar(), payee); err != nil || held != payment.UnitsOf(100_007) {
		t.Errorf("balance %v, %v", held, err)
	}
	late := w.memoTx(1, memo1).on(big.NewInt(20), 0)
	late.before = uint64(own.Clock().Now().Unix()) + 2
	if _, err := read.Broadcast(ctx, w.wallet.raw(late)); !errors.Is(err, chain.ErrExpired) {
		t.Errorf("too late: %v", err)
	}
}

// Before T1 the expiring nonce is counted as a lane, and its slot is told by the
// memo: by the chain itself and over JSON-RPC.
func TestTempoNodeT0(t *testing.T) {
	t.Parallel()
	own := canopytest.NewChain(canopytest.ChainConfig{ID: payment.TempoTest, TempoRules: canopytest.TempoRules{T0: true}})
	w := &world{T: t, clock: own.Clock(), chain: own, wallet: newWallet()}
	sponsor := otherWallet("sponsor")
	own.Fund(w.wallet.Address(), 100*payment.Dollar)
	own.Fund(sponsor.Address(), payment.Dollar)
	read, err := chain.New(chain.Config{ID: payment.TempoTest, URLs: []string{canopytest.NewNode(own).Start(t)}})
	if err != nil {
		t.Fatal(err)
	}
	for i, raw := range [][]byte{
		w.wallet.sponsoredRaw(w.memoTx(10_000, memo1).expiring(), sponsor),
		w.wallet.sponsoredRaw(w.memoTx(1_000_000_000, memo1).on(maxKey, 1), sponsor), // fails, and shows nothing
		w.wallet.raw(w.memoTx(1_000_000_000, [32]byte{7}).on(maxKey, 2)),             // fails
	} {
		if _, err := read.Broadcast(t.Context(), raw); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	own.Finalize()
	at, err := read.Finalized(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	uses, err := read.Uses(t.Context(), own.Dollar(), w.wallet.Address(), 0, at)
	same, _ := own.Uses(t.Context(), own.Dollar(), w.wallet.Address(), 0, at)
	if err != nil || !slices.EqualFunc(uses, same, payment.Settlement.Equal) {
		t.Errorf("uses %+v, %v, want\n%+v", uses, err, same)
	}
	if len(same) != 2 || same[0].Slot.Kind != payment.SlotExpiring || same[0].Slot.NonceID != memo1 || len(same[0].Moved) != 1 ||
		same[1].Slot.NonceID != [32]byte{7} || !same[1].Failed {
		t.Errorf("%+v", same)
	}
}

// rpc asks a node one question.
func rpc(t *testing.T, url, method string, params ...any) (result any, code float64, message string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var doc map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if _, there := doc["result"]; !there && doc["error"] == nil {
		t.Errorf("%s: neither a result nor an error", method)
	}
	if e, ok := doc["error"].(map[string]any); ok {
		return nil, e["code"].(float64), e["message"].(string)
	}
	return doc["result"], 0, ""
}

// What a seller's library asks of a node of Tempo, and what one was measured to
// answer.
func TestTempoNodeAnswers(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Instant)
	from, token := w.wallet.Address(), w.chain.Dollar().Address
	url := canopytest.NewNode(w.chain).Start(t)
	x := w.memoTx(10_000, memo1)
	raw := "0x" + fmt.Sprintf("%x", w.wallet.raw(x))
	got, code, message := rpc(t, url, "eth_sendRawTransactionSync", raw)
	if code != 0 {
		t.Fatalf("%v %s", code, message)
	}
	receipt := got.(map[string]any)
	logs := receipt["logs"].([]any)
	if receipt["status"] != "0x1" || receipt["type"] != "0x76" || receipt["from"] != from.Lower() || receipt["gasUsed"] != "0x82bb3" || len(logs) != 4 {
		t.Errorf("receipt %v", receipt)
	}
	topics := []string{}
	for i, l := range logs {
		l := l.(map[string]any)
		topics = append(topics, l["topics"].([]any)[0].(string)[:10])
		if l["logIndex"] != fmt.Sprintf("0x%x", i) || l["transactionHash"] != receipt["transactionHash"] {
			t.Errorf("log %d: %v", i, l)
		}
	}
	if want := []string{"0x42d98041", "0xddf252ad", "0x57bc7354", "0xddf252ad"}; !slices.Equal(topics, want) {
		t.Errorf("events %v, want %v", topics, want)
	}
	word := func(b []byte) string { return fmt.Sprintf("%064x", b) }
	filter := func(topics ...any) map[string]any {
		return map[string]any{"address": token.Lower(), "fromBlock": "earliest", "toBlock": "latest", "topics": topics}
	}
	memo := "0x" + word(memo1[:])
	call := func(x *tempoTx) map[string]any {
		return map[string]any{
			"from": from.Lower(), "nonceKey": fmt.Sprintf("0x%x", x.key), "gas": fmt.Sprintf("0x%x", x.gas), "maxFeePerGas": "0x5d21dba00",
			"validBefore": fmt.Sprintf("0x%x", x.before), "calls": []any{map[string]any{"to": token.Lower(), "data": fmt.Sprintf("0x%x", x.calls[0].Data)}},
		}
	}
	small, far, poor := w.memoTx(1, memo1).on(big.NewInt(99), 0), w.memoTx(1, memo1).expiring(), w.memoTx(1_000_000_000, memo1)
	small.gas = 771_199
	far.before += 30
	lost := w.memoTx(1, memo1) // its place is taken
	slow := fmt.Sprintf("0x%x", w.wallet.raw(lost))
	for _, tc := range []struct {
		name, method string
		params       []any
		want         string // as JSON, or the error's code and a part of its words
	}{
		{"the chain", "eth_chainId", nil, `"0xa5bf"`},
		{"a lane", "eth_call", []any{map[string]any{"to": canopytest.NoncePrecompile.Lower(), "data": "0x89535803" + word(from[:]) + word([]byte{7})}, "latest"}, `"0x` + word([]byte{1}) + `"`},
		{"a lane before", "eth_call", []any{map[string]any{"to": canopytest.NoncePrecompile.Lower(), "data": "0x89535803" + word(from[:]) + word([]byte{7})}, "0x0"}, `"0x` + word(nil) + `"`},
		{"the own nonce by the precompile", "eth_call", []any{map[string]any{"to": canopytest.NoncePrecompile.Lower(), "data": "0x89535803" + word(from[:]) + word(nil)}, "latest"}, "3 reverted"},
		{"the own nonce", "eth_getTransactionCount", []any{from.Lower(), "latest"}, `"0x0"`},
		{"a fee token", "eth_call", []any{map[string]any{"to": canopytest.FeeManager.Lower(), "data": "0x00000000" + word(from[:])}, "latest"}, `"0x` + word(nil) + `"`},
		{"no contract", "eth_call", []any{map[string]any{"to": payee.Lower(), "data": "0x"}, "latest"}, `"0x"`},
		{"a simulation", "eth_call", []any{call(w.memoTx(1, memo1))}, `"0x"`},
		{"a simulation that carries nothing out", "eth_call", []any{call(poor)}, `"0x"`},
		{"the same to the token", "eth_call", []any{map[string]any{"from": from.Lower(), "to": token.Lower(), "data": fmt.Sprintf("0x%x", poor.calls[0].Data)}}, "3 reverted"},
		{"too little gas", "eth_call", []any{call(small)}, "-32003 intrinsic gas too high"},
		{"too far ahead", "eth_call", []any{call(far)}, "-32003 too far in the future"},
		{"a tip", "eth_maxPriorityFeePerGas", nil, `"0x3b9aca00"`},
		{"a fill", "eth_fillTransaction", []any{map[string]any{}}, "-32601 not known"},
		{"another method", "tempo_fundAddress", []any{payee}, "-32601 not known"},
		{"no receipt", "eth_getTransactionReceipt", []any{memo}, "null"},
		{"no transaction", "eth_getTransactionByHash", []any{memo}, "null"},
		{"what never lands", "eth_sendRawTransactionSync", []any{slow}, "-32603 confirmation timeout"},
		{"no transaction at all", "eth_sendRawTransaction", []any{"0x76c0"}, "-32602 decode"},
		{"no hex", "eth_sendRawTransaction", []any{"zz"}, "-32602 invalid byte"},
		{"what was mined", "eth_sendRawTransaction", []any{raw}, `"` + receipt["transactionHash"].(string) + `"`},
	} {
		got, code, message := rpc(t, url, tc.method, tc.params...)
		if code == 0 {
			if b, _ := json.Marshal(got); string(b) != tc.want {
				t.Errorf("%s: %s, want %s", tc.name, b, tc.want)
			}
			continue
		}
		if wantCode, words, _ := strings.Cut(tc.want, " "); fmt.Sprint(code) != wantCode || !strings.Contains(message, words) {
			t.Errorf("%s: %v %s, want %s", tc.name, code, message, tc.want)
		}
	}
	for name, tc := range map[string]struct {
		filter map[string]any
		want   int
	}{
		"by memo":          {filter("0x57bc7354aa85aed339e000bccffabbc529466af35f0772c8f8ee1145927de7f0", nil, nil, memo), 1},
		"by another memo":  {filter("0x57bc7354aa85aed339e000bccffabbc529466af35f0772c8f8ee1145927de7f0", nil, nil, "0x"+word(nil)), 0},
		"by payer":         {filter(nil, "0x"+word(from[:])), 3},
		"by payee":         {filter(nil, nil, []string{"0x" + word(payee[:])}), 2},
		"before it":        {map[string]any{"fromBlock": "0x0", "toBlock": "0x1"}, 1}, // minted
		"of two contracts": {map[string]any{"fromBlock": "0x2", "address": []string{token.Lower(), canopytest.NoncePrecompile.Lower()}}, 4},
	} {
		got, _, message := rpc(t, url, "eth_getLogs", tc.filter)
		if all, _ := got.([]any); len(all) != tc.want || message != "" {
			t.Errorf("%s: %d logs, want %d: %v %s", name, len(all), tc.want, got, message)
		}
	}
	got, _, _ = rpc(t, url, "eth_getTransactionByHash", receipt["transactionHash"])
	tx := got.(map[string]any)
	if tx["nonceKey"] != "0x7" || tx["from"] != from.Lower() || tx["feeToken"] != token.Lower() || tx["validAfter"] != nil || tx["blockNumber"] != receipt["blockNumber"] ||
		tx["calls"].([]any)[0].(map[string]any)["input"] != fmt.Sprintf("0x%x", x.calls[0].Data) {
		t.Errorf("transaction %v", tx)
	}
	w.chain.SetMining(canopytest.Manual)
	waiting := fmt.Sprintf("0x%x", w.wallet.raw(w.memoTx(2, memo1).on(big.NewInt(50), 0)))
	rpc(t, url, "eth_sendRawTransaction", waiting)
	if _, code, message := rpc(t, url, "eth_sendRawTransaction", waiting); code != -32003 || !strings.Contains(message, "already imported") {
		t.Errorf("waiting already: %v %s", code, message)
	}
	w.clock.Advance(time.Minute)
	if _, code, message := rpc(t, url, "eth_sendRawTransaction", waiting); code != -32003 || !strings.Contains(message, "valid_before") {
		t.Errorf("too late: %v %s", code, message)
	}
	w.chain.SetDown(errors.New("no"))
	if _, code, _ := rpc(t, url, "eth_sendRawTransactionSync", raw); code == 0 {
		t.Error("a node that is down answers")
	}
}

// Whatever a node is asked, it answers or refuses.
func FuzzNode(f *testing.F) {
	clock := canopytest.NewStillClock(start)
	chains := []*canopytest.Chain{
		canopytest.NewChain(canopytest.ChainConfig{Clock: clock}), canopytest.NewChain(canopytest.ChainConfig{ID: payment.TempoTest, Clock: clock}),
	}
	var nodes []*canopytest.Node
	for _, c := range chains {
		c.Fund(newWallet().Address(), payment.Dollar)
		nodes = append(nodes, canopytest.NewNode(c))
	}
	for _, method := range []string{
		"eth_chainId", "eth_getBlockByNumber", "eth_call", "eth_getLogs", "eth_getTransactionReceipt", "eth_getTransactionByHash",
		"eth_getTransactionCount", "eth_sendRawTransaction", "eth_sendRawTransactionSync", "eth_estimateGas",
	} {
		f.Add(`{"id":1,"method":"` + method + `","params":["0x1","latest"]}`)
		f.Add(`[{"id":1,"method":"` + method + `","params":[{"to":"0x20c0000000000000000000000000000000000000","data":"0x70a08231","address":[],"fromBlock":"0x0","toBlock":"0xff","topics":[null,[]],"calls":[{"to":"","data":"0x","value":"-1"}],"nonceKey":-1,"gas":"0x0"},"0x0"]}]`)
	}
	f.Add(`{"id":1,"method":"eth_getLogs","params":[{"fromBlock":"0xffffffffffffffff","toBlock":"0xffffffffffffffff"}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		for _, n := range nodes {
			w := httptest.NewRecorder()
			n.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(body)))
			if w.Code == http.StatusOK && !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s", w.Body)
			}
		}
		for _, c := range chains {
			c.AssertTransfers(t)
		}
	})
}

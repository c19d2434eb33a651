package chain_test

import (
	"context"
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

// answers is a transport that gives every request the same answer.
type answers []byte

func (a answers) RoundTrip(*http.Request) (*http.Response, error) { return canned(200, a), nil }

// FuzzAnswer has a node answer anything at all: nothing panics, no slot counts
// as used or unused, and no block as final, by what is no answer.
func FuzzAnswer(f *testing.F) {
	n := newFakeNode()
	n.settle(1, 900, payee, 70)
	f.Add(n.answer([]rpc{{ID: []byte("1"), Method: "eth_chainId"}}))
	f.Add(n.answer([]rpc{{ID: []byte("1"), Method: "eth_getLogs", Params: raws(`{"fromBlock":"0x0","toBlock":"0x3e8"}`)}}))
	f.Add(n.answer([]rpc{{ID: []byte("1"), Method: "eth_getBlockByNumber", Params: raws(`"finalized"`)}}))
	f.Add([]byte(`[{"id":1,"result":"0x2105"}]`))
	f.Add([]byte(`{"error":{"code":-32005}}`))
	f.Add([]byte(`[null]`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		clock := &timer{}
		c, err := chain.New(chain.Config{ID: payment.Base, URLs: []string{"https://rpc.example/" + secret}, Transport: after{answers(answer)}, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		_, err = c.Finalized(ctx)
		quiet(t, err)
		_, err = c.Used(ctx, []payment.Slot{slot(1)}, final)
		quiet(t, err)
		uses, err := c.Uses(ctx, usdc, account, 0, final)
		quiet(t, err)
		for _, u := range uses {
			if u.Slot.Token != token || u.Slot.From != account || u.Block > final.Number {
				t.Errorf("a use that was not asked for: %+v", u)
			}
		}
		_, err = c.BlockAt(ctx, blockTime(5), final)
		quiet(t, err)
		_, err = c.Balance(ctx, usdc, account)
		quiet(t, err)
	})
}

// script is a transport that answers each method with a text, and the chain's id
// with that of Tempo's test network.
type script map[string]string

func (s script) RoundTrip(req *http.Request) (*http.Response, error) {
	var calls []rpc
	if err := json.NewDecoder(req.Body).Decode(&calls); err != nil {
		return nil, err
	}
	var out []string
	for _, c := range calls {
		result := s[c.Method]
		if !json.Valid([]byte(result)) {
			result = strconv.Quote(result)
		}
		out = append(out, fmt.Sprintf(`{"id":%s,"result":%s}`, c.ID, result))
	}
	return canned(200, []byte("["+strings.Join(out, ",")+"]")), nil
}

// FuzzTempo has a node of a Tempo chain show any logs, transaction and receipt:
// nothing panics, and what is told is of the account, the token and the blocks
// that were asked about, and moves nothing where it failed.
func FuzzTempo(f *testing.F) {
	names := make([]string, 0, len(spent))
	for name := range spent {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		tx := spent[name].tx
		tx.n, tx.block = 1, 900
		n := newTempoNode(tx)
		logs, err1 := json.Marshal(n.logs)
		mined, err2 := json.Marshal(n.txs[tx.hash()])
		end, err3 := json.Marshal(n.ends[tx.hash()])
		if err := errors.Join(err1, err2, err3); err != nil {
			f.Fatal(err)
		}
		f.Add(string(logs), string(mined), string(end), "0x"+strings.Repeat("0", 63)+"5")
	}
	f.Fuzz(func(t *testing.T, logs, mined, end, counter string) {
		rt := script{
			"eth_chainId": "0xa5bf", "eth_blockNumber": "0x3e8", "eth_getLogs": logs, "eth_getTransactionByHash": mined,
			"eth_getTransactionReceipt": end, "eth_call": counter, "eth_getTransactionCount": counter, "eth_sendRawTransaction": counter,
		}
		c, err := chain.New(chain.Config{ID: payment.TempoTest, URLs: []string{"https://rpc.example/" + secret}, Transport: rt, Clock: &timer{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		uses, err := c.Uses(ctx, pathUSD, account, 5, final)
		quiet(t, err)
		for _, u := range uses {
			named := u.Token
			if u.Slot.Kind == payment.SlotEVM {
				named = u.Slot.Token
			}
			if u.Slot.From != account || u.Slot.Chain != payment.TempoTest || named != token || u.Block > final.Number || u.Block < 5 {
				t.Errorf("a use that was not asked for: %+v", u)
			}
			if (u.Failed || u.Canceled) && len(u.Moved) > 0 {
				t.Errorf("it failed, and moved: %+v", u)
			}
		}
		_, err = c.Used(ctx, []payment.Slot{laneSlot(laneKey, 1), laneSlot(protocol, 1)}, final)
		quiet(t, err)
		_, _, _, err = c.Receipt(ctx, sent{n: 1}.hash())
		quiet(t, err)
		_, err = c.Broadcast(ctx, signed)
		quiet(t, err)
	})
}

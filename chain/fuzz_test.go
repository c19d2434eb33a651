package chain_test

import (
	"context"
	"net/http"
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

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
)

// Tempo is a running anvil of the Tempo network, with the ID of its test network: a block each second, and the
// second one below the latest counts as finalized. Its token is pathUSD, which fees are paid in too.
type Tempo struct{ *Chain }

var (
	nonceContract = common.HexToAddress("0x4E4F4E4345000000000000000000000000000000")
	feeManager    = common.HexToAddress("0xfeEC000000000000000000000000000000000000")
)

// NewTempo starts a network of the test's own. It ends with the test.
func NewTempo(t testing.TB) *Tempo {
	t.Helper()
	c, err := startTempo()
	if err != nil {
		t.Fatalf("starting a Tempo network: %v", err)
	}
	t.Cleanup(c.process.stop)
	return c
}

func startTempo() (*Tempo, error) {
	p, ready, err := startProcess(nil, "tempo.mjs")
	if err != nil {
		return nil, err
	}
	return &Tempo{&Chain{URL: ready.URL, ID: ready.ChainID, Token: ready.Token, Faucet: ready.Faucet, process: p}}, nil
}

// Payer makes an account that holds that many base units.
func (c *Tempo) Payer(t testing.TB, units uint64) Account {
	t.Helper()
	a := NewAccount(t)
	if units > 0 {
		if err := c.give(t.Context(), a.Address, units); err != nil {
			t.Fatalf("funding a payer: %v", err)
		}
	}
	return a
}

// give has the faucet transfer the token, and returns once it is in a block.
func (c *Tempo) give(ctx context.Context, a common.Address, units uint64) error {
	c.sending.Lock() // the next nonce is told at once, mined or not
	var hash common.Hash
	err := c.RPC(ctx, &hash, "eth_sendTransaction", map[string]any{
		"from": c.Faucet, "to": c.Token, "data": hexutil.Bytes(pack("transfer(address,uint256)", a, units)),
		"gas": hexutil.Uint64(1_000_000),
	})
	c.sending.Unlock()
	if err != nil {
		return err
	}
	for range 200 {
		var r *Receipt
		if err := c.RPC(ctx, &r, "eth_getTransactionReceipt", hash); err != nil {
			return err
		}
		if r != nil && r.Status != 1 {
			return fmt.Errorf("%v reverted", hash)
		}
		if r != nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%v was not mined", hash)
}

// Stall stops making blocks, so that what is sent stays pending, until the returned function goes on. Only on a
// network of the test's own.
func (c *Tempo) Stall(t testing.TB) (resume func()) {
	t.Helper()
	c.do(t, nil, "evm_setIntervalMining", 0)
	return func() {
		t.Helper()
		c.do(t, nil, "evm_setIntervalMining", 1)
	}
}

// spending is a transaction by which an account's tokens moved.
type spending struct {
	hash  common.Hash
	lane  common.Hash // its nonce key; zero where it took no lane
	nonce uint64
	to    []transferTo // in order, without the fee
	fee   uint64       // what the account paid of it
}

// transferTo is one transfer, with its memo, if it had one.
type transferTo struct {
	to    common.Address
	units uint64
	memo  common.Hash
}

// spendings are all transactions that moved tokens of from, by the events of the token and of the nonces.
func (c *Tempo) spendings(t testing.TB, from common.Address) []spending {
	t.Helper()
	type log struct {
		TransactionHash common.Hash
		Topics          []common.Hash
		Data            hexutil.Bytes
	}
	topic := func(event string) common.Hash { return crypto.Keccak256Hash([]byte(event)) }
	var height string // one for all, while the chain goes on
	c.do(t, &height, "eth_blockNumber")
	logs := func(at common.Address, event common.Hash) (out []log) {
		c.do(t, &out, "eth_getLogs", map[string]any{
			"address": at, "fromBlock": "0x0", "toBlock": height,
			"topics": []common.Hash{event, common.BytesToHash(from[:])},
		})
		return out
	}
	number := func(b []byte) uint64 {
		if len(b) < 32 || !bytes.Equal(b[:24], make([]byte, 24)) {
			t.Fatalf("the amount %x", b)
		}
		return new64(b[24:32])
	}
	var out []spending
	at := map[common.Hash]int{}
	of := func(hash common.Hash) *spending {
		if _, ok := at[hash]; !ok {
			at[hash] = len(out)
			out = append(out, spending{hash: hash})
		}
		return &out[at[hash]]
	}
	for _, l := range logs(c.Token, topic("Transfer(address,address,uint256)")) {
		to, units, s := common.BytesToAddress(l.Topics[2][:]), number(l.Data), of(l.TransactionHash)
		if to == feeManager {
			s.fee += units
			continue
		}
		s.to = append(s.to, transferTo{to: to, units: units})
	}
	for _, l := range logs(c.Token, topic("TransferWithMemo(address,address,uint256,bytes32)")) {
		to, units, s, found := common.BytesToAddress(l.Topics[2][:]), number(l.Data), of(l.TransactionHash), false
		for i := range s.to {
			if m := &s.to[i]; !found && m.to == to && m.units == units && m.memo == (common.Hash{}) {
				m.memo, found = l.Topics[3], true
			}
		}
		if !found {
			t.Fatalf("%v tells of a memo without a transfer", l.TransactionHash)
		}
	}
	for _, l := range logs(nonceContract, topic("NonceIncremented(address,uint256,uint64)")) {
		s := of(l.TransactionHash)
		s.lane, s.nonce = l.Topics[2], number(l.Data)-1
	}
	return out
}

func new64(b []byte) (n uint64) {
	for _, d := range b {
		n = n<<8 | uint64(d)
	}
	return n
}

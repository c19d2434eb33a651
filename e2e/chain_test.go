//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
)

// Chain is a running anvil with the ID of Base. A block is mined for each transaction, and the second block
// below the latest counts as finalized. Its methods may be called from several goroutines; those that take
// a testing.TB only where t.Fatal may be.
type Chain struct {
	URL     string // of its JSON-RPC
	ID      uint64 // 8453
	Token   common.Address
	Faucet  common.Address // an unlocked account that pays for what the tests send
	process *process

	sending sync.Mutex // anvil may give two transactions of one account the same nonce
}

// NewChain starts a chain of the test's own. It ends with the test.
func NewChain(t testing.TB) *Chain {
	t.Helper()
	c, err := startChain()
	if err != nil {
		t.Fatalf("starting a chain: %v", err)
	}
	t.Cleanup(c.process.stop)
	return c
}

func startChain() (*Chain, error) {
	p, ready, err := startProcess(nil, "chain.mjs")
	if err != nil {
		return nil, err
	}
	return &Chain{URL: ready.URL, ID: ready.ChainID, Token: ready.Token, Faucet: ready.Faucet, process: p}, nil
}

// RPCError is an error that the chain answered, such as "execution reverted: ...".
type RPCError struct {
	Code    int
	Message string
}

func (e *RPCError) Error() string { return e.Message }

// RPC calls a JSON-RPC method and decodes its result into out, which may be nil.
func (c *Chain) RPC(ctx context.Context, out any, method string, params ...any) error {
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Result json.RawMessage
		Error  *RPCError
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if answer.Error != nil {
		return answer.Error
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer.Result, out)
}

// do is RPC for tests.
func (c *Chain) do(t testing.TB, out any, method string, params ...any) {
	t.Helper()
	if err := c.RPC(context.Background(), out, method, params...); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

// call reads from the token.
func (c *Chain) call(t testing.TB, data []byte) []byte {
	t.Helper()
	var out hexutil.Bytes
	c.do(t, &out, "eth_call", map[string]any{"to": c.Token, "data": hexutil.Bytes(data)}, "latest")
	return out
}

// BalanceOf returns the token balance of a at the latest block, in base units.
func (c *Chain) BalanceOf(t testing.TB, a common.Address) uint64 {
	t.Helper()
	n := new(big.Int).SetBytes(c.call(t, pack("balanceOf(address)", a)))
	if !n.IsUint64() {
		t.Fatalf("balance of %v is %v", a, n)
	}
	return n.Uint64()
}

// AuthorizationState tells whether from's nonce was used or cancelled, at the latest block.
func (c *Chain) AuthorizationState(t testing.TB, from common.Address, nonce [32]byte) bool {
	t.Helper()
	out := c.call(t, pack("authorizationState(address,bytes32)", from, nonce))
	return new(big.Int).SetBytes(out).Sign() != 0
}

// AuthorizationsUsed counts the authorizations of from that have moved money, by the token's events.
func (c *Chain) AuthorizationsUsed(t testing.TB, from common.Address) int {
	t.Helper()
	var logs []json.RawMessage
	c.do(t, &logs, "eth_getLogs", map[string]any{
		"address": c.Token, "fromBlock": "0x0", "toBlock": "latest",
		"topics": []common.Hash{
			crypto.Keccak256Hash([]byte("AuthorizationUsed(address,bytes32)")),
			common.BytesToHash(from[:]),
		},
	})
	return len(logs)
}

// Mint gives a that many base units more.
func (c *Chain) Mint(t testing.TB, a common.Address, units uint64) {
	t.Helper()
	if _, err := c.Send(context.Background(), c.Faucet, pack("mint(address,uint256)", a, units)); err != nil {
		t.Fatalf("mint: %v", err)
	}
}

// Payer makes an account that holds that many base units, and no ether: EIP-3009 needs none.
func (c *Chain) Payer(t testing.TB, units uint64) Account {
	t.Helper()
	a := NewAccount(t)
	c.Mint(t, a.Address, units)
	return a
}

// Moves runs f and fails t unless the balance of a rises by exactly units meanwhile. Tests that use it on
// one payee must not run in parallel.
func (c *Chain) Moves(t testing.TB, a common.Address, units uint64, f func()) {
	t.Helper()
	before := c.BalanceOf(t, a)
	f()
	if got := c.BalanceOf(t, a) - before; got != units {
		t.Errorf("balance of %v rose by %d, want %d", a, int64(got), units)
	}
}

// WaitBalance waits until a holds exactly units, for what a seller settles after its client has gone.
func (c *Chain) WaitBalance(t testing.TB, a common.Address, units uint64, atMost time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(atMost); ; time.Sleep(50 * time.Millisecond) {
		got := c.BalanceOf(t, a)
		if got == units {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("balance of %v is %d after %v, want %d", a, got, atMost, units)
		}
	}
}

// Receipt is a mined transaction.
type Receipt struct {
	TransactionHash common.Hash
	Status          hexutil.Uint64 // 1, or 0 where it reverted
	Logs            []struct {
		Address common.Address
		Topics  []common.Hash
		Data    hexutil.Bytes
	}
}

// Send has an unlocked or impersonated account call the token, and returns the receipt once it is mined. A
// call that would revert is not sent: the error is an *RPCError with the reason.
func (c *Chain) Send(ctx context.Context, from common.Address, data []byte) (Receipt, error) {
	call := map[string]any{"from": from, "to": c.Token, "data": hexutil.Bytes(data)}
	if err := c.RPC(ctx, nil, "eth_call", call, "latest"); err != nil {
		return Receipt{}, err
	}
	r, err := c.SendAnyway(ctx, from, data)
	if err == nil && r.Status != 1 {
		err = fmt.Errorf("%v reverted", r.TransactionHash)
	}
	return r, err
}

// SendAnyway is Send without asking first, so a call that reverts is mined with status 0.
func (c *Chain) SendAnyway(ctx context.Context, from common.Address, data []byte) (Receipt, error) {
	c.sending.Lock()
	defer c.sending.Unlock()
	var hash common.Hash
	if err := c.RPC(ctx, &hash, "eth_sendTransaction", map[string]any{
		"from": from, "to": c.Token, "data": hexutil.Bytes(data), "gas": hexutil.Uint64(500_000),
	}); err != nil {
		return Receipt{}, err
	}
	for range 200 {
		var r *Receipt
		if err := c.RPC(ctx, &r, "eth_getTransactionReceipt", hash); err != nil {
			return Receipt{}, err
		}
		if r != nil {
			return *r, nil
		}
		select {
		case <-ctx.Done():
			return Receipt{}, ctx.Err()
		case <-time.After(25 * time.Millisecond):
		}
	}
	return Receipt{}, fmt.Errorf("%v was not mined", hash)
}

// fund gives a 1000 ether, for gas.
func (c *Chain) fund(a common.Address) error {
	wei, _ := new(big.Int).SetString("1000000000000000000000", 10)
	return c.RPC(context.Background(), nil, "anvil_setBalance", a, hexutil.EncodeBig(wei))
}

// Impersonate lets Send speak as a, and gives it ether.
func (c *Chain) Impersonate(t testing.TB, a common.Address) {
	t.Helper()
	if err := c.fund(a); err != nil {
		t.Fatalf("fund: %v", err)
	}
	c.do(t, nil, "anvil_impersonateAccount", a)
}

// Now returns the time of the latest block, in Unix seconds. It stands still between blocks.
func (c *Chain) Now(t testing.TB) int64 {
	t.Helper()
	var block struct{ Timestamp hexutil.Uint64 }
	c.do(t, &block, "eth_getBlockByNumber", "latest", false)
	return int64(block.Timestamp)
}

// BlockNumber returns the height of a tag such as "latest" or "finalized".
func (c *Chain) BlockNumber(t testing.TB, tag string) uint64 {
	t.Helper()
	var block struct{ Number hexutil.Uint64 }
	c.do(t, &block, "eth_getBlockByNumber", tag, false)
	return uint64(block.Number)
}

// Mine adds n empty blocks, so what was latest becomes finalized after two.
func (c *Chain) Mine(t testing.TB, n uint64) {
	t.Helper()
	c.do(t, nil, "anvil_mine", hexutil.EncodeUint64(n))
}

// Advance moves the chain's clock ahead for good and mines a block. Only on a chain of the test's own: a
// client that compares clocks would be right to refuse the shared one afterwards.
func (c *Chain) Advance(t testing.TB, d time.Duration) {
	t.Helper()
	if shared != nil && c == shared.Chain {
		t.Fatal("Advance on the shared chain: use NewPeers or NewChain")
	}
	c.do(t, nil, "evm_increaseTime", int64(d/time.Second))
	c.Mine(t, 1)
}

// SetNextTime fixes the time of the next block. Only on a chain of the test's own.
func (c *Chain) SetNextTime(t testing.TB, unix int64) {
	t.Helper()
	if shared != nil && c == shared.Chain {
		t.Fatal("SetNextTime on the shared chain: use NewPeers or NewChain")
	}
	c.do(t, nil, "evm_setNextBlockTimestamp", unix)
}

// HoldBlocks stops mining, so that what is sent stays pending, until the returned function mines it all and
// goes on. Only on a chain of the test's own. Send must not be used meanwhile.
func (c *Chain) HoldBlocks(t testing.TB) (release func()) {
	t.Helper()
	if shared != nil && c == shared.Chain {
		t.Fatal("HoldBlocks on the shared chain: use NewPeers or NewChain")
	}
	c.do(t, nil, "evm_setAutomine", false)
	return func() {
		t.Helper()
		c.do(t, nil, "evm_setAutomine", true)
		c.Mine(t, 1)
	}
}

// pack encodes a call: the selector of signature, then each argument as a word. A []byte is dynamic and
// must be the last.
func pack(signature string, args ...any) []byte {
	out := append([]byte(nil), crypto.Keccak256([]byte(signature))[:4]...)
	for _, arg := range args {
		switch a := arg.(type) {
		case common.Address:
			out = append(out, common.LeftPadBytes(a[:], 32)...)
		case [32]byte:
			out = append(out, a[:]...)
		case uint64:
			out = append(out, common.LeftPadBytes(new(big.Int).SetUint64(a).Bytes(), 32)...)
		case []byte:
			out = append(out, common.LeftPadBytes(big.NewInt(int64(32*len(args))).Bytes(), 32)...)
			out = append(out, common.LeftPadBytes(big.NewInt(int64(len(a))).Bytes(), 32)...)
			out = append(out, common.RightPadBytes(a, (len(a)+31)/32*32)...)
		default:
			panic(fmt.Sprintf("pack: %T", arg))
		}
	}
	return out
}

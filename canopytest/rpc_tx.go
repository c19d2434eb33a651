package canopytest

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// syncWait is how long eth_sendRawTransactionSync waits for a block.
const syncWait = 30 * time.Second

// sendSync answers eth_sendRawTransactionSync: with the receipt, once there is
// one.
func (n *Node) sendSync(ctx context.Context, param json.RawMessage) (any, error) {
	c := n.chain
	if err := c.reading(ctx, "send"); err != nil {
		return nil, err
	}
	hash, err := n.submit(param)
	c.mu.Unlock()
	var refused *rpcError
	if errors.As(err, &refused) && !strings.Contains(refused.message, "already imported") {
		return nil, err
	}
	_, err = c.waitUntil(ctx, hash, c.clock.Now().Add(syncWait))
	if err != nil && !errors.Is(err, ErrReverted) {
		return nil, &rpcError{code: rpcInternal, message: "Transaction confirmation timeout"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return n.receiptOf(hash), nil
}

func (n *Node) receipt(params []json.RawMessage) (any, error) {
	return n.receiptOf(strings.ToLower(textOf(params[0]))), nil
}

// receiptOf is the receipt of a transaction, null where it is in no block. The
// feePayer is the sender, whoever pays, as measured: the logs tell.
func (n *Node) receiptOf(hash string) any {
	tx := n.chain.byHash[hash]
	if tx == nil || !tx.mined {
		return absent
	}
	b := n.chain.blocks[tx.block]
	status, kind, from, to := uint64(1), "0x2", Address("facilitator"), tx.auth.Token
	gas, price := uint64(90_000), uint64(1_000_000_000)
	if tx.err != nil {
		status = 0
	}
	if t := tx.carried; t != nil {
		from, to, gas, price = t.Sender, t.Token, carriedGas, min(t.MaxFee, n.chain.carried.baseFee+t.MaxTip)
	}
	if tx.tempo != nil {
		kind, from, to = "0x76", tx.tempo.Sender, tx.tempo.Calls[0].To
		u := n.useOf(hash)
		gas, price = u.GasUsed, u.GasPrice
	}
	logs := []object{}
	for _, l := range n.logsOf(b) {
		if l.tx == hash {
			logs = append(logs, append(l.object(), field{"blockHash", b.Hash}, field{"transactionIndex", quantity(uint64(l.place))}))
		}
	}
	out := object{
		{"transactionHash", hash}, {"transactionIndex", quantity(placeIn(b, hash))}, {"blockHash", b.Hash}, {"blockNumber", quantity(b.Number)},
		{"blockTimestamp", quantity(uint64(b.Time.Unix()))}, {"from", from.Lower()}, {"to", to.Lower()}, {"status", quantity(status)}, {"type", kind},
		{"gasUsed", quantity(gas)}, {"cumulativeGasUsed", quantity(gas)}, {"effectiveGasPrice", quantity(price)},
		{"contractAddress", absent}, {"logsBloom", "0x" + strings.Repeat("00", 256)}, {"logs", logs},
	}
	if tx.tempo != nil {
		out = append(out, field{"feePayer", from.Lower()})
	}
	return out
}

func (n *Node) useOf(hash string) TempoUse {
	for i := len(n.chain.tempo.uses) - 1; i >= 0; i-- {
		if u := n.chain.tempo.uses[i]; u.TxHash == hash {
			return u
		}
	}
	return TempoUse{}
}

func placeIn(b Block, hash string) uint64 {
	for i, h := range b.Txs {
		if h == hash {
			return uint64(i)
		}
	}
	return 0
}

// transaction answers eth_getTransactionByHash.
func (n *Node) transaction(params []json.RawMessage) (any, error) {
	hash := strings.ToLower(textOf(params[0]))
	tx := n.chain.byHash[hash]
	if tx == nil {
		return absent, nil
	}
	out := object{{"hash", hash}, {"blockNumber", absent}, {"blockHash", absent}, {"transactionIndex", absent}}
	if tx.mined {
		b := n.chain.blocks[tx.block]
		out = object{
			{"hash", hash}, {"blockNumber", quantity(b.Number)}, {"blockHash", b.Hash}, {"transactionIndex", quantity(placeIn(b, hash))},
		}
	}
	t := tx.tempo
	if t == nil {
		from := Address("facilitator")
		if tx.kind == txSend {
			from = Address("spender") // with an allowance
		}
		if own := tx.carried; own != nil {
			return append(out, field{"type", "0x2"}, field{"from", own.Sender.Lower()}, field{"nonce", quantity(own.Nonce)}, field{"to", own.Token.Lower()}), nil
		}
		return append(out, field{"type", "0x2"}, field{"from", from.Lower()}, field{"nonce", "0x0"}, field{"to", tx.auth.Token.Lower()}), nil
	}
	calls := []object{}
	for _, c := range t.Calls {
		calls = append(calls, object{{"to", c.To.Lower()}, {"value", wideQuantity(c.Value)}, {"input", "0x" + hex.EncodeToString(c.Data)}})
	}
	out = append(out,
		field{"type", "0x76"}, field{"chainId", quantity(t.ChainID)}, field{"from", t.Sender.Lower()}, field{"nonce", quantity(t.Nonce)},
		field{"nonceKey", wideQuantity(payment.UnitsFromBytes(t.NonceKey))}, field{"calls", calls}, field{"gas", quantity(t.Gas)},
		field{"maxFeePerGas", wideQuantity(t.MaxFee)}, field{"maxPriorityFeePerGas", wideQuantity(t.Tip)}, field{"accessList", []string{}},
		field{"validBefore", optional(t.ValidBefore)}, field{"validAfter", optional(t.ValidAfter)}, field{"feeToken", absent})
	if !t.FeeToken.IsZero() {
		out[len(out)-1].value = t.FeeToken.Lower()
	}
	return out, nil
}

func optional(n uint64) any {
	if n == 0 {
		return absent
	}
	return quantity(n)
}

func wideQuantity(u payment.Units) string { return "0x" + u.Big().Text(16) }

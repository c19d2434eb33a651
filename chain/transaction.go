package chain

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

// transaction is what a node tells of a mined transaction.
type transaction struct {
	Hash     word      `json:"hash"`
	From     data      `json:"from"`
	Nonce    quantity  `json:"nonce"`
	NonceKey *wide     `json:"nonceKey"` // of Tempo's own kind only
	Block    *quantity `json:"blockNumber"`
	Calls    []struct {
		To    *data `json:"to"`
		Input *data `json:"input"`
	} `json:"calls"`
}

// slot is the one that the transaction used of account, which is none where
// somebody else sent it: by an allowance, or for a fee.
func (t *transaction) slot(chain payment.ChainID, token, account payment.Address) payment.Slot {
	s := payment.Slot{Chain: chain, From: account}
	if len(t.From) != len(account) || payment.Address(t.From) != account {
		return s
	}
	var key [32]byte
	if t.NonceKey != nil {
		key = *t.NonceKey
	}
	if key != tempo.ExpiringKey {
		s.Kind, s.NonceID, s.Nonce = payment.SlotLane, key, uint64(t.Nonce)
		return s
	}
	s.Kind, s.NonceID = payment.SlotExpiring, t.memo(token)
	return s
}

// memo is that of the first call that transfers the token with one, whether or
// not it did.
func (t *transaction) memo(token payment.Address) word {
	for _, c := range t.Calls {
		if c.To == nil || c.Input == nil || len(*c.To) != len(token) || payment.Address(*c.To) != token {
			continue
		}
		if moved, err := tempo.ParseCall(tempo.Call{To: token, Data: *c.Input}); err == nil && moved.HasMemo {
			return moved.Memo
		}
	}
	return word{}
}

// receipt is what a node tells of a mined transaction's end.
type receipt struct {
	Tx        word      `json:"transactionHash"`
	Status    *quantity `json:"status"`
	Block     *quantity `json:"blockNumber"`
	BlockHash word      `json:"blockHash"`
	Time      stamp     `json:"blockTimestamp"`
}

// isOf reports whether r is a whole receipt of tx.
func (r *receipt) isOf(tx word) bool {
	return r.Tx == tx && r.Block != nil && r.Status != nil && *r.Status <= 1
}

// resolve gives what was found its slots. It reads the transactions of those
// whose logs do not name one, and whether those failed that moved nothing.
func (n *node) resolve(ctx context.Context, token, account payment.Address, found []*spending) ([]payment.Settlement, error) {
	txs, receipts := make([]*transaction, len(found)), make([]*receipt, len(found))
	var calls []*call
	for i, s := range found {
		if s.unexplained() {
			calls = append(calls, &call{method: "eth_getTransactionByHash", params: []any{s.tx}, result: &txs[i]})
		}
		if s.idle() {
			calls = append(calls, &call{method: "eth_getTransactionReceipt", params: []any{s.tx}, result: &receipts[i]})
		}
	}
	if len(calls) > 0 {
		if err := n.read(ctx, calls...); err != nil {
			return nil, err
		}
	}
	for _, c := range calls {
		if c.err != nil {
			return nil, fmt.Errorf("%s: %w", n.host, c.err)
		}
	}
	var out []payment.Settlement
	for i, s := range found {
		slots := s.lanes
		if s.unexplained() {
			t := txs[i]
			if t == nil || t.Hash != s.tx || t.Block == nil || uint64(*t.Block) != s.rest.Block {
				return nil, fmt.Errorf("%w: %s has logs of %s and not the transaction", ErrAnswer, n.host, s.tx)
			}
			slots = []payment.Slot{t.slot(n.chain, token, account)}
		}
		if s.idle() {
			r := receipts[i]
			if r == nil || !r.isOf(s.tx) || uint64(*r.Block) != s.rest.Block {
				return nil, fmt.Errorf("%w: %s has logs of %s and not its receipt", ErrAnswer, n.host, s.tx)
			}
			s.rest.Failed = *r.Status == 0
		}
		out = append(out, s.settlements(slots)...)
	}
	return out, nil
}

// wide is a quantity of up to 256 bits.
type wide [32]byte

func (w *wide) UnmarshalJSON(b []byte) error {
	s, err := unquote(b)
	if err != nil {
		return err
	}
	if len(s) < 3 || len(s) > 66 || s[:2] != "0x" || s[2] == '0' && len(s) > 3 {
		return fmt.Errorf("%.70q is not a quantity", s)
	}
	n, err := hex.DecodeString(strings.Repeat("0", 66-len(s)) + s[2:])
	if err != nil {
		return fmt.Errorf("%.70q is not a quantity", s)
	}
	*w = wide(n)
	return nil
}

package canopytest

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/canopy-go/canopy/payment"
)

// event is a log of a contract.
type event struct {
	from   payment.Address
	topics []string
	data   []byte
	block  *Block
	tx     string
	index  int // in the block
	place  int // of the transaction in the block
}

// object is e as eth_getLogs tells it.
func (e event) object() object {
	return object{
		{"address", e.from.Lower()}, {"topics", e.topics}, {"data", "0x" + hex.EncodeToString(e.data)}, {"blockNumber", quantity(e.block.Number)},
		{"transactionHash", e.tx}, {"logIndex", quantity(uint64(e.index))}, {"removed", false}, {"blockTimestamp", quantity(uint64(e.block.Time.Unix()))},
	}
}

// The topics of events.
var (
	topicTransfer = topicOf("Transfer(address,address,uint256)")
	topicMemo     = topicOf("TransferWithMemo(address,address,uint256,bytes32)")
	topicNonce    = topicOf("NonceIncremented(address,uint256,uint64)")
	topicUsed     = topicOf("AuthorizationUsed(address,bytes32)")
	topicCanceled = topicOf("AuthorizationCanceled(address,bytes32)")
)

// records are what a range of blocks holds, by transaction.
type records struct {
	transfers map[string][]Transfer
	uses      map[string][]AuthorizationUse
	tempo     map[string]TempoUse
}

func (c *Chain) records(first, last uint64) records {
	r := records{map[string][]Transfer{}, map[string][]AuthorizationUse{}, map[string]TempoUse{}}
	for _, t := range inRange(c.transfers, func(t Transfer) uint64 { return t.Block.Number }, first, last) {
		r.transfers[t.TxHash] = append(r.transfers[t.TxHash], t)
	}
	for _, u := range inRange(c.uses, func(u AuthorizationUse) uint64 { return u.Block.Number }, first, last) {
		r.uses[u.TxHash] = append(r.uses[u.TxHash], u)
	}
	for _, u := range inRange(c.tempo.uses, func(u TempoUse) uint64 { return u.Block.Number }, first, last) {
		r.tempo[u.TxHash] = u
	}
	return r
}

// inRange are those of all, which are in the order of blocks, from block first to
// last.
func inRange[T any](all []T, number func(T) uint64, first, last uint64) []T {
	at := func(n uint64) int {
		i, _ := slices.BinarySearchFunc(all, n, func(t T, n uint64) int {
			if number(t) < n {
				return -1
			}
			return 1
		})
		return i
	}
	if last < first {
		return nil
	}
	return all[at(first):at(last+1)]
}

// logsOf are the logs of one block.
func (n *Node) logsOf(b Block) []event {
	return eventsOf(b, n.chain.records(b.Number, b.Number))
}

// eventsOf are the logs of b, in their order.
func eventsOf(b Block, r records) []event {
	var out []event
	for place, tx := range b.Txs {
		add := func(from payment.Address, data []byte, topics ...string) {
			out = append(out, event{from: from, topics: topics, data: data, block: &b, tx: tx, index: len(out), place: place})
		}
		if u, ok := r.tempo[tx]; ok && !u.expiring && u.Tx.NonceKey != [32]byte{} {
			next := payment.UnitsOf(u.Tx.Nonce + 1).Bytes()
			add(NoncePrecompile, next[:], topicNonce, wordOf(u.Tx.Sender), "0x"+hex.EncodeToString(u.Tx.NonceKey[:]))
		}
		for _, u := range r.uses[tx] {
			topic := topicUsed
			if u.Canceled {
				topic = topicCanceled
			}
			add(u.Token, nil, topic, wordOf(u.From), "0x"+hex.EncodeToString(u.Nonce[:]))
		}
		for _, t := range r.transfers[tx] {
			amount := t.Value.Bytes()
			add(t.Token, amount[:], topicTransfer, wordOf(t.From), wordOf(t.To))
			if t.HasMemo {
				add(t.Token, amount[:], topicMemo, wordOf(t.From), wordOf(t.To), "0x"+hex.EncodeToString(t.Memo[:]))
			}
		}
	}
	return out
}

// logs answers eth_getLogs: of some contracts, in a range of blocks, with topics
// by their places.
func (n *Node) logs(params []json.RawMessage) (any, error) {
	var q struct {
		Address            json.RawMessage
		FromBlock, ToBlock json.RawMessage
		Topics             []json.RawMessage
	}
	if err := json.Unmarshal(params[0], &q); err != nil {
		return nil, &rpcError{code: rpcParams, message: err.Error()}
	}
	first, last := uint64(0), n.chain.head().Number
	if number, err := strconv.ParseUint(strings.TrimPrefix(textOf(q.FromBlock), "0x"), 16, 64); err == nil {
		first = number
	} else if first, err = n.block(q.FromBlock); err != nil {
		return nil, err
	}
	if number, err := strconv.ParseUint(strings.TrimPrefix(textOf(q.ToBlock), "0x"), 16, 64); err == nil {
		last = min(number, last)
	} else if last, err = n.block(q.ToBlock); err != nil {
		return nil, err
	}
	contracts := oneOf(q.Address)
	var places [][]string
	for _, t := range q.Topics {
		places = append(places, oneOf(t))
	}
	out := []object{}
	r := n.chain.records(first, last)
	for at := first; at <= last; at++ {
		b := n.chain.blocks[at]
		if len(b.Txs) == 0 {
			continue
		}
		for _, e := range eventsOf(b, r) {
			if len(contracts) > 0 && !slices.Contains(contracts, e.from.Lower()) || !matches(e.topics, places) {
				continue
			}
			out = append(out, e.object())
		}
	}
	return out, nil
}

// oneOf reads one text, or a list of them; null is none.
func oneOf(raw json.RawMessage) []string {
	var out []string
	if len(raw) == 0 {
		return nil
	}
	if json.Unmarshal(raw, &out) != nil {
		out = []string{textOf(raw)}
	}
	for i, s := range out {
		out[i] = strings.ToLower(s)
	}
	return out
}

// matches reports whether topics have what is asked for at each place; nothing
// is asked for where a place is empty.
func matches(topics []string, places [][]string) bool {
	for i, want := range places {
		if len(want) > 0 && (i >= len(topics) || !slices.Contains(want, topics[i])) {
			return false
		}
	}
	return true
}

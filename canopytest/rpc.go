package canopytest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"

	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/payment"
)

// Node is an http.Handler that answers JSON-RPC questions about a Chain, as far
// as Canopy asks them: for programs that read chains by URL. It is safe for
// concurrent use.
type Node struct{ chain *Chain }

// NewNode returns a node of chain.
func NewNode(chain *Chain) *Node { return &Node{chain} }

// Start serves n over plain HTTP on a loopback port until the test ends, and
// returns its URL.
func (n *Node) Start(tb TB) string {
	tb.Helper()
	server := httptest.NewServer(n)
	tb.Cleanup(server.Close)
	return server.URL
}

type rpcCall struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

// ServeHTTP answers a call, or a batch of them.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
	if err != nil {
		return
	}
	var batch []rpcCall
	single := json.Unmarshal(body, &batch) != nil
	if single {
		batch = make([]rpcCall, 1)
		if err := json.Unmarshal(body, &batch[0]); err != nil {
			http.Error(w, "not JSON-RPC", http.StatusBadRequest)
			return
		}
	}
	out := make([]object, len(batch))
	for i, c := range batch {
		out[i] = object{{"jsonrpc", "2.0"}, {"id", c.ID}}
		result, err := n.answer(c)
		if err != nil {
			out[i] = append(out[i], field{"error", object{{"code", -32000}, {"message", err.Error()}}})
		} else {
			out[i] = append(out[i], field{"result", result})
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if single {
		w.Write(mustJSON(out[0]))
		return
	}
	w.Write(mustJSON(out))
}

func (n *Node) answer(c rpcCall) (any, error) {
	n.chain.mu.Lock()
	defer n.chain.mu.Unlock()
	if n.chain.down != nil {
		return nil, n.chain.down
	}
	n.chain.catchUp()
	switch {
	case c.Method == "eth_chainId":
		number, _ := n.chain.id.Number()
		return quantity(number), nil
	case c.Method == "eth_blockNumber":
		return quantity(n.chain.head().Number), nil
	case c.Method == "eth_getBlockByNumber" && len(c.Params) > 0:
		at, err := n.block(c.Params[0])
		if err != nil {
			return nil, err
		}
		b := n.chain.blocks[at]
		return object{
			{"number", quantity(b.Number)}, {"hash", b.Hash}, {"timestamp", quantity(uint64(b.Time.Unix()))}, {"transactions", append([]string{}, b.Txs...)},
		}, nil
	case c.Method == "eth_call" && len(c.Params) > 1:
		return n.call(c.Params)
	case c.Method == "eth_getLogs" && len(c.Params) > 0:
		return n.logs(c.Params[0])
	}
	return nil, fmt.Errorf("the method %s is not known", c.Method)
}

// block is the number that a tag or a quantity names.
func (n *Node) block(raw json.RawMessage) (uint64, error) {
	last := uint64(len(n.chain.blocks) - 1)
	switch s := textOf(raw); s {
	case "latest":
		return last, nil
	case "finalized", "safe":
		return uint64(n.chain.final()), nil
	default:
		at, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
		if err != nil || at > last {
			return 0, fmt.Errorf("no block %s", s)
		}
		return at, nil
	}
}

func textOf(raw json.RawMessage) string {
	s, _ := value(raw).(string)
	return s
}

// call answers balanceOf and authorizationState.
func (n *Node) call(params []json.RawMessage) (any, error) {
	var q struct{ To, Data string }
	if err := json.Unmarshal(params[0], &q); err != nil {
		return nil, err
	}
	token, err := payment.ParseAddressLoose(q.To)
	if err != nil {
		return nil, err
	}
	input, err := hex.DecodeString(strings.TrimPrefix(q.Data, "0x"))
	if err != nil {
		return nil, err
	}
	at, err := n.block(params[1])
	if err != nil {
		return nil, err
	}
	if _, known := n.chain.assets.Lookup(n.chain.id, token); !known {
		return "0x", nil // no contract there
	}
	var word [32]byte
	switch {
	case len(input) == 36 && [4]byte(input) == selector("balanceOf(address)"):
		word = n.chain.balances[holding{token, payment.Address(input[16:36])}].Bytes()
	case len(input) == 68 && [4]byte(input) == selector("authorizationState(address,bytes32)"):
		if u, ok := n.chain.used[slot{token, payment.Address(input[16:36]), [32]byte(input[36:])}]; ok && u.block <= at {
			word[31] = 1
		}
	default:
		return nil, fmt.Errorf("execution reverted")
	}
	return "0x" + hex.EncodeToString(word[:]), nil
}

func selector(signature string) [4]byte {
	h := keccak.Sum256([]byte(signature))
	return [4]byte(h[:4])
}

// logs answers with the uses of authorizations and the transfers, as far as the
// first topic of the question names them, of one account, which is the second.
func (n *Node) logs(raw json.RawMessage) (any, error) {
	var q struct {
		Address, FromBlock, ToBlock string
		Topics                      []json.RawMessage
	}
	if err := json.Unmarshal(raw, &q); err != nil {
		return nil, err
	}
	token, err := payment.ParseAddressLoose(q.Address)
	if err != nil {
		return nil, err
	}
	first, err1 := strconv.ParseUint(strings.TrimPrefix(q.FromBlock, "0x"), 16, 64)
	last, err2 := strconv.ParseUint(strings.TrimPrefix(q.ToBlock, "0x"), 16, 64)
	if err1 != nil || err2 != nil || len(q.Topics) < 2 {
		return nil, fmt.Errorf("a question of another form")
	}
	account := textOf(q.Topics[1])
	events := eventsOf(q.Topics[0])
	out := []object{}
	add := func(b Block, tx string, index int, data []byte, topics ...string) {
		if b.Number < first || b.Number > last || topics[1] != account || !slices.Contains(events, topics[0]) {
			return
		}
		out = append(out, object{
			{"address", token.Lower()}, {"topics", topics}, {"data", "0x" + hex.EncodeToString(data)}, {"blockNumber", quantity(b.Number)},
			{"transactionHash", tx}, {"logIndex", quantity(uint64(index))}, {"removed", false}, {"blockTimestamp", quantity(uint64(b.Time.Unix()))},
		})
	}
	for i, u := range n.chain.uses {
		if u.Token != token {
			continue
		}
		event := "AuthorizationUsed(address,bytes32)"
		if u.Canceled {
			event = "AuthorizationCanceled(address,bytes32)"
		}
		add(u.Block, u.TxHash, 2*i, nil, topicOf(event), wordOf(u.From), "0x"+hex.EncodeToString(u.Nonce[:]))
		for _, t := range n.chain.transfers {
			if t.TxHash == u.TxHash && t.Token == u.Token {
				amount := t.Value.Bytes()
				add(t.Block, t.TxHash, 2*i+1, amount[:], topicOf("Transfer(address,address,uint256)"), wordOf(t.From), wordOf(t.To))
			}
		}
	}
	return out, nil
}

// eventsOf reads one topic, or a list of them.
func eventsOf(raw json.RawMessage) []string {
	var out []string
	if json.Unmarshal(raw, &out) != nil {
		out = []string{textOf(raw)}
	}
	return out
}

func quantity(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }

func topicOf(event string) string {
	h := keccak.Sum256([]byte(event))
	return "0x" + hex.EncodeToString(h[:])
}

func wordOf(a payment.Address) string { return "0x" + hex.EncodeToString(padded(a)) }

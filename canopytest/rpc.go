package canopytest

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/payment"
)

// Node is an http.Handler that answers JSON-RPC questions about a Chain, as far
// as Canopy and the sellers that it pays ask them: for programs that read chains
// by URL, and send to them. It is safe for concurrent use.
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
		result, err := n.answer(r.Context(), c)
		if err != nil {
			out[i] = append(out[i], field{"error", rpcErrorOf(err)})
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

// rpcError is what a node says in place of a result.
type rpcError struct {
	code    int
	message string
	data    string
}

func (e *rpcError) Error() string { return e.message }

// The codes of errors.
const (
	rpcNoMethod = -32601
	rpcParams   = -32602
	rpcInternal = -32603
	rpcRejected = -32003
	rpcReverted = 3
)

func rpcErrorOf(err error) object {
	var e *rpcError
	if !errors.As(err, &e) {
		e = &rpcError{code: -32000, message: err.Error()}
	}
	out := object{{"code", e.code}, {"message", e.message}}
	if e.data != "" {
		out = append(out, field{"data", e.data})
	}
	return out
}

// absent is the result of a question about what is not there.
var absent = json.RawMessage("null")

func (n *Node) answer(ctx context.Context, c rpcCall) (any, error) {
	if c.Method == "eth_sendRawTransactionSync" && len(c.Params) > 0 {
		return n.sendSync(ctx, c.Params[0])
	}
	n.chain.mu.Lock()
	defer n.chain.mu.Unlock()
	if n.chain.down != nil {
		return nil, n.chain.down
	}
	n.chain.catchUp()
	if answer, ok := nodeMethods[c.Method]; ok && len(c.Params) >= answer.params {
		return answer.f(n, c.Params)
	}
	return nil, &rpcError{code: rpcNoMethod, message: fmt.Sprintf("the method %s is not known", c.Method)}
}

// nodeMethods are the methods that need the chain as it stands, and how many
// parameters they have at least.
var nodeMethods = map[string]struct {
	params int
	f      func(*Node, []json.RawMessage) (any, error)
}{
	"eth_chainId": {0, func(n *Node, _ []json.RawMessage) (any, error) {
		number, _ := n.chain.id.Number()
		return quantity(number), nil
	}},
	"net_version": {0, func(n *Node, _ []json.RawMessage) (any, error) {
		number, _ := n.chain.id.Number()
		return strconv.FormatUint(number, 10), nil
	}},
	"eth_blockNumber": {0, func(n *Node, _ []json.RawMessage) (any, error) { return quantity(n.chain.head().Number), nil }},
	"eth_getBlockByNumber": {1, func(n *Node, p []json.RawMessage) (any, error) {
		at, err := n.block(p[0])
		if err != nil {
			return nil, err
		}
		return n.blockObject(n.chain.blocks[at]), nil
	}},
	"eth_call":                  {1, (*Node).call},
	"eth_getLogs":               {1, (*Node).logs},
	"eth_getTransactionReceipt": {1, (*Node).receipt},
	"eth_getTransactionByHash":  {1, (*Node).transaction},
	"eth_getTransactionCount":   {1, (*Node).count},
	"eth_sendRawTransaction":    {1, (*Node).send},
	"eth_maxPriorityFeePerGas": {0, func(n *Node, _ []json.RawMessage) (any, error) {
		if n.chain.tempo.on {
			return quantity(1_000_000_000), nil
		}
		return quantity(n.chain.carried.tip), nil
	}},
	"eth_gasPrice": {0, func(n *Node, _ []json.RawMessage) (any, error) {
		return quantity(n.chain.tempo.rules.BaseFee + 1_000_000_000), nil
	}},
	"eth_estimateGas": {1, func(n *Node, _ []json.RawMessage) (any, error) {
		if n.chain.tempo.rules.T0 {
			return quantity(gasShortNew + gasShortPayee), nil
		}
		return quantity(1_021_601), nil // it does not look at the calls
	}},
	"eth_getCode": {1, func(*Node, []json.RawMessage) (any, error) { return "0x", nil }},
	"eth_getBalance": {1, func(n *Node, p []json.RawMessage) (any, error) {
		account, err := payment.ParseAddressLoose(textOf(p[0]))
		if err != nil {
			return nil, &rpcError{code: rpcParams, message: err.Error()}
		}
		return wideQuantity(n.chain.carried.coins[account]), nil
	}},
}

// blockObject is b as nodes tell it.
func (n *Node) blockObject(b Block) object {
	out := object{
		{"number", quantity(b.Number)}, {"hash", b.Hash}, {"timestamp", quantity(uint64(b.Time.Unix()))}, {"transactions", append([]string{}, b.Txs...)},
	}
	if n.chain.tempo.on {
		out = append(out, field{"baseFeePerGas", quantity(n.chain.tempo.rules.BaseFee)}, field{"gasLimit", quantity(500_000_000)})
	} else {
		out = append(out, field{"baseFeePerGas", quantity(n.chain.carried.baseFee)}, field{"gasLimit", quantity(60_000_000)})
	}
	return out
}

// block is the number that a tag or a quantity names.
func (n *Node) block(raw json.RawMessage) (uint64, error) {
	last := uint64(len(n.chain.blocks) - 1)
	switch s := textOf(raw); s {
	case "latest", "pending", "":
		return last, nil
	case "earliest":
		return 0, nil
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

func selector(signature string) [4]byte {
	h := keccak.Sum256([]byte(signature))
	return [4]byte(h[:4])
}

func quantity(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }

func topicOf(event string) string {
	h := keccak.Sum256([]byte(event))
	return "0x" + hex.EncodeToString(h[:])
}

func wordOf(a payment.Address) string { return "0x" + hex.EncodeToString(padded(a)) }

package canopytest

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/big"
	"strings"

	"github.com/canopy-go/canopy/payment"
)

// callObject is the first parameter of eth_call. On Tempo it may be a whole
// transaction, whose calls are not carried out.
type callObject struct {
	From, To, Data, Input       string
	Gas, MaxFeePerGas           json.RawMessage
	NonceKey, Nonce             json.RawMessage
	ValidBefore, ValidAfter     json.RawMessage
	FeeToken                    string
	FeePayer, FeePayerSignature json.RawMessage
	ChainID                     json.RawMessage
	Calls                       []struct {
		To, Data, Input string
		Value           json.RawMessage
	}
}

// call answers the reads of tokens, of lanes and of the fee manager, and
// simulates transactions of Tempo.
func (n *Node) call(params []json.RawMessage) (any, error) {
	var q callObject
	if err := json.Unmarshal(params[0], &q); err != nil {
		return nil, &rpcError{code: rpcParams, message: err.Error()}
	}
	if len(q.Calls) > 0 && n.chain.tempo.on {
		return n.simulate(q)
	}
	to, err := payment.ParseAddressLoose(q.To)
	if err != nil {
		return nil, &rpcError{code: rpcParams, message: err.Error()}
	}
	if q.Data == "" {
		q.Data = q.Input
	}
	input, err := hex.DecodeString(strings.TrimPrefix(q.Data, "0x"))
	if err != nil {
		return nil, &rpcError{code: rpcParams, message: err.Error()}
	}
	tag := json.RawMessage(`"latest"`)
	if len(params) > 1 {
		tag = params[1]
	}
	at, err := n.block(tag)
	if err != nil {
		return nil, err
	}
	_, known := n.chain.assets.Lookup(n.chain.id, to)
	switch {
	case known:
		return n.callToken(to, q.From, input, at)
	case n.chain.tempo.on && to == NoncePrecompile:
		return n.callNonce(input, at)
	case n.chain.tempo.on && to == FeeManager:
		return "0x" + strings.Repeat("00", 32), nil // nobody chose a token
	}
	return "0x", nil // no contract there
}

var errExecution = &rpcError{code: rpcReverted, message: "execution reverted", data: "0x"}

func (n *Node) callToken(token payment.Address, from string, input []byte, at uint64) (any, error) {
	var word [32]byte
	c := n.chain
	switch {
	case len(input) == 36 && [4]byte(input) == selector("balanceOf(address)"):
		word = c.balances[holding{token, payment.Address(input[16:36])}].Bytes()
	case len(input) == 68 && [4]byte(input) == selector("authorizationState(address,bytes32)") && !c.tempo.on:
		if u, ok := c.used[slot{token, payment.Address(input[16:36]), [32]byte(input[36:])}]; ok && u.block <= at {
			word[31] = 1
		}
	case len(input) == 4 && [4]byte(input) == selector("decimals()"):
		asset, _ := c.assets.Lookup(c.id, token)
		word[31] = asset.Decimals
	default:
		t, ok := TempoCall{To: token, Data: input}.transfer()
		payer, err := payment.ParseAddressLoose(from)
		if !ok || err != nil || !c.tempo.on {
			return nil, errExecution
		}
		if c.balances[holding{token, payer}].Cmp(t.Amount) < 0 {
			return nil, &rpcError{code: rpcReverted, message: "execution reverted", data: "0x832f98b5"}
		}
		word[31] = 1
	}
	return "0x" + hex.EncodeToString(word[:]), nil
}

// callNonce answers getNonce, which does not know the account's own nonce.
func (n *Node) callNonce(input []byte, at uint64) (any, error) {
	if len(input) != 68 || [4]byte(input) != selector("getNonce(address,uint256)") {
		return nil, errExecution
	}
	s := payment.Slot{From: payment.Address(input[16:36]), NonceID: [32]byte(input[36:])}
	if s.NonceID == [32]byte{} {
		return nil, &rpcError{code: rpcReverted, message: "execution reverted", data: "0x1bc81ca9"}
	}
	var word [32]byte
	binary.BigEndian.PutUint64(word[24:], n.chain.laneAt(s, at))
	return "0x" + hex.EncodeToString(word[:]), nil
}

// count answers eth_getTransactionCount: the account's own nonce.
func (n *Node) count(params []json.RawMessage) (any, error) {
	account, err := payment.ParseAddressLoose(textOf(params[0]))
	if err != nil {
		return nil, &rpcError{code: rpcParams, message: err.Error()}
	}
	if !n.chain.tempo.on {
		if len(params) > 1 && textOf(params[1]) == "pending" {
			return quantity(n.chain.pendingNonce(account)), nil
		}
		return quantity(n.chain.carried.nonces[account]), nil // whatever block is asked about
	}
	at := n.chain.head().Number
	if len(params) > 1 {
		if at, err = n.block(params[1]); err != nil {
			return nil, err
		}
	}
	return quantity(n.chain.laneAt(payment.Slot{From: account}, at)), nil
}

// simulate looks at a transaction as nodes do before it is sent: the window, the
// gas limit and the fee.
func (n *Node) simulate(q callObject) (any, error) {
	t := &TempoTx{ChainID: n.chain.tempo.number, Gas: 1 << 40, MaxFee: payment.UnitsOf(1 << 62)}
	t.Sender, _ = payment.ParseAddressLoose(q.From)
	t.FeeToken, _ = payment.ParseAddressLoose(q.FeeToken)
	t.NonceKey = looseNumber(q.NonceKey).Bytes()
	t.Nonce, _ = looseNumber(q.Nonce).Uint64()
	t.ValidBefore, _ = looseNumber(q.ValidBefore).Uint64()
	t.ValidAfter, _ = looseNumber(q.ValidAfter).Uint64()
	if id, ok := looseNumber(q.ChainID).Uint64(); ok && id > 0 {
		t.ChainID = id
	}
	if price := looseNumber(q.MaxFeePerGas); !price.IsZero() {
		t.MaxFee = price
	}
	if gas, ok := looseNumber(q.Gas).Uint64(); ok && gas > 0 {
		t.Gas, t.FeePayer = gas, t.Sender
		switch payer, err := payment.ParseAddressLoose(textOf(q.FeePayer)); {
		case err == nil:
			t.FeePayer, t.Sponsored = payer, true
		case len(q.FeePayer) > 0 && string(q.FeePayer) != "null", len(q.FeePayerSignature) > 0 && string(q.FeePayerSignature) != "null":
			t.FeePayer, t.Sponsored = payment.Address{}, true // whoever that is
		}
	}
	for _, call := range q.Calls {
		to, _ := payment.ParseAddressLoose(call.To)
		data, _ := hex.DecodeString(strings.TrimPrefix(call.Data+call.Input, "0x"))
		t.Calls = append(t.Calls, TempoCall{To: to, Data: data, Value: looseNumber(call.Value)})
	}
	if err := n.chain.simulates(t); err != nil {
		return nil, rejected(err)
	}
	return "0x", nil
}

// rejected is err as nodes word it.
func rejected(err error) error {
	return &rpcError{code: rpcRejected, message: strings.ReplaceAll(err.Error(), "canopytest: ", "")}
}

// looseNumber reads a quantity, a decimal text or a number; anything else is 0.
func looseNumber(raw json.RawMessage) payment.Units {
	s := string(raw)
	if v, ok := value(raw).(string); ok {
		s = v
	}
	b, ok := new(big.Int).SetString(s, 0)
	if !ok {
		return payment.Units{}
	}
	u, _ := payment.UnitsFromBig(b)
	return u
}

// send answers eth_sendRawTransaction.
func (n *Node) send(params []json.RawMessage) (any, error) {
	hash, err := n.submit(params[0])
	if err != nil {
		return nil, err
	}
	return hash, nil
}

func (n *Node) submit(param json.RawMessage) (string, error) {
	raw, err := hex.DecodeString(strings.TrimPrefix(textOf(param), "0x"))
	if err != nil {
		return "", &rpcError{code: rpcParams, message: err.Error()}
	}
	hash, err := n.chain.submit(raw)
	switch {
	case errors.Is(err, ErrTempoTx), errors.Is(err, ErrRaw):
		return "", &rpcError{code: rpcParams, message: "failed to decode signed transaction"}
	case err != nil:
		return hash, rejected(err)
	}
	if n.chain.mining == Instant && len(n.chain.pool) > 0 {
		n.chain.mine(n.chain.clock.Now())
	}
	return hash, nil
}

package chain

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/canopy-go/canopy/payment"
)

// lane is a counter of nonces: of an account, for a key; that of the account
// itself where the key is zero.
type lane struct {
	from payment.Address
	key  [32]byte
}

// passed tells for each slot, by the word of one node, whether its lane was
// beyond its nonce at block at. Each lane is asked about once.
func (n *node) passed(ctx context.Context, slots []payment.Slot, at payment.Block) ([]bool, error) {
	known := map[lane]*counted{}
	var calls []*call
	var lanes []lane
	for _, s := range slots {
		l := lane{s.From, s.NonceID}
		if known[l] != nil {
			continue
		}
		known[l] = new(counted)
		lanes, calls = append(lanes, l), append(calls, l.call(known[l], at))
	}
	if err := n.read(ctx, calls...); err != nil {
		return nil, err
	}
	for i, c := range calls {
		if c.err != nil {
			return nil, fmt.Errorf("%s: lane %x of %s: %w", n.host, lanes[i].key, lanes[i].from, c.err)
		}
	}
	out := make([]bool, len(slots))
	for i, s := range slots {
		out[i] = uint64(*known[lane{s.From, s.NonceID}]) > s.Nonce
	}
	return out, nil
}

// call asks for the next nonce of l at block at.
func (l lane) call(next *counted, at payment.Block) *call {
	if l.key == [32]byte{} {
		return &call{method: "eth_getTransactionCount", result: (*quantity)(next), params: []any{l.from.Lower(), quantity(at.Number)}}
	}
	input := append(append(selector(getNonce), word32(wordOf(l.from))...), l.key[:]...)
	return &call{method: "eth_call", result: next, params: []any{
		map[string]any{"to": nonceContract.Lower(), "data": data(input)}, quantity(at.Number),
	}}
}

// counted is a counter that a contract returns: a word that holds 64 bits.
type counted uint64

func (c *counted) UnmarshalJSON(b []byte) error {
	var w word
	if err := w.UnmarshalJSON(b); err != nil {
		return err
	}
	n, ok := w.count()
	*c = counted(n)
	if !ok {
		return fmt.Errorf("a counter of more than 64 bits")
	}
	return nil
}

// count is w as a number, and false where it is not one of 64 bits.
func (w word) count() (uint64, bool) {
	return binary.BigEndian.Uint64(w[24:]), [24]byte(w[:24]) == [24]byte{}
}

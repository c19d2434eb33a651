package tempo

import (
	"errors"
	"fmt"

	"github.com/canopy-go/canopy/payment"
)

// ErrCall is wrapped where a call is not exactly a TIP-20 transfer.
var ErrCall = errors.New("tempo: not a transfer")

var (
	selectorTransfer = [4]byte{0xa9, 0x05, 0x9c, 0xbb} // transfer(address,uint256)
	selectorWithMemo = [4]byte{0x95, 0x77, 0x7d, 0x59} // transferWithMemo(address,uint256,bytes32)
)

const (
	sizeTransfer = 4 + 2*32
	sizeWithMemo = 4 + 3*32
)

// Transfer is a call of a TIP-20 token that moves Amount from the sender to To.
type Transfer struct {
	Token, To payment.Address
	Amount    payment.Units
	Memo      [32]byte // zero unless HasMemo
	HasMemo   bool     // transferWithMemo, which a memo of zeros is too
}

// Call is the call that makes the transfer.
func (t Transfer) Call() Call {
	selector, size := selectorTransfer, sizeTransfer
	if t.HasMemo {
		selector, size = selectorWithMemo, sizeWithMemo
	}
	data := make([]byte, size)
	copy(data, selector[:])
	copy(data[16:], t.To[:])
	amount := t.Amount.Bytes()
	copy(data[36:], amount[:])
	if t.HasMemo {
		copy(data[68:], t.Memo[:])
	}
	return Call{To: t.Token, Data: data}
}

// ParseCall reads a call that Transfer.Call made and refuses every other: other
// functions, other lengths, padding that is not zero, and value beside the
// token.
func ParseCall(c Call) (Transfer, error) {
	var t Transfer
	switch {
	case c.Create:
		return t, fmt.Errorf("%w: it creates a contract", ErrCall)
	case !c.Value.IsZero():
		return t, fmt.Errorf("%w: it carries value", ErrCall)
	case len(c.Data) == sizeTransfer && [4]byte(c.Data) == selectorTransfer:
	case len(c.Data) == sizeWithMemo && [4]byte(c.Data) == selectorWithMemo:
		t.HasMemo, t.Memo = true, [32]byte(c.Data[68:])
	default:
		return t, fmt.Errorf("%w: %d bytes of other data", ErrCall, len(c.Data))
	}
	if [12]byte(c.Data[4:]) != [12]byte{} {
		return Transfer{}, fmt.Errorf("%w: the recipient is longer than an address", ErrCall)
	}
	t.Token, t.To = c.To, payment.Address(c.Data[16:36])
	t.Amount = payment.UnitsFromBytes([32]byte(c.Data[36:]))
	return t, nil
}

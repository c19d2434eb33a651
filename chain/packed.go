package chain

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/canopy-go/canopy/payment"
)

// packSize is how many authorizations are asked about in one call: far within
// the gas that nodes give to a read, and the length that they take.
const packSize = 250

// packCode is the code of a contract that is never laid: a node runs it as if
// it were to be, and answers with what it returns. After it come the token, the
// first 36 bytes of a call of authorizationState, and the nonces, at 0x67, 0x7b
// and 0x9f. It returns a byte for each nonce, 1 for unused and 2 for used, and
// reverts where the token answers a call with anything else.
const packCode = "6024607b600039" + // memory 0 to 0x24: how each call begins
	"6014606760603960605160601c" + // stack: the token
	"609f" + // and where the next nonce is
	"5b38811015605657" + // at 0x16: go to 0x56 where none is left
	"602081602439" + // memory 0x24 to 0x44: the nonce
	"6020606060446000855afa" + // whether the call ends well; its answer is at 0x60
	"3d60201416" + // and has 32 bytes
	"6060518060021190911615606157" + // and is below 2: else go to 0x61
	"600101609f820360051c60800153" + // the byte of this nonce, from 0x80 on
	"602001601656" + // the next nonce
	"5b609f900360051c6080f3" + // at 0x56: return the bytes
	"5b60006000fd" // at 0x61: revert

// pack is slots of one token and account in one call.
func pack(slots []payment.Slot) data {
	code, err := hex.DecodeString(packCode)
	if err != nil {
		panic("chain: " + err.Error())
	}
	code = append(code, slots[0].Token[:]...)
	code = append(code, append(selector(authorizationState), word32(wordOf(slots[0].From))...)...)
	for _, s := range slots {
		code = append(code, s.NonceID[:]...)
	}
	return code
}

// packed tells of slots as singly does, in few calls.
func (n *node) packed(ctx context.Context, slots []payment.Slot, at payment.Block) ([]bool, error) {
	out := make([]bool, 0, len(slots))
	for some := range chunks(slots, packSize) {
		var marks data
		if err := n.one(ctx, "eth_call", &marks, map[string]any{"data": pack(some)}, quantity(at.Number)); err != nil {
			return nil, err
		}
		if len(marks) != len(some) {
			return nil, fmt.Errorf("%w: %d answers to %d slots", ErrAnswer, len(marks), len(some))
		}
		for _, m := range marks {
			if m != 1 && m != 2 {
				return nil, fmt.Errorf("%w: a slot is neither used nor unused", ErrAnswer)
			}
			out = append(out, m == 2)
		}
	}
	return out, nil
}

// spent reports whether asking in another way is no use after err.
func spent(ctx context.Context, err error) bool {
	var refused *RPCError
	return ctx.Err() != nil || errors.Is(err, errPutOff) || errors.As(err, &refused) && refused.limited()
}

// refuses reports whether err is what a node said, and will say again.
func refuses(err error) bool { return !errors.Is(err, ErrUnreachable) || errors.Is(err, errBatch) }

// chunks are the runs of slots of one token and account, each of at most size.
func chunks(slots []payment.Slot, size int) func(yield func([]payment.Slot) bool) {
	return func(yield func([]payment.Slot) bool) {
		for len(slots) > 0 {
			k := 1
			for k < len(slots) && k < size && slots[k].Token == slots[0].Token && slots[k].From == slots[0].From {
				k++
			}
			if !yield(slots[:k]) {
				return
			}
			slots = slots[k:]
		}
	}
}

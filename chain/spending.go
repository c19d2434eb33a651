package chain

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

// spending is what the logs of one transaction on a Tempo chain show of an
// account and a token: the nonces that it took, and what left the account.
type spending struct {
	tx             word
	authorizations []payment.Settlement // of EIP-3009, with what each moved
	rest           payment.Settlement   // what else left the account; without a slot
	lanes          []payment.Slot       // that the transaction took: one where the account sent it on a lane
	left           bool                 // rest is there
}

// spendings tells, by the word of one node, how the token left the account in
// the blocks from first to last, and which nonces of it were taken, in the
// chain's order. What logs do not tell is looked up in the transactions. A token
// logs a transfer that has a memo a second time, with it: nobody asks for that.
func (n *node) spendings(ctx context.Context, token, account payment.Address, first, last uint64) ([]payment.Settlement, error) {
	logs, err := n.search(ctx, question{
		[]payment.Address{token, nonceContract}, []word{transferLog, nonceLog, authorizationLog, cancelLog}, account,
	}, first, last)
	if err != nil {
		return nil, err
	}
	var found []*spending
	for i := 0; i < len(logs); {
		s := newSpending(logs[i], token)
		for ; i < len(logs) && logs[i].Tx == s.tx && uint64(logs[i].Block) == s.rest.Block; i++ {
			if err := s.add(payment.Slot{Chain: n.chain, From: account}, logs[i]); err != nil {
				return nil, fmt.Errorf("%w: %s: %w", ErrAnswer, n.host, err)
			}
		}
		found = append(found, s)
	}
	return n.resolve(ctx, token, account, found)
}

func newSpending(l log, token payment.Address) *spending {
	return &spending{tx: l.Tx, rest: payment.Settlement{TxHash: l.Tx.String(), Block: uint64(l.Block), Time: l.time(), Token: token}}
}

// add reads one more log of the transaction, of an account as slot names it.
func (s *spending) add(slot payment.Slot, l log) error {
	nonce := payment.Address(l.Address) == nonceContract
	switch event := l.Topics[0]; {
	case nonce && event == nonceLog:
		next, ok := l.amount().Uint64()
		if len(l.Topics) != 3 || len(l.Data) != 32 || !ok || next == 0 {
			return errors.New("a nonce that is none")
		}
		if l.Topics[2] == tempo.ExpiringKey {
			return nil // a network before T1 counts it as a lane; its slot is told by the memo
		}
		slot.Kind, slot.NonceID, slot.Nonce = payment.SlotLane, l.Topics[2], next-1
		s.lanes = append(s.lanes, slot)
	case nonce:
	case event == authorizationLog || event == cancelLog:
		if len(l.Topics) != 3 {
			return errors.New("an authorization that is none")
		}
		use := payment.Settlement{TxHash: s.rest.TxHash, Block: s.rest.Block, Time: s.rest.Time, Canceled: event == cancelLog}
		slot.Kind, slot.Token, slot.NonceID = payment.SlotEVM, s.rest.Token, l.Topics[2]
		use.Slot = slot
		s.authorizations = append(s.authorizations, use)
	case event == transferLog:
		return s.transfer(l)
	}
	return nil
}

// transfer adds what was moved: by an authorization where it is the first after
// its use, and else to the rest.
func (s *spending) transfer(l log) error {
	if len(l.Topics) != 3 || len(l.Data) != 32 {
		return errors.New("a transfer that is none")
	}
	to, ok := l.Topics[2].address()
	if !ok {
		return errors.New("a transfer to no account")
	}
	moved := payment.Recipient{Address: to, Amount: l.amount()}
	if k := len(s.authorizations) - 1; k >= 0 {
		if use := &s.authorizations[k]; !use.Canceled && len(use.Moved) == 0 {
			use.Moved = append(use.Moved, moved)
			return nil
		}
	}
	s.left = true
	if to != feeContract {
		s.rest.Moved = append(s.rest.Moved, moved)
		return nil
	}
	if s.rest.Fee, ok = s.rest.Fee.Add(moved.Amount); !ok {
		return errors.New("a fee that cannot be counted")
	}
	return nil
}

// amount is the log's data as a number; it has to be 32 bytes.
func (l log) amount() payment.Units {
	if len(l.Data) != 32 {
		return payment.Units{}
	}
	return payment.UnitsFromBytes([32]byte(l.Data))
}

// unexplained reports whether no log tells which nonce let the money go.
func (s *spending) unexplained() bool { return len(s.lanes) == 0 && s.left }

// idle reports whether a nonce was taken and nothing moved: the transaction may
// have failed.
func (s *spending) idle() bool {
	return (len(s.lanes) > 0 || s.left) && len(s.rest.Moved) == 0
}

// settlements are what s shows, with slots for what left the account. Where it
// left by no nonce of the account, what moved nothing is no use: anybody may
// have a token tell of that.
func (s *spending) settlements(slots []payment.Slot) []payment.Settlement {
	out := s.authorizations
	for i, slot := range slots {
		use := s.rest
		if use.Slot = slot; i > 0 {
			use.Moved, use.Fee = nil, payment.Units{}
		}
		if slot.IsZero() {
			use.Moved = slices.DeleteFunc(slices.Clone(use.Moved), func(m payment.Recipient) bool { return m.Amount.IsZero() })
			if len(use.Moved) == 0 && use.Fee.IsZero() {
				continue
			}
		}
		out = append(out, use)
	}
	return out
}

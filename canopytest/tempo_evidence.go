package canopytest

import (
	"slices"

	"github.com/canopy-go/canopy/payment"
)

// laneAt is the next nonce of a lane after block number.
func (c *Chain) laneAt(s payment.Slot, number uint64) uint64 {
	blocks := c.tempo.lanes[lane{s.From, s.NonceID}]
	n, _ := slices.BinarySearch(blocks, number+1)
	return uint64(n)
}

// tempoSettlements are what took token from account on a Tempo network, by
// transaction, and each use of a lane of the account whatever it took.
func (c *Chain) tempoSettlements(token, account payment.Address, first, last uint64, lie Lie) []payment.Settlement {
	if !c.tempo.on || lie == LieNoLogs {
		return nil
	}
	moved := map[string][]Transfer{} // by hash
	for _, t := range c.transfers {
		if t.From == account && t.Token == token && t.Block.Number >= first && t.Block.Number <= last {
			moved[t.TxHash] = append(moved[t.TxHash], t)
		}
	}
	uses := map[string]*TempoUse{}
	var hashes []string // in order
	for i, u := range c.tempo.uses {
		if u.Block.Number >= first && u.Block.Number <= last && (u.Tx.Sender == account || len(moved[u.TxHash]) > 0) {
			uses[u.TxHash] = &c.tempo.uses[i]
			hashes = append(hashes, u.TxHash)
		}
	}
	for _, t := range c.transfers {
		if len(moved[t.TxHash]) > 0 && uses[t.TxHash] == nil && !slices.Contains(hashes, t.TxHash) {
			hashes = append(hashes, t.TxHash) // an ordinary transfer
		}
	}
	var out []payment.Settlement
	for _, hash := range hashes {
		u := uses[hash]
		s := payment.Settlement{TxHash: hash, Token: token, Slot: c.tempoSlot(token, account, u)}
		if u != nil {
			s.Block, s.Time, s.Failed = u.Block.Number, u.Block.Time, u.Failed && u.Tx.Sender == account
		}
		for _, t := range moved[hash] {
			s.Block, s.Time = t.Block.Number, t.Block.Time
			if t.Fee {
				s.Fee = t.Value
				continue
			}
			s.Moved = append(s.Moved, payment.Recipient{Address: t.To, Amount: t.Value})
		}
		if len(moved[hash]) == 0 && (s.Slot.Kind != payment.SlotLane || s.Slot.NonceID == [32]byte{}) {
			continue // neither this token nor a lane
		}
		if s.Slot.IsZero() {
			s.Moved = slices.DeleteFunc(s.Moved, func(m payment.Recipient) bool { return m.Amount.IsZero() })
			if len(s.Moved) == 0 && s.Fee.IsZero() {
				continue // anybody may have a token tell of nothing
			}
		}
		switch lie {
		case LieCancel:
			s.Canceled, s.Moved, s.Failed = true, nil, false
		case LiePayee:
			for i := range s.Moved {
				s.Moved[i].Address = Address("somebody else")
			}
		}
		out = append(out, s)
	}
	return out
}

// tempoSlot is the slot of account that a transaction used. What somebody else
// made, such as a spender with an allowance, used none. That of an expiring nonce
// is told by its memo, also where the rules are of before T1.
func (c *Chain) tempoSlot(token, account payment.Address, u *TempoUse) payment.Slot {
	s := payment.Slot{Chain: c.id, From: account}
	switch {
	case u == nil || u.Tx.Sender != account:
	case u.Tx.Expiring():
		s.Kind, s.NonceID = payment.SlotExpiring, u.Tx.memo(token)
	default:
		s.Kind, s.NonceID, s.Nonce = payment.SlotLane, u.Tx.NonceKey, u.Tx.Nonce
	}
	return s
}

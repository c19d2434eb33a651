package canopytest

import (
	"encoding/hex"
	"errors"
	"math/big"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// settlement is what became of a payment at the facilitator.
type settlement struct {
	code      string // empty where it settled
	tx        string
	payer     payment.Address
	network   string
	networkV1 string
}

func (x *Exchange) settlement(a Authorization) *settlement {
	id := x.chosen.chain.id
	return &settlement{payer: a.From, network: string(id), networkV1: id.Name()}
}

// deadline is when the seller stops waiting for a transaction.
func (x *Exchange) deadline() time.Time { return x.chain().clock.Now().Add(x.seller.timeout) }

// settleV2 settles as the facilitator of version 2: it checks everything but
// the simulation again, joins a transaction that it broadcast before for the
// same signature, and after two waits answers settlement_pending.
func (x *Exchange) settleV2(a Authorization) *settlement {
	out := x.settlement(a)
	key := hex.EncodeToString(a.Signature)
	hash := x.seller.pendingTx(key)
	deadline := x.deadline()
	if hash == "" {
		if out.code = x.verifyV2(a, false); out.code != "" {
			return out
		}
		if out.code = x.submittable(a); out.code != "" {
			return out
		}
		hash = x.chosen.chain.Enqueue(a)
	}
	tx, err := x.chosen.chain.waitUntil(x.ctx, hash, deadline)
	if errors.Is(err, ErrTimeout) {
		tx, err = x.chosen.chain.waitUntil(x.ctx, hash, deadline.Add(x.seller.timeout))
	}
	out.tx = hash
	switch {
	case err == nil:
		x.note(func(r *Request) { r.TxHash = tx.Hash })
	case errors.Is(err, ErrReverted):
		out.code = "invalid_exact_evm_transaction_failed"
	default:
		x.seller.setPending(key, hash)
		out.code = "settlement_pending"
		return out
	}
	x.seller.setPending(key, "")
	return out
}

// submittable is what the node says to a transaction before taking it, in the
// facilitator's words.
func (x *Exchange) submittable(a Authorization) string {
	switch err := x.chosen.chain.Simulate(a); {
	case err == nil:
		return ""
	case errors.Is(err, ErrExpired):
		return "invalid_exact_evm_payload_authorization_valid_before"
	case errors.Is(err, ErrNotYetValid):
		return "invalid_exact_evm_payload_authorization_valid_after"
	case errors.Is(err, ErrNonceUsed):
		return "invalid_exact_evm_nonce_already_used"
	case errors.Is(err, ErrBalance):
		return "invalid_exact_evm_insufficient_balance"
	case errors.Is(err, ErrSignature):
		return "invalid_exact_evm_signature"
	}
	return "invalid_exact_evm_transaction_failed"
}

// settleV1 settles as the facilitator of version 1, which throws where the node
// does and gives up a wait without a word.
func (x *Exchange) settleV1(a Authorization) *settlement {
	out := x.settlement(a)
	if out.code = x.verifyV1(a); out.code != "" {
		return out
	}
	if len(a.Signature) == 65 && a.Signature[64] < 2 {
		a.Signature = append([]byte(nil), a.Signature...)
		a.Signature[64] += 27 // the facilitator of version 1 does, that of version 2 does not
	}
	if x.chosen.chain.Simulate(a) != nil {
		out.code = facilitatorThrew
		return out
	}
	deadline := x.deadline()
	tx, err := x.chosen.chain.waitUntil(x.ctx, x.chosen.chain.Enqueue(a), deadline)
	out.tx = tx.Hash
	switch {
	case err == nil:
		x.note(func(r *Request) { r.TxHash = tx.Hash })
	case errors.Is(err, ErrReverted):
		out.code = "invalid_transaction_state"
	default:
		out.code = facilitatorThrew
	}
	return out
}

func (s *Seller) pendingTx(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending[key]
}

func (s *Seller) setPending(key, hash string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if hash == "" {
		delete(s.pending, key)
		return
	}
	s.pending[key] = hash
}

// balance is Balance for sellers, which are not stopped by SetDown.
func (c *Chain) balance(token, account payment.Address) payment.Units {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	return c.balances[holding{token, account}]
}

func seconds(n int64) payment.Units {
	u, _ := payment.UnitsFromBig(big.NewInt(max(n, 0)))
	return u
}

package main

import (
	"fmt"
	"math/big"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/payment"
)

// spend is what a payment hands over, as a seller reads it: an authorization of
// EIP-3009, a transaction of Tempo, the hash of one that was broadcast before,
// or a proof. It is laid out by canopytest and here, never by the rails.
type spend struct {
	chain *chain
	auth  *canopytest.Authorization
	tx    *canopytest.TempoTx
	hash  string // of a transaction that is not in it
	proof bool

	sig       string // of the payer
	challenge string // that it answers; empty where the protocol has none
	realm     string
}

// payment is the payment that s is of, or nil.
func (o *oracle) payment(s *spend) *record {
	if s.hash != "" {
		return o.byTx[s.hash]
	}
	return o.bySig[s.sig]
}

// slot is the slot that s uses up on its chain.
func (s *spend) slot() payment.Slot {
	out := payment.Slot{Chain: s.chain.asset.Chain, From: payer}
	switch {
	case s.auth != nil:
		out.Kind, out.Token, out.NonceID = payment.SlotEVM, s.auth.Token, s.auth.Nonce
	case s.tx != nil && s.tx.Expiring():
		out.Kind = payment.SlotExpiring
		if moves, err := s.tx.Transfers(); err == nil && moves[0].HasMemo {
			out.NonceID = moves[0].Memo
		}
	case s.tx != nil:
		out.Kind, out.NonceID, out.Nonce = payment.SlotLane, s.tx.NonceKey, s.tx.Nonce
	}
	return out
}

// expires is when s can move nothing more.
func (s *spend) expires() time.Time {
	switch {
	case s.auth != nil:
		return s.auth.Expires()
	case s.tx != nil:
		return time.Unix(int64(s.tx.ValidBefore), 0)
	}
	return time.Time{}
}

// moves are the transfers that s makes.
func (s *spend) moves() []payment.Recipient {
	if s.auth != nil {
		return []payment.Recipient{{Address: s.auth.To, Amount: s.auth.Value}}
	}
	var out []payment.Recipient
	moves, _ := s.tx.Transfers() // chains take no others
	for _, m := range moves {
		out = append(out, payment.Recipient{Address: m.To, Amount: m.Amount})
	}
	return out
}

// differs is in what s does not carry out r, empty where it does.
func (s *spend) differs(r *record) string {
	if s.challenge != r.challenge && !r.challenged[s.challenge] {
		return "the challenge " + s.challenge + ", which was not committed"
	}
	switch {
	case s.auth != nil:
		if r.slot.Kind != payment.SlotEVM || s.auth.Digest(r.terms.Asset) != r.authorization().Digest(r.terms.Asset) {
			return "the authorization"
		}
	case s.tx != nil:
		return s.txDiffers(r)
	case s.hash != "":
		if s.hash != r.txHash {
			return "a transaction that was not committed"
		}
	case !s.proof || r.slot.Kind != payment.SlotProof:
		return "the kind"
	}
	return ""
}

func (s *spend) txDiffers(r *record) string {
	tx, t := s.tx, &r.terms
	number, _ := t.Asset.Chain.Number()
	moves, err := tx.Transfers()
	fee, fits := feeOf(tx.Gas, tx.MaxFee)
	bound, _ := t.Asset.Units(t.FeeBound)
	sponsored := r.slot.Kind == payment.SlotExpiring
	switch {
	case err != nil || len(moves) != len(t.Recipients):
		return "the transfers"
	case tx.ChainID != number || tx.Sender != payer:
		return "the chain or the sender"
	case tx.ValidBefore == 0 || time.Unix(int64(tx.ValidBefore), 0).After(r.validBefore):
		return fmt.Sprintf("its end, %d, after that of the hold, %d", tx.ValidBefore, r.validBefore.Unix())
	case tx.ValidAfter != 0:
		return "its beginning"
	case s.slot() != r.slot || sponsored && tx.Nonce != 0:
		return "the slot"
	case tx.Sponsored != sponsored:
		return "who pays the fee"
	case !sponsored && (!fits || fee.Cmp(bound) > 0 || tx.FeeToken != t.Asset.Address):
		return "a fee of up to " + fee.String()
	}
	for i, m := range moves {
		if m.Token != t.Asset.Address || m.To != t.Recipients[i].Address || m.Amount != t.Recipients[i].Amount {
			return "the transfers"
		}
	}
	if want, ok := s.memo(r); ok && (!moves[0].HasMemo || moves[0].Memo != want) {
		return "the memo"
	}
	return ""
}

// memo is the memo that the first transfer of s has to have, where it is bound.
func (s *spend) memo(r *record) (memo [32]byte, ok bool) {
	switch {
	case !r.terms.IsTransfer() && s.challenge != "":
		tag, realm, id := keccak.Sum256([]byte("mpp")), keccak.Sum256([]byte(s.realm)), keccak.Sum256([]byte(s.challenge))
		copy(memo[:], append(tag[:4:4], 1))
		copy(memo[5:15], realm[:])
		copy(memo[25:], id[:])
		return memo, true
	case r.terms.IsTransfer() && r.memo != "":
		copy(memo[:], r.memo)
		return memo, true
	}
	return memo, false
}

// authorization is what r should have signed on an EVM chain.
func (r *record) authorization() canopytest.Authorization {
	before, _ := payment.UnitsFromBig(big.NewInt(r.validBefore.Unix()))
	return canopytest.Authorization{
		Token: r.terms.Asset.Address, From: payer, To: r.terms.Payee(), Value: r.terms.Amount,
		ValidBefore: before, Nonce: r.slot.NonceID,
	}
}

// proofDigest is what a proof of the payer's account signs.
func proofDigest(chain payment.ChainID, id, realm string) [32]byte {
	text := func(s string) []byte { h := keccak.Sum256([]byte(s)); return h[:] }
	n, _ := chain.Number()
	number := payment.UnitsOf(n).Bytes()
	account := append(make([]byte, 12), payer[:]...)
	domain := keccak.Sum256(text("EIP712Domain(string name,string version,uint256 chainId)"), text("MPP"), text("3"), number[:])
	message := keccak.Sum256(text("Proof(address account,string challengeId,string realm)"), account, text(id), text(realm))
	return keccak.Sum256([]byte{0x19, 0x01}, domain[:], message[:])
}

// feeOf is gas times price in units of a dollar with six decimals, rounded up.
func feeOf(gas uint64, price payment.Units) (payment.Units, bool) {
	n := new(big.Int).Mul(new(big.Int).SetUint64(gas), price.Big())
	n.Add(n, big.NewInt(999_999_999_999))
	return payment.UnitsFromBig(n.Quo(n, big.NewInt(1_000_000_000_000)))
}

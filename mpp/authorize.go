package mpp

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/canopy-go/canopy/internal/eip3009"
	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/internal/signing"
	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

// ErrGrant is wrapped where a grant is not one that this rail can carry out.
// Nothing was signed.
var ErrGrant = errors.New("mpp: the grant does not fit")

// Authorize signs what g stands for, with one call of s.Sign: a Tempo
// transaction, an EIP-3009 authorization, or a proof. The same grant and a
// deterministic signer give the same bytes. Nothing is signed once ctx has
// ended, and nothing is returned if it ended meanwhile.
//
// The signature of a signer that is not of this module is normalised, and must
// recover to g.Payer.
func (r *Rail) Authorize(ctx context.Context, g payment.Grant, s payment.Signer) (payment.Authorization, error) {
	if err := ctx.Err(); err != nil {
		return payment.Authorization{}, fmt.Errorf("mpp: not signed: %w", err)
	}
	p, t, err := r.fit(&g)
	if err != nil {
		return payment.Authorization{}, err
	}
	var tx tempo.Transaction
	if p.transacts() {
		tx = p.transaction(&g, t)
	}
	sig, err := signing.Sign(ctx, &g, s, p.digest(&g, t, &tx))
	switch {
	case errors.Is(err, signing.ErrOther):
		return payment.Authorization{}, fmt.Errorf("%w: %w", ErrGrant, err)
	case err != nil:
		return payment.Authorization{}, fmt.Errorf("mpp: %w", err)
	}
	return p.authorization(&g, &tx, sig)
}

// digest is what is signed.
func (p *plan) digest(g *payment.Grant, t *token, tx *tempo.Transaction) [32]byte {
	switch p.mode {
	case modeProof:
		return tempo.ProofDigest(t.chain, g.Payer, g.ChallengeID, g.Realm)
	case modeEVM:
		return eip3009.Digest(t.separator, eip3009.Authorization{
			From: g.Payer, To: g.Terms.Recipients[0].Address, Value: g.Terms.Amount.Bytes(),
			ValidBefore: uint64(g.ValidBefore.Unix()), Nonce: g.Slot.NonceID,
		})
	}
	return tx.SigningHash()
}

// authorization is what carries the signature: a header, and the transaction
// itself where it is broadcast from here.
func (p *plan) authorization(g *payment.Grant, tx *tempo.Transaction, sig [65]byte) (payment.Authorization, error) {
	a := payment.Authorization{Header: p.field, Slot: g.Slot, ValidBefore: g.ValidBefore}
	from := source{g.Terms.Asset.Chain, g.Payer}
	switch p.mode {
	case modeProof:
		a.Value = writeCredential(p.challenge, proof(sig), from)
		return a, nil
	case modeEVM:
		a.Value = writeCredential(p.challenge, &authorization{
			from: g.Payer, to: g.Terms.Recipients[0].Address, value: g.Terms.Amount,
			validBefore: uint64(g.ValidBefore.Unix()), nonce: g.Slot.NonceID, signature: sig,
		}, from)
		return a, nil
	}
	tx.Signature = sig[:]
	raw := tx.Encode()
	if p.sponsored() {
		a.Value = writeCredential(p.challenge, transaction(raw), from)
		return a, nil
	}
	sum := keccak.Sum256(raw) // 27 or 28 stands at its end, as the chain writes it
	a.TxHash = "0x" + hex.EncodeToString(sum[:])
	switch p.mode {
	case modePull:
		a.Value = writeCredential(p.challenge, transaction(raw), from)
	case modePush:
		a.Raw, a.Value = raw, writeCredential(p.challenge, txHash(sum), from)
	default:
		a.Raw = raw
	}
	return a, nil
}

// transaction is the plan's, unsigned.
func (p *plan) transaction(g *payment.Grant, t *token) tempo.Transaction {
	tx := tempo.Transaction{
		ChainID: t.chain, MaxPriorityFeePerGas: p.limits.tip, MaxFeePerGas: p.limits.price, Gas: p.limits.gas,
		Calls: p.calls(g), ValidBefore: uint64(g.ValidBefore.Unix()),
	}
	switch p.mode {
	case modeSponsored:
		tx.NonceKey, tx.FeePayer = tempo.ExpiringKey, tempo.FeePayer{Kind: tempo.FeePayerSender, Sender: g.Payer}
	case modePlaceholder:
		tx.NonceKey, tx.FeePayer = tempo.ExpiringKey, tempo.FeePayer{Kind: tempo.FeePayerPlaceholder}
	default:
		tx.NonceKey, tx.Nonce, tx.FeeToken = g.Slot.NonceID, g.Slot.Nonce, t.asset.Address
	}
	return tx
}

// paymentMemo is the memo of a transfer for which the caller states none.
func paymentMemo(id payment.ID) [32]byte {
	return keccak.Sum256([]byte("canopy.payment." + string(id)))
}

// fit returns the plan and the token of g, or says what in g this rail cannot
// carry out.
func (r *Rail) fit(g *payment.Grant) (plan, *token, error) {
	p, err := readPlan(g.Echo)
	if err != nil {
		return p, nil, err
	}
	a, slot := &g.Terms.Asset, &g.Slot
	t := r.token(a.Chain, a.Address)
	wrong := ""
	switch {
	case g.Terms.Rail != Name || g.Version != 1:
		wrong = "it is not of rail mpp"
	case t == nil:
		wrong = fmt.Sprintf("%s on %s is not a token to pay with", a.Address, a.Chain)
	case t.asset.Decimals != a.Decimals:
		wrong = "the token's decimals are others"
	case t.tempo != (p.mode != modeEVM) || g.Terms.Scheme != p.scheme():
		wrong = "the scheme is another"
	case g.Payer.IsZero():
		wrong = "it has no payer"
	case g.Terms.Amount.IsZero() != (p.mode == modeProof):
		wrong = "only a proof is of nothing"
	case slot.Kind != p.slot():
		wrong = "the slot is of another kind"
	case slot.Kind != payment.SlotProof && (slot.Chain != a.Chain || slot.From != g.Payer || slot.NonceID == [32]byte{}):
		wrong = "the slot is another's, or has no nonce"
	case slot.Kind == payment.SlotEVM && slot.Token != a.Address:
		wrong = "the slot is of another token"
	case slot.Kind == payment.SlotLane && slot.NonceID == tempo.ExpiringKey:
		wrong = "the lane is none"
	case slot.Kind == payment.SlotProof && slot.Payment != g.PaymentID:
		wrong = "the slot is another payment's"
	case g.ValidBefore.Unix() <= 0 || g.ValidBefore.Nanosecond() != 0:
		wrong = "validBefore is not a whole second"
	case (p.mode == modeTransfer) != g.Terms.IsTransfer() || (p.mode == modeTransfer) != (p.field == "" && len(p.challenge) == 0):
		wrong = "the echo is not of a payment like this"
	case (p.mode == modeProof || p.mode == modeEVM) && (len(g.Terms.Recipients) != 1 || len(p.memos) > 0):
		wrong = "it has not one recipient"
	case p.transacts() && len(p.memos) != len(g.Terms.Recipients):
		wrong = "the recipients are not those of the echo"
	case p.mode == modeEVM && slot.NonceID != boundNonce(g.ChallengeID, g.Realm):
		wrong = "the nonce is not the one that the challenge binds"
	case p.sponsored() && (p.memos[0].kind != memoFixed || slot.NonceID != p.memos[0].fixed):
		wrong = "the memo is another"
	case p.mode == modeTransfer && !p.states(g.Terms.Target):
		wrong = "the memo is another than the terms state"
	default:
		return p, t, p.fitTerms(g, t)
	}
	return p, nil, fmt.Errorf("%w: %s", ErrGrant, wrong)
}

// states reports whether the memo of a transfer is the one that its caller
// stated.
func (p *plan) states(said string) bool {
	m, err := memoOf(said)
	return err == nil && p.memos[0] == m
}

// fitTerms holds the fee bound to the gas limits, and the terms to their own
// rules.
func (p *plan) fitTerms(g *payment.Grant, t *token) error {
	bound := payment.USD(0)
	if p.transacts() && !p.sponsored() {
		var ok bool
		if bound, ok = p.limits.bound(t.asset); !ok {
			return fmt.Errorf("%w: the fee cannot be counted", ErrGrant)
		}
	}
	if bound != g.Terms.FeeBound {
		return fmt.Errorf("%w: the fee bound is another", ErrGrant)
	}
	if err := g.Terms.Check(g.Payer); err != nil {
		return fmt.Errorf("%w: %w", ErrGrant, err)
	}
	return nil
}

func (p *plan) scheme() string {
	switch p.mode {
	case modeEVM:
		return SchemeEVM
	case modeProof:
		return SchemeProof
	case modeTransfer:
		return SchemeTransfer
	}
	return SchemeTempo
}

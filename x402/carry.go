package x402

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/canopy-go/canopy/internal/eip1559"
	"github.com/canopy-go/canopy/internal/eip3009"
	"github.com/canopy-go/canopy/internal/signing"
	"github.com/canopy-go/canopy/payment"
)

// carryGas is the gas limit of a transaction that carries an authorization.
// Tokens of FiatToken's kind use 55,000 to 110,000; what is not used costs
// nothing.
const carryGas = 200_000

// transferSelector is of transferWithAuthorization(address,address,uint256,
// uint256,uint256,bytes32,uint8,bytes32,bytes32), which every version of
// FiatToken has.
var transferSelector = [4]byte{0xe3, 0xee, 0x16, 0x0e}

// carryInput is how long a call is.
const carryInput = 4 + 9*32

// CarryNeeds is the gas limit that a transaction which carries an authorization
// of this rail needs, and how many bytes it has at most.
func (r *Rail) CarryNeeds() (gas uint64, size int) { return carryGas, 512 }

// Carry builds the transaction that hands g's authorization to its token, and
// signs it with one call of s.Sign under g's own permit: of type 2, without a
// value, with the nonce, the limit and the fees of g. It returns the bytes to
// broadcast and their hash. The same grant and a deterministic signer give the
// same bytes. ErrGrant and ErrMismatch mean that nothing was signed.
func (r *Rail) Carry(ctx context.Context, g payment.CarryGrant, s payment.Signer) (raw []byte, txHash string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", fmt.Errorf("x402: not signed: %w", err)
	}
	t, err := r.carrying(g)
	if err != nil {
		return nil, "", err
	}
	sig, err := signing.SignCarry(ctx, &g, s, t.Digest())
	switch {
	case errors.Is(err, signing.ErrOther):
		return nil, "", fmt.Errorf("%w: %w", ErrGrant, err)
	case err != nil:
		return nil, "", fmt.Errorf("x402: %w", err)
	}
	raw = t.Encode(sig)
	return raw, hashOf(raw), nil
}

// ReadCarry reads a transaction again, as nodes will, and is nil where it is the
// one that g stands for: on the chain and from the payer, whose signature it
// must bear, to the pinned token, with exactly g's authorization, which the payer
// must have signed too, and with g's nonce, limit and fees.
func (r *Rail) ReadCarry(raw []byte, g payment.CarryGrant) error {
	want, err := r.carrying(g)
	if err != nil {
		return err
	}
	got, sender, err := eip1559.Decode(raw)
	switch {
	case err != nil:
		return mismatch("the transaction: %v", err)
	case payment.Address(sender) != g.Grant.Payer:
		return fmt.Errorf("x402: the transaction: %w: it is of %s, not of %s", payment.ErrForeignSignature, payment.Address(sender), g.Grant.Payer)
	case got.ChainID != want.ChainID || got.To != want.To:
		return mismatch("the transaction is for another chain or contract")
	case got.Nonce != want.Nonce || got.GasLimit != want.GasLimit || got.MaxFee != want.MaxFee || got.MaxTip != want.MaxTip:
		return mismatch("the transaction's nonce, gas or fees are others")
	case !bytes.Equal(got.Input, want.Input):
		return mismatch("the transaction carries another authorization")
	}
	return r.readInput(got.Input, &g.Grant)
}

// carrying is the transaction of g, not signed.
func (r *Rail) carrying(g payment.CarryGrant) (*eip1559.Transaction, error) {
	t, err := r.fit(&g.Grant)
	if err != nil {
		return nil, err
	}
	number, ok := t.asset.Chain.Number()
	c := g.Carry
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: %s is not an EVM chain", ErrGrant, t.asset.Chain)
	case c.GasLimit == 0 || c.GasLimit > carryGas || c.MaxFee == 0 || c.MaxTip > c.MaxFee:
		return nil, fmt.Errorf("%w: the gas or the fees are none of a transaction", ErrGrant)
	}
	terms, err := r.Decode(g.Authorization, g.Grant)
	if err != nil {
		return nil, err
	}
	if terms.Hash() != g.Grant.Terms.Hash() {
		return nil, mismatch("the authorization is of other terms")
	}
	doc, err := r.readSigned(g.Authorization.Value, g.Grant)
	if err != nil {
		return nil, err
	}
	sig, err := r.check(doc, g.Grant, terms)
	if err != nil {
		return nil, err
	}
	return &eip1559.Transaction{
		ChainID: number, Nonce: c.Nonce, MaxTip: c.MaxTip, MaxFee: c.MaxFee, GasLimit: c.GasLimit,
		To: t.asset.Address, Input: appendInput(make([]byte, 0, carryInput), message(&g.Grant), sig),
	}, nil
}

// appendInput appends the call that hands a and its signature to a token.
func appendInput(b []byte, a eip3009.Authorization, sig [65]byte) []byte {
	var pad [32]byte
	word := func(v []byte) {
		b = append(b, pad[:32-len(v)]...)
		b = append(b, v...)
	}
	b = append(b, transferSelector[:]...)
	word(a.From[:])
	word(a.To[:])
	word(a.Value[:])
	word(binary.BigEndian.AppendUint64(nil, a.ValidAfter))
	word(binary.BigEndian.AppendUint64(nil, a.ValidBefore))
	word(a.Nonce[:])
	word(sig[64:])
	word(sig[:32])
	word(sig[32:64])
	return b
}

// readInput reads a call word by word, and holds it against g: who pays whom how
// much until when, once, and that the payer signed that.
func (r *Rail) readInput(b []byte, g *payment.Grant) error {
	if len(b) != carryInput || [4]byte(b) != transferSelector {
		return mismatch("the call is not transferWithAuthorization")
	}
	var w [9][32]byte
	for i := range w {
		copy(w[i][:], b[4+32*i:])
	}
	units := func(n uint64) [32]byte { return payment.UnitsOf(n).Bytes() }
	address := func(a payment.Address) (out [32]byte) { copy(out[12:], a[:]); return out }
	var sig [65]byte
	copy(sig[:32], w[7][:])
	copy(sig[32:64], w[8][:])
	sig[64] = w[6][31]
	switch {
	case w[0] != address(g.Payer) || w[1] != address(g.Terms.Recipients[0].Address):
		return mismatch("the call is from or to another")
	case w[2] != g.Terms.Amount.Bytes():
		return mismatch("the call is of another amount")
	case w[3] != [32]byte{} || w[4] != units(uint64(g.ValidBefore.Unix())):
		return mismatch("the call is valid at other times")
	case w[5] != g.Slot.NonceID:
		return mismatch("the call's nonce is another")
	case w[6] != units(uint64(sig[64])):
		return mismatch("the call's v is none")
	}
	t := r.token(g.Terms.Asset.Chain, g.Terms.Asset.Address)
	if t == nil {
		return mismatch("the token is none to pay with")
	}
	if err := signing.Check(g.Payer, eip3009.Digest(t.separator, message(g)), sig); err != nil {
		return fmt.Errorf("x402: the authorization: %w", err)
	}
	return nil
}

func hashOf(raw []byte) string {
	h := eip1559.Hash(raw)
	return "0x" + hex.EncodeToString(h[:])
}

package x402

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/canopy-go/canopy/internal/eip3009"
	"github.com/canopy-go/canopy/internal/signing"
	"github.com/canopy-go/canopy/payment"
)

// The headers of the protocol. A request carries its payment in one of
// version 2 or of version 1.
const (
	headerRequired   = "Payment-Required"
	headerPayment    = "PAYMENT-SIGNATURE"
	headerPaymentV1  = "X-PAYMENT"
	headerResponse   = "Payment-Response"
	headerResponseV1 = "X-Payment-Response"
)

// ErrGrant is wrapped where a grant is not one that this rail can carry out.
// Nothing was signed.
var ErrGrant = errors.New("x402: the grant does not fit")

// Authorize signs the EIP-3009 authorization that g stands for, from validAfter
// 0 to g.ValidBefore, with one call of s.Sign. The same grant and a
// deterministic signer give the same bytes. Nothing is signed once ctx has
// ended, and nothing is returned if it ended meanwhile.
//
// The signature of a signer that is not of this module is normalised, and must
// recover to g.Payer.
func (r *Rail) Authorize(ctx context.Context, g payment.Grant, s payment.Signer) (payment.Authorization, error) {
	if err := ctx.Err(); err != nil {
		return payment.Authorization{}, fmt.Errorf("x402: not signed: %w", err)
	}
	t, err := r.fit(&g)
	if err != nil {
		return payment.Authorization{}, err
	}
	sig, err := signing.Sign(ctx, &g, s, eip3009.Digest(t.separator, message(&g)))
	switch {
	case errors.Is(err, signing.ErrOther):
		return payment.Authorization{}, fmt.Errorf("%w: %w", ErrGrant, err)
	case err != nil:
		return payment.Authorization{}, fmt.Errorf("x402: %w", err)
	}
	return r.encode(&g, sig), nil
}

// fit returns the token that g pays with, or says what in g is not a payment of
// the exact scheme: one recipient, the slot of the very token and payer, whole
// seconds of validity.
func (r *Rail) fit(g *payment.Grant) (*token, error) {
	a, slot := &g.Terms.Asset, &g.Slot
	t := r.token(a.Chain, a.Address)
	wrong := ""
	switch {
	case g.Terms.Rail != Name || g.Terms.Scheme != exact:
		wrong = "it is not of rail x402 and scheme exact"
	case !isEcho(g.Echo, g.Version):
		wrong = "the echo is not of this rail and version"
	case t == nil:
		wrong = fmt.Sprintf("%s on %s is not a token to pay with", a.Address, a.Chain)
	case t.asset.Decimals != a.Decimals:
		wrong = "the token's decimals are others"
	case len(g.Terms.Recipients) != 1 || g.Terms.Recipients[0].Amount != g.Terms.Amount:
		wrong = "it has not one recipient of the whole amount"
	case g.Terms.Amount.IsZero():
		wrong = "the amount is zero"
	case g.Payer.IsZero():
		wrong = "it has no payer"
	case slot.Kind != payment.SlotEVM || slot.Chain != a.Chain || slot.Token != a.Address || slot.From != g.Payer:
		wrong = "the slot is another's"
	case slot.NonceID == [32]byte{}:
		wrong = "the slot has no nonce"
	case g.ValidBefore.Unix() <= 0 || g.ValidBefore.Nanosecond() != 0:
		wrong = "validBefore is not a whole second"
	default:
		if err := g.Terms.Check(g.Payer); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrGrant, err)
		}
		return t, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrGrant, wrong)
}

// message is what g has signed.
func message(g *payment.Grant) eip3009.Authorization {
	return eip3009.Authorization{
		From: g.Payer, To: g.Terms.Recipients[0].Address, Value: g.Terms.Amount.Bytes(),
		ValidBefore: uint64(g.ValidBefore.Unix()), Nonce: g.Slot.NonceID,
	}
}

// scratch is room for a document and its base64 while they are built.
type scratch struct{ document, header []byte }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// encode writes the document, and the header that carries it.
func (r *Rail) encode(g *payment.Grant, sig [65]byte) payment.Authorization {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.document = append(appendEcho(r.appendPayload(s.document[:0], g, sig), g.Echo, g.PaymentID), '}')
	s.header = appendBase64(s.header[:0], s.document)
	return payment.Authorization{
		Header: header(g.Version), Value: string(s.header),
		Slot: g.Slot, ValidBefore: g.ValidBefore,
	}
}

func (r *Rail) appendPayload(b []byte, g *payment.Grant, sig [65]byte) []byte {
	b = append(b, `{"x402Version":`...)
	b = append(b, '0'+byte(g.Version))
	b = append(b, `,"payload":{"signature":"0x`...)
	b = hex.AppendEncode(b, sig[:])
	b = append(b, `","authorization":{"from":"`...)
	b = append(b, r.spell.of(g.Payer)...)
	b = append(b, `","to":"`...)
	b = append(b, r.spell.of(g.Terms.Recipients[0].Address)...)
	b = append(b, `","value":"`...)
	if n, ok := g.Terms.Amount.Uint64(); ok {
		b = strconv.AppendUint(b, n, 10)
	} else {
		b = append(b, g.Terms.Amount.String()...)
	}
	b = append(b, `","validAfter":"0","validBefore":"`...)
	b = strconv.AppendInt(b, g.ValidBefore.Unix(), 10)
	b = append(b, `","nonce":"0x`...)
	b = hex.AppendEncode(b, g.Slot.NonceID[:])
	return append(b, `"}},`...)
}

func header(version int) string {
	if version == 1 {
		return headerPaymentV1
	}
	return headerPayment
}

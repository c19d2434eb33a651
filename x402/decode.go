package x402

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/canopy-go/canopy/internal/eip3009"
	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/payment"
)

// ErrMismatch is wrapped where an authorization is not the one that its grant
// stands for.
var ErrMismatch = errors.New("x402: the authorization is not of this grant")

func mismatch(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMismatch}, args...)...)
}

// signed is a payment as the seller will read it.
type signed struct {
	version                     jsonscan.Value
	scheme, network             jsonscan.Value // version 1
	accepted                    jsonscan.Value // version 2
	signature                   jsonscan.Value
	from, to, value             jsonscan.Value
	validAfter, validBefore, id jsonscan.Value
}

// Decode reads the header of a again, as its seller will, and returns the
// terms that it carries out. Rail, scheme, chain, asset, recipient and amount
// are those of the bytes; version 1 does not write the asset, which is then the
// grant's, on the chain of the bytes. The rest is the grant's. Every field of
// the authorization must be the grant's, in the one spelling that Authorize
// uses, and, where g.Recover is set, the signature must recover to g.Payer over
// what was read.
func (r *Rail) Decode(a payment.Authorization, g payment.Grant) (payment.Terms, error) {
	if _, err := r.fit(&g); err != nil {
		return payment.Terms{}, err
	}
	if a.Header != header(g.Version) || a.Slot != g.Slot || !a.ValidBefore.Equal(g.ValidBefore) || len(a.Raw) > 0 || a.TxHash != "" {
		return payment.Terms{}, mismatch("the header, the slot or the validity is another's")
	}
	doc, err := readSigned(a.Value)
	if err != nil {
		return payment.Terms{}, err
	}
	t, terms, err := r.terms(doc, g)
	if err != nil {
		return payment.Terms{}, err
	}
	sig, err := r.check(doc, g, terms)
	if err != nil {
		return payment.Terms{}, err
	}
	if g.Recover {
		m := eip3009.Authorization{
			From: g.Payer, To: terms.Recipients[0].Address, Value: terms.Amount.Bytes(),
			ValidBefore: uint64(g.ValidBefore.Unix()), Nonce: g.Slot.NonceID,
		}
		if err := signedBy(g.Payer, eip3009.Digest(t.separator, m), sig); err != nil {
			return payment.Terms{}, err
		}
	}
	return terms, nil
}

func readSigned(value string) (d signed, err error) {
	b, err := base64.StdEncoding.Strict().DecodeString(value)
	if err != nil {
		return d, mismatch("the header is not base64")
	}
	v, err := jsonscan.Parse(b, jsonscan.Limits{Size: payment.MaxEcho + 1024})
	if err != nil {
		return d, mismatch("the document: %v", err)
	}
	var payload, authorization jsonscan.Value
	err = v.Object(func(key string, val jsonscan.Value) error {
		switch key {
		case "x402Version":
			d.version = val
		case "scheme":
			d.scheme = val
		case "network":
			d.network = val
		case "accepted":
			d.accepted = val
		case "payload":
			payload = val
		case "resource", "extensions":
		default:
			return mismatch("an unknown member %.20q", key)
		}
		return nil
	})
	if err == nil {
		err = payload.Object(func(key string, val jsonscan.Value) error {
			switch key {
			case "signature":
				d.signature = val
			case "authorization":
				authorization = val
			default:
				return mismatch("an unknown member %.20q of the payload", key)
			}
			return nil
		})
	}
	if err == nil {
		err = authorization.Object(d.member)
	}
	if err != nil && !errors.Is(err, ErrMismatch) {
		err = mismatch("the document: %v", err)
	}
	return d, err
}

func (d *signed) member(key string, val jsonscan.Value) error {
	switch key {
	case "from":
		d.from = val
	case "to":
		d.to = val
	case "value":
		d.value = val
	case "validAfter":
		d.validAfter = val
	case "validBefore":
		d.validBefore = val
	case "nonce":
		d.id = val
	default:
		return mismatch("an unknown member %.20q of the authorization", key)
	}
	return nil
}

// terms are g's with what d says in their place.
func (r *Rail) terms(d signed, g payment.Grant) (*token, payment.Terms, error) {
	terms := g.Terms
	to, err := payment.ParseAddress(text(d.to))
	if err != nil {
		return nil, terms, mismatch("to: %v", err)
	}
	amount, err := payment.ParseUnits(text(d.value))
	if err != nil {
		return nil, terms, mismatch("value: %v", err)
	}
	if d.version.Raw() != strconv.Itoa(g.Version) {
		return nil, terms, mismatch("version %.20s", d.version.Raw())
	}
	var t *token
	if g.Version == 1 {
		if chain, ok := chainOf(text(d.network), 1); ok {
			t = r.token(chain, g.Terms.Asset.Address)
		}
		terms.Scheme = text(d.scheme)
		if t == nil || terms.Scheme != exact || !absent(d.accepted) {
			return nil, terms, mismatch("the scheme, the network or the asset cannot be paid by")
		}
	} else {
		q, why := r.accepts(d.accepted)
		if why != (skip{}) || !absent(d.scheme) || !absent(d.network) {
			return nil, terms, mismatch("accepted: %s", why.code)
		}
		if q.amount != amount || q.payTo != to {
			return nil, terms, mismatch("accepted and the authorization differ")
		}
		t = q.token
		terms.Scheme = exact
	}
	terms.Rail, terms.Asset, terms.Amount = Name, t.asset, amount
	terms.Recipients = []payment.Recipient{{Address: to, Amount: amount}}
	return t, terms, nil
}

// check holds what is not in terms against the grant, and returns the
// signature, which must be in the accepted spelling.
func (r *Rail) check(d signed, g payment.Grant, terms payment.Terms) (sig [65]byte, err error) {
	nonce := make([]byte, 0, 66)
	nonce = hex.AppendEncode(append(nonce, "0x"...), g.Slot.NonceID[:])
	switch {
	case text(d.from) != r.spell.of(g.Payer):
		return sig, mismatch("from is not the payer")
	case text(d.to) != r.spell.of(terms.Recipients[0].Address):
		return sig, mismatch("to is not spelled with its checksum")
	case text(d.validAfter) != "0":
		return sig, mismatch("validAfter is not 0")
	case text(d.validBefore) != strconv.FormatInt(g.ValidBefore.Unix(), 10):
		return sig, mismatch("validBefore is another")
	case text(d.id) != string(nonce):
		return sig, mismatch("the nonce is another")
	case terms.Asset.Chain != g.Slot.Chain || terms.Asset.Address != g.Slot.Token:
		return sig, mismatch("the slot is of another token")
	}
	s := text(d.signature)
	if len(s) != 132 || s[:2] != "0x" {
		return sig, mismatch("the signature is not 0x and 130 digits")
	}
	var raw [65]byte
	if _, err := hex.Decode(raw[:], []byte(s[2:])); err != nil || hex.EncodeToString(raw[:]) != s[2:] {
		return sig, mismatch("the signature is not lower-case hex")
	}
	if sig, err = eip3009.NormalizeSignature(raw[:]); err != nil || sig != raw {
		return sig, mismatch("the signature is malleable")
	}
	return sig, nil
}

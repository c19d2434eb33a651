package x402

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/canopy-go/canopy/internal/eip3009"
	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/internal/signing"
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
	version                 int
	signature               string
	from, to, value         string
	validAfter, validBefore string
	id                      string
	repeats                 repeated
}

// repeated is what stands beside the payload: what the seller said, said again.
type repeated struct {
	scheme, network jsonscan.Value // version 1
	accepted        jsonscan.Value // version 2
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
	doc, err := r.readSigned(a.Value, g)
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
		if err := signing.Check(g.Payer, eip3009.Digest(t.separator, m), sig); err != nil {
			return payment.Terms{}, fmt.Errorf("x402: %w", err)
		}
	}
	return terms, nil
}

// readSigned reads a payment in the layout in which Authorize writes it: the
// same members in the same order, and nothing else.
func (r *Rail) readSigned(value string, g payment.Grant) (d signed, err error) {
	doc := make([]byte, base64.StdEncoding.DecodedLen(len(value)))
	n, err := base64.StdEncoding.Strict().Decode(doc, []byte(value))
	if err != nil || hasByte(value, '\r') || hasByte(value, '\n') { // which Decode would pass over
		return d, mismatch("the header is not base64")
	}
	c := cursor{rest: string(doc[:n])}
	c.literal(`{"x402Version":`)
	switch {
	case c.has("1"):
		d.version = 1
	case c.has("2"):
		d.version = 2
	default:
		return d, mismatch("the version is none")
	}
	d.signature = c.member(`,"payload":{"signature":"`)
	d.from = c.member(`,"authorization":{"from":"`)
	d.to = c.member(`,"to":"`)
	d.value = c.member(`,"value":"`)
	d.validAfter = c.member(`,"validAfter":"`)
	d.validBefore = c.member(`,"validBefore":"`)
	d.id = c.member(`,"nonce":"`)
	c.literal(`}},`)
	if c.wrong != "" {
		return d, mismatch("%.40q is not there", c.wrong)
	}
	d.repeats, err = r.repeated("{"+c.rest, g)
	return d, err
}

// cursor reads a document by its layout.
type cursor struct {
	rest  string
	wrong string // the first text that was not there
}

// has passes over s, and reports whether it was there.
func (c *cursor) has(s string) bool {
	if !strings.HasPrefix(c.rest, s) {
		return false
	}
	c.rest = c.rest[len(s):]
	return true
}

func (c *cursor) literal(s string) {
	if c.wrong == "" && !c.has(s) {
		c.wrong = s
	}
}

// member passes over s, and returns what stands up to the next quotation mark.
// Nothing that Authorize writes there has an escape in it.
func (c *cursor) member(s string) string {
	c.literal(s)
	i := strings.IndexByte(c.rest, '"')
	if c.wrong != "" || i < 0 {
		c.wrong = s
		return ""
	}
	v := c.rest[:i]
	c.rest = c.rest[i+1:]
	return v
}

// repeated reads the members beside the payload as an object of their own, or
// remembers them.
func (r *Rail) repeated(doc string, g payment.Grant) (p repeated, err error) {
	if p, ok := r.repeats.get(doc); ok {
		return p, nil
	}
	v, err := jsonscan.Parse([]byte(doc), jsonscan.Limits{Size: payment.MaxEcho + 1024})
	if err != nil {
		return p, mismatch("the document: %v", err)
	}
	err = v.Object(func(key string, val jsonscan.Value) error {
		switch key {
		case "scheme":
			p.scheme = val
		case "network":
			p.network = val
		case "accepted":
			p.accepted = val
		case "resource", "extensions":
		default:
			return mismatch("an unknown member %.20q", key)
		}
		return nil
	})
	if err != nil && !errors.Is(err, ErrMismatch) {
		err = mismatch("the document: %v", err)
	}
	if err == nil && bytes.IndexByte(g.Echo, idMark[0]) < 0 { // with an id it comes but once
		r.repeats.put(doc, p)
	}
	return p, err
}

// terms are g's with what d says in their place.
func (r *Rail) terms(d signed, g payment.Grant) (*token, payment.Terms, error) {
	terms := g.Terms
	to, err := payment.ParseAddressLoose(d.to)
	if err != nil || d.to != r.spell.of(to) {
		return nil, terms, mismatch("to %.50q is not an address with its checksum", d.to)
	}
	amount, err := payment.ParseUnits(d.value)
	if err != nil {
		return nil, terms, mismatch("value: %v", err)
	}
	if d.version != g.Version {
		return nil, terms, mismatch("version %d", d.version)
	}
	var t *token
	if g.Version == 1 {
		if chain, ok := chainOf(text(d.repeats.network), 1); ok {
			t = r.token(chain, g.Terms.Asset.Address)
		}
		terms.Scheme = text(d.repeats.scheme)
		if t == nil || terms.Scheme != exact || !absent(d.repeats.accepted) {
			return nil, terms, mismatch("the scheme, the network or the asset cannot be paid by")
		}
	} else {
		q, why := r.accepts(d.repeats.accepted)
		if why != (skip{}) || !absent(d.repeats.scheme) || !absent(d.repeats.network) {
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
	nonce := hex.AppendEncode(append(make([]byte, 0, 66), "0x"...), g.Slot.NonceID[:])
	switch {
	case d.from != r.spell.of(g.Payer):
		return sig, mismatch("from is not the payer")
	case d.to != r.spell.of(terms.Recipients[0].Address):
		return sig, mismatch("to is not spelled with its checksum")
	case d.validAfter != "0":
		return sig, mismatch("validAfter is not 0")
	case d.validBefore != strconv.FormatInt(g.ValidBefore.Unix(), 10):
		return sig, mismatch("validBefore is another")
	case d.id != string(nonce):
		return sig, mismatch("the nonce is another")
	case terms.Asset.Chain != g.Slot.Chain || terms.Asset.Address != g.Slot.Token:
		return sig, mismatch("the slot is of another token")
	}
	s := d.signature
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

package mpp

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/canopy-go/canopy/internal/eip3009"
	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/internal/signing"
	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

// ErrMismatch is wrapped where an authorization is not the one that its grant
// stands for.
var ErrMismatch = errors.New("mpp: the authorization is not of this grant")

func mismatch(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMismatch}, args...)...)
}

// Decode reads the signed bytes of a again, as the seller and the chain will, and
// returns the terms that they carry out: rail, scheme, chain, asset, recipients,
// amount and fee bound are those of the bytes, the rest is the grant's. The slot,
// the validity, the memos and the echoed challenge must be the grant's, and,
// where g.Recover is set, the signature must recover to g.Payer over what was
// read.
func (r *Rail) Decode(a payment.Authorization, g payment.Grant) (payment.Terms, error) {
	p, t, err := r.fit(&g)
	if err != nil {
		return payment.Terms{}, err
	}
	if a.Header != p.field || a.Slot != g.Slot || !a.ValidBefore.Equal(g.ValidBefore) {
		return payment.Terms{}, mismatch("the header, the slot or the validity is another's")
	}
	var sent payload
	if p.mode != modeTransfer {
		if sent, err = p.readBack(a.Value, &g); err != nil {
			return payment.Terms{}, err
		}
	} else if a.Value != "" {
		return payment.Terms{}, mismatch("a transfer has no credential")
	}
	switch p.mode {
	case modeProof:
		return p.decodeProof(&a, &g, t, sent)
	case modeEVM:
		return p.decodeEVM(&a, &g, t, sent)
	}
	raw := a.Raw
	switch sent := sent.(type) {
	case transaction:
		if raw != nil || p.mode == modePush {
			return payment.Terms{}, mismatch("the transaction is sent in two ways, or in the wrong one")
		}
		raw = sent
	case txHash:
		if p.mode != modePush || "0x"+hex.EncodeToString(sent[:]) != a.TxHash {
			return payment.Terms{}, mismatch("the hash is another")
		}
	case nil:
		if p.mode != modeTransfer {
			return payment.Terms{}, mismatch("no payload")
		}
	default:
		return payment.Terms{}, mismatch("the payload is of another kind")
	}
	return p.decodeTransaction(raw, &a, &g, t)
}

// readBack reads the payload of a credential by the layout in which Authorize
// writes it: around the payload stand the grant's own challenge, of its id and
// realm, and the payer's source, and nothing else.
func (p *plan) readBack(value string, g *payment.Grant) (payload, error) {
	encoded, ok := strings.CutPrefix(value, schemePayment+" ")
	if !ok || strings.ContainsAny(encoded, "\r\n") { // which DecodeString would pass over
		return nil, mismatch("the credential is of another scheme")
	}
	doc, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return nil, mismatch("the credential is not base64url")
	}
	var room [512]byte
	head := append(append(room[:0], `{"challenge":`...), p.challenge...)
	head = append(head, `,"payload":`...)
	of := jsonscan.AppendString(append(make([]byte, 0, 192), `{"challenge":{"id":`...), g.ChallengeID)
	of = append(jsonscan.AppendString(append(of, `,"realm":`...), g.Realm), ',')
	from := source{g.Terms.Asset.Chain, g.Payer}
	tail := `,"source":"` + from.String() + `"}`
	switch {
	case !bytes.HasPrefix(doc, of):
		return nil, mismatch("the challenge is not the grant's")
	case !bytes.HasPrefix(doc, head):
		return nil, mismatch("the challenge is another")
	case !bytes.HasSuffix(doc, []byte(tail)) || len(doc) < len(head)+len(tail):
		return nil, mismatch("the source is not the payer")
	}
	v, err := jsonscan.Parse(doc[len(head):len(doc)-len(tail)], jsonscan.Limits{Size: maxCredential})
	if err != nil {
		return nil, mismatch("the payload: %v", err)
	}
	out, err := readPayload(v)
	if err != nil {
		return nil, mismatch("the payload: %v", err)
	}
	// Hex and numbers have one spelling each.
	if !bytes.Equal(out.append(make([]byte, 0, out.size())), doc[len(head):len(doc)-len(tail)]) {
		return nil, mismatch("the payload is spelled in another way")
	}
	return out, nil
}

// decodeTransaction reads raw with every field held to the grant or put into the
// terms.
func (p *plan) decodeTransaction(raw []byte, a *payment.Authorization, g *payment.Grant, t *token) (payment.Terms, error) {
	tx, err := tempo.Decode(raw)
	if err != nil {
		return payment.Terms{}, mismatch("%v", err)
	}
	terms := g.Terms
	terms.Rail, terms.Scheme = Name, p.scheme()
	terms.Asset = t.asset
	terms.Recipients, terms.Amount = make([]payment.Recipient, len(tx.Calls)), payment.Units{}
	if len(tx.Calls) != len(p.memos) {
		return payment.Terms{}, mismatch("%d calls, not %d", len(tx.Calls), len(p.memos))
	}
	for i, call := range tx.Calls {
		move, err := tempo.ParseCall(call)
		if err != nil {
			return payment.Terms{}, mismatch("call %d: %v", i, err)
		}
		want := p.transfer(g, i)
		if move.Token != t.asset.Address || move.HasMemo != want.HasMemo || move.Memo != want.Memo {
			return payment.Terms{}, mismatch("call %d is of another token or has another memo", i)
		}
		terms.Recipients[i] = payment.Recipient{Address: move.To, Amount: move.Amount}
		sum, ok := terms.Amount.Add(move.Amount)
		if !ok {
			return payment.Terms{}, mismatch("the amounts overflow")
		}
		terms.Amount = sum
	}
	// All that is not in the calls has to be as planned, to the last field.
	want := p.transaction(g, t)
	want.Calls, want.Signature = tx.Calls, tx.Signature
	if !tx.Equal(&want) {
		return payment.Terms{}, mismatch("the transaction has other fields than planned")
	}
	var ok bool
	if terms.FeeBound, ok = t.asset.Value(tx.FeeBound()); !ok {
		return payment.Terms{}, mismatch("the fee cannot be counted")
	}
	if len(tx.Signature) != 65 || tx.Signature[64] < 27 {
		return payment.Terms{}, mismatch("the signature is not one of a key, with v 27 or 28")
	}
	switch hash := keccak.Sum256(raw); {
	case p.sponsored():
		if a.TxHash != "" || a.Raw != nil {
			return payment.Terms{}, mismatch("a sponsored transaction has no hash yet")
		}
	case a.TxHash != "0x"+hex.EncodeToString(hash[:]):
		return payment.Terms{}, mismatch("the hash is another")
	}
	if g.Recover {
		if err := signing.Check(g.Payer, tx.SigningHash(), [65]byte(tx.Signature)); err != nil {
			return payment.Terms{}, fmt.Errorf("mpp: %w", err)
		}
	}
	return terms, nil
}

// decodeProof reads a proof, which says nothing but whose account it is of.
func (p *plan) decodeProof(a *payment.Authorization, g *payment.Grant, t *token, sent payload) (payment.Terms, error) {
	sig, ok := sent.(proof)
	if !ok || a.Raw != nil || a.TxHash != "" {
		return payment.Terms{}, mismatch("the payload is not a proof")
	}
	if n, err := eip3009.NormalizeSignature(sig[:]); err != nil || n != sig {
		return payment.Terms{}, mismatch("the signature is malleable")
	}
	if g.Recover {
		if err := signing.Check(g.Payer, p.digest(g, t, nil), sig); err != nil {
			return payment.Terms{}, fmt.Errorf("mpp: %w", err)
		}
	}
	terms := g.Terms
	terms.Rail, terms.Scheme, terms.Asset, terms.FeeBound = Name, SchemeProof, t.asset, 0
	return terms, nil
}

// decodeEVM reads an EIP-3009 authorization.
func (p *plan) decodeEVM(a *payment.Authorization, g *payment.Grant, t *token, sent payload) (payment.Terms, error) {
	m, ok := sent.(*authorization)
	if !ok || a.Raw != nil || a.TxHash != "" {
		return payment.Terms{}, mismatch("the payload is not an authorization")
	}
	if m.from != g.Payer || m.validAfter != 0 || m.validBefore != uint64(g.ValidBefore.Unix()) || !bytes.Equal(m.nonce[:], g.Slot.NonceID[:]) {
		return payment.Terms{}, mismatch("the payer, the validity or the nonce is another")
	}
	if n, err := eip3009.NormalizeSignature(m.signature[:]); err != nil || n != m.signature {
		return payment.Terms{}, mismatch("the signature is malleable")
	}
	if g.Recover {
		digest := eip3009.Digest(t.separator, eip3009.Authorization{
			From: m.from, To: m.to, Value: m.value.Bytes(), ValidBefore: m.validBefore, Nonce: m.nonce,
		})
		if err := signing.Check(g.Payer, digest, m.signature); err != nil {
			return payment.Terms{}, fmt.Errorf("mpp: %w", err)
		}
	}
	terms := g.Terms
	terms.Rail, terms.Scheme, terms.Asset, terms.FeeBound = Name, SchemeEVM, t.asset, 0
	terms.Amount = m.value
	terms.Recipients = []payment.Recipient{{Address: m.to, Amount: m.value}}
	return terms, nil
}

package canopytest

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/payment"
)

// answerMPP is the flow of mppx 0.11: it broadcasts before the handler runs.
func (x *Exchange) answerMPP() Answer {
	if p := x.verifyMPP(); p != nil {
		return x.refuseMPP(p)
	}
	reference, p := x.settleMPP()
	if p != nil {
		return x.refuseMPP(p)
	}
	a := x.Serve()
	if a.Status < 400 {
		x.receiptMPP(&a, reference)
	}
	return a
}

// settleMPP moves the money of a payment that was verified, and returns what
// the receipt refers to.
func (x *Exchange) settleMPP() (string, *problem) {
	q, c := x.chosen, x.answered
	switch {
	case !q.chain.tempo.on:
		a := *x.record.Authorization
		tx, err := q.chain.settle(x.ctx, a, x.chain().clock.Now().Add(x.seller.config.MPP.Wait))
		if err != nil {
			return "", broken("%v", err)
		}
		x.note(func(r *Request) { r.TxHash = tx.Hash })
		return tx.Hash, nil
	case q.proof:
		if x.seller.config.MPP.ProofOnce && !x.seller.claim("proof "+c.challenge.id) {
			return "", refuse("verification-failed", "Payment verification failed: Proof has already been used.")
		}
		return c.challenge.id, nil
	case c.kind == "hash":
		hash := c.text("hash")
		if !x.seller.claim(hash) {
			return "", refuse("verification-failed", "Payment verification failed: Transaction hash has already been used.")
		}
		x.note(func(r *Request) { r.TxHash = hash })
		return hash, nil
	}
	return x.settlePull()
}

// settlePull broadcasts the transaction and waits for its block.
func (x *Exchange) settlePull() (string, *problem) {
	q := x.chosen
	final, err := x.final(x.record.Tempo)
	if err != nil {
		return "", broken("%v", err)
	}
	if !x.seller.claim(claimOf(final)) {
		return "", refuse("verification-failed", "Payment verification failed: Transaction hash has already been used.")
	}
	tx, err := q.chain.settleTempo(x.ctx, final, q.chain.clock.Now().Add(x.seller.config.MPP.Wait))
	switch {
	case errors.Is(err, ErrReverted):
		return "", refuse("verification-failed", "Payment verification failed: no matching transfer found.")
	case err != nil:
		return "", broken("%v", err)
	}
	x.note(func(r *Request) { r.TxHash = tx.Hash })
	return tx.Hash, nil
}

// settleRaw settles a transaction of Tempo whatever the terms were.
func (x *Exchange) settleRaw(tx *TempoTx) (Tx, error) {
	final, err := x.final(tx)
	if err != nil {
		return Tx{}, err
	}
	chain := x.chain()
	out, err := chain.settleTempo(x.ctx, final, chain.clock.Now().Add(x.seller.config.MPP.Wait))
	if err == nil {
		x.note(func(r *Request) { r.TxHash = out.Hash })
	}
	return out, err
}

// refuseMPP answers with a problem and with fresh challenges.
func (x *Exchange) refuseMPP(p *problem) Answer {
	x.note(func(r *Request) { r.Code = p.kind })
	doc := object{
		{"type", "https://paymentauth.org/problems/" + p.kind}, {"title", titleOf(p.kind)}, {"status", p.status}, {"detail", p.detail},
	}
	challenges := x.challengesMPP()
	if len(challenges) > 0 {
		doc = append(doc, field{"challengeId", challenges[len(challenges)-1].id})
	}
	a := newAnswer(p.status, "application/problem+json", mustJSON(doc))
	a.Header.Set("Cache-Control", "no-store")
	x.state(&a, challenges)
	return a
}

// state puts challenges on a.
func (x *Exchange) state(a *Answer, challenges []mppChallenge) {
	line := ""
	for i := range challenges {
		switch s := challenges[i].String(); {
		case x.seller.config.MPP.Lines:
			a.Header.Add("Www-Authenticate", s)
		case line == "":
			line = s
		default:
			line += ", " + s
		}
	}
	if line != "" {
		a.Header.Set("Www-Authenticate", line)
	}
}

func titleOf(kind string) string {
	return map[string]string{
		"payment-required": "Payment Required", "malformed-credential": "Malformed Credential", "invalid-challenge": "Invalid Challenge",
		"payment-expired": "Payment Expired", "verification-failed": "Verification Failed", "method-unsupported": "Method Unsupported",
		"invalid-payload": "Invalid Payload", "internal-payment-error": "Internal Payment Error",
	}[kind]
}

// receiptMPP puts the receipt on a.
func (x *Exchange) receiptMPP(a *Answer, reference string) {
	method := "tempo"
	if x.chosen != nil {
		method = x.chosen.method()
	}
	a.Header.Set("Payment-Receipt", b64(jcs(map[string]any{
		"method": method, "reference": reference, "status": "success",
		"timestamp": x.chain().clock.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
	})))
	a.Header.Set("Cache-Control", "private")
}

// claim takes a name once, and reports whether this was the first time.
func (s *Seller) claim(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.claims[name]
	s.claims[name] = true
	return first
}

func (s *Seller) claimed(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims[name]
}

func claimOf(final []byte) string {
	tx, err := DecodeTempo(final)
	if err != nil {
		return ""
	}
	return tx.Hash()
}

// final is tx as it goes to the network: signed along by the seller where it is
// sponsored.
func (x *Exchange) final(tx *TempoTx) ([]byte, error) { return x.seller.cosign(tx) }

// Sponsor is the account that pays the fees of sponsored charges.
func (s *Seller) Sponsor() payment.Address {
	return payment.Address(crypto.PubkeyToAddress(sponsorKey.PublicKey))
}

var sponsorKey = func() *ecdsa.PrivateKey {
	seed := keccak.Sum256([]byte("canopytest sponsor"))
	key, err := crypto.ToECDSA(seed[:])
	if err != nil {
		panic("canopytest: " + err.Error())
	}
	return key
}()

// cosign returns tx with the sponsor's signature where it waits for one, and as
// it is where it does not.
func (s *Seller) cosign(tx *TempoTx) ([]byte, error) {
	if !tx.FeePayer.IsZero() {
		return tx.Raw(), nil
	}
	token := tx.FeeToken
	if token.IsZero() {
		token = pathUSD
	}
	digest := tx.feePayerDigest(token)
	sig, err := crypto.Sign(digest[:], sponsorKey)
	if err != nil {
		return nil, err
	}
	slot, err := rlp.EncodeToBytes([]any{uint64(sig[64]), new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:64])})
	if err != nil {
		return nil, err
	}
	fields := slices.Clone(tx.fields)
	fields[fieldFeeToken], fields[fieldFeePayer] = rlpText(token[:]), slot
	return encodeTempo(0x76, append(fields, rlpText(tx.Signature))), nil
}

// ErrNeverLands is what waiting for a transaction ends with that has a hash and
// that no block can take any more.
var ErrNeverLands = errors.New("canopytest: the transaction was taken by the node and will not land")

// settleTempo broadcasts raw, as Settle does with an authorization.
func (c *Chain) settleTempo(ctx context.Context, raw []byte, deadline time.Time) (Tx, error) {
	c.mu.Lock()
	c.catchUp()
	hash, err := c.submit(raw)
	c.mu.Unlock()
	if err != nil && !errors.Is(err, ErrImported) {
		return Tx{}, err
	}
	return c.waitUntil(ctx, hash, deadline)
}

// simulateTempo is simulates for raw.
func (c *Chain) simulateTempo(raw []byte) error {
	tx, err := DecodeTempo(raw)
	if err != nil {
		return fmt.Errorf("simulation: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	return c.simulates(tx)
}

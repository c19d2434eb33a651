package canopytest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/payment"
)

// problem is why a seller of MPP refuses: the last part of a problem type, and
// the words.
type problem struct {
	status int
	kind   string
	detail string
}

func refuse(kind, format string, args ...any) *problem {
	return &problem{402, kind, fmt.Sprintf(format, args...)}
}

// broken is what a seller answers where its node, or its own rules for sponsored
// transactions, failed it: the outcome is unknown to it too.
func broken(format string, args ...any) *problem {
	return &problem{500, "internal-payment-error", fmt.Sprintf(format, args...)}
}

// keepMPP reads the credential, finds the terms that it is for, and keeps what
// it holds.
func (x *Exchange) keepMPP() {
	c, err := readCredential(x.credential)
	if err != nil {
		return
	}
	x.answered = c
	var near *requirement // of the same method, in case none is equal
	for i := range x.accepts {
		q := &x.accepts[i]
		if !x.charges(q) || q.method() != c.challenge.method {
			continue
		}
		if near == nil {
			near = q
		}
		if x.chosen == nil && c.differs(q) == "" {
			x.chosen = q
		}
	}
	if near == nil {
		return
	}
	q := near
	if x.chosen != nil {
		q = x.chosen
	}
	kept := Harvested{Asset: q.asset, Pattern: x.route.Pattern, Header: x.credential, Time: x.record.Time, chain: q.chain}
	if tx, err := c.tempoTx(); err == nil && q.chain.tempo.on {
		kept.Tempo, kept.sponsor = tx, x.seller.cosign
		x.note(func(r *Request) { r.Tempo = tx })
		x.seller.harvest.add(kept)
	} else if a, err := c.authorization(q.asset.Address); err == nil && !q.chain.tempo.on {
		kept.Authorization = a
		x.note(func(r *Request) { r.Authorization = &a })
		x.seller.harvest.add(kept)
	}
}

// verifyMPP is what mppx checks before it broadcasts, in its order; nil where
// the payment passes.
func (x *Exchange) verifyMPP() *problem {
	c := x.answered
	if c == nil {
		return refuse("malformed-credential", "Credential is malformed.")
	}
	if ch := &c.challenge; ch.id != ch.seal() {
		return refuse("invalid-challenge", "Challenge %q is invalid: challenge was not issued by this server.", ch.id)
	}
	// An equal id means that everything but the description is ours.
	now := x.chain().clock.Now()
	expires, err := time.Parse(time.RFC3339Nano, c.challenge.expires)
	switch {
	case err != nil:
		return refuse("invalid-challenge", "challenge has no expiry.")
	case !expires.After(now):
		return refuse("payment-expired", "Payment expired at %s.", c.challenge.expires)
	case c.challenge.intent != "charge":
		return &problem{400, "method-unsupported", "this intent is not served here."}
	case c.challenge.realm != x.realm():
		return refuse("invalid-challenge", "credential realm does not match this route's requirements.")
	case x.chosen == nil:
		return refuse("invalid-challenge", "credential %s does not match this route's requirements.", x.mismatch())
	case !bodyMatches(c.challenge.digest, x.Body):
		return refuse("invalid-challenge", "the body's digest does not match the challenge.")
	}
	switch q := x.chosen; {
	case !q.chain.tempo.on:
		return x.verifyCharge()
	case q.proof:
		return x.verifyProof()
	case c.kind == "transaction" && q.mode("pull"):
		return x.verifyPull()
	case c.kind == "hash" && q.mode("push") && !q.sponsored:
		return x.verifyPush()
	}
	return refuse("invalid-payload", "Credential payload is invalid.")
}

// mode reports whether q can be paid that way.
func (q *requirement) mode(name string) bool {
	return len(q.modes) == 0 || slices.Contains(q.modes, name)
}

func (x *Exchange) mismatch() string {
	for i := range x.accepts {
		if q := &x.accepts[i]; x.charges(q) && q.method() == x.answered.challenge.method {
			return x.answered.differs(q)
		}
	}
	return "method"
}

func bodyMatches(digest string, body []byte) bool {
	if digest == "" {
		return true
	}
	sum := sha256.Sum256(body)
	return digestSum(digest) == hex.EncodeToString(sum[:])
}

// verifyPull looks at a transaction that the seller is to broadcast.
func (x *Exchange) verifyPull() *problem {
	q, c := x.chosen, x.answered
	tx, err := c.tempoTx()
	if err != nil {
		return broken("%v", err)
	}
	moves, err := tx.Transfers()
	if err != nil || slices.ContainsFunc(moves, func(m TempoTransfer) bool { return m.Token != q.asset.Address }) {
		return refuse("verification-failed", "Payment verification failed: Invalid transaction: unexpected call.")
	}
	if p := x.matchTransfers(moves, "Invalid transaction: no matching payment call found"); p != nil {
		return p
	}
	used := refuse("verification-failed", "Payment verification failed: Transaction hash has already been used.")
	final, err := x.final(tx)
	if err != nil {
		return broken("%v", err)
	}
	switch {
	case q.sponsored && tx.Sponsored && tx.FeePayer.IsZero():
		if x.seller.claimed(claimOf(final)) { // here before the simulation
			return used
		}
		if p := x.sponsorable(tx, len(moves)); p != nil {
			return p
		}
	case q.sponsored:
		// Signing along with who pays for himself makes another sender of him.
		return broken("insufficient fee token balance: have 0")
	case tx.raw[0] != 0x76 || tx.FeePayer.IsZero():
		return broken("%v", ErrNoSponsor)
	}
	if err := q.chain.simulateTempo(final); err != nil {
		return broken("%v", err)
	}
	if x.seller.claimed(claimOf(final)) {
		return used
	}
	return nil
}

// matchTransfers reports, as missing, that a transfer that is due is not among
// moves, or that none of them is bound to the challenge.
func (x *Exchange) matchTransfers(moves []TempoTransfer, missing string) *problem {
	q := x.chosen
	left := slices.Clone(moves)
	bound := false
	for i, want := range q.due() {
		at := slices.IndexFunc(left, func(m TempoTransfer) bool {
			if m.To != want.To || m.Amount != want.Amount || want.HasMemo && (!m.HasMemo || m.Memo != want.Memo) {
				return false
			}
			return i > 0 || q.memo == nil || m.HasMemo && m.Memo == *q.memo
		})
		if at < 0 {
			return refuse("verification-failed", "Payment verification failed: %s.", missing)
		}
		bound = bound || left[at].HasMemo && x.bound(left[at].Memo)
		left = slices.Delete(left, at, at+1)
	}
	switch {
	case q.sponsored && len(left) > 0:
		return refuse("verification-failed", "Payment verification failed: %s.", missing)
	case !bound && q.memo == nil:
		return refuse("verification-failed", "Payment verification failed: memo is not bound to this challenge.")
	}
	return nil
}

// bound reports whether a memo names the realm and the challenge that x's
// credential echoes.
func (x *Exchange) bound(memo [32]byte) bool {
	tag, realm, id := keccak.Sum256([]byte("mpp")), keccak.Sum256([]byte(x.answered.challenge.realm)), keccak.Sum256([]byte(x.answered.challenge.id))
	return bytes.Equal(memo[:4], tag[:4]) && memo[4] == 1 && bytes.Equal(memo[5:15], realm[:10]) && bytes.Equal(memo[25:], id[:7])
}

// sponsorable are the rules by which sponsors sign along.
func (x *Exchange) sponsorable(tx *TempoTx, calls int) *problem {
	gas, price, tip := tx.Gas, tx.MaxFee, tx.Tip
	total, _ := feeOf(gas, price) // in units of 1e12
	mostTip := uint64(10_000_000_000)
	if x.chosen.chain.id == payment.TempoTest {
		mostTip = 50_000_000_000
	}
	now := x.chain().clock.Now().Unix()
	expires, _ := time.Parse(time.RFC3339Nano, x.answered.challenge.expires)
	before := int64(tx.ValidBefore)
	switch {
	case gas > 2_000_000:
		return broken("fee payer policy: gas %d", gas)
	case price.Cmp(payment.UnitsOf(100_000_000_000)) > 0 || tip.Cmp(payment.UnitsOf(mostTip)) > 0 || total.Cmp(payment.UnitsOf(50_000)) > 0:
		return broken("fee payer policy: price")
	case !tx.Expiring():
		return broken("fee payer policy: nonceKey")
	case tx.ValidBefore == 0 || before <= now || before > now+900 || before > expires.Unix()+60:
		return broken("fee payer policy: validBefore")
	case tx.accessList || tx.delegated || calls != len(x.chosen.due()):
		return broken("fee payer policy: calls")
	case !tx.FeeToken.IsZero() && tx.FeeToken != pathUSD:
		return broken("fee payer policy: feeToken")
	}
	return nil
}

// verifyPush looks for a transaction that the buyer broadcast.
func (x *Exchange) verifyPush() *problem {
	q, c := x.chosen, x.answered
	hash := strings.ToLower(c.text("hash"))
	number, _ := q.chain.id.Number()
	source, named := c.did(number)
	if c.source != "" && !named {
		return refuse("verification-failed", "Payment verification failed: Hash credential source is invalid.")
	}
	if !isHash(hash) {
		return refuse("invalid-payload", "Credential payload is invalid.")
	}
	tx, ok := q.chain.Tx(hash)
	if !ok || tx.Pending {
		return broken("Transaction receipt with hash %q could not be found.", hash)
	}
	var moves []TempoTransfer
	for _, t := range q.chain.Transfers() {
		if t.TxHash == hash && t.Token == q.asset.Address && !t.Fee && (!named || t.From == source) {
			moves = append(moves, TempoTransfer{Token: t.Token, To: t.To, Amount: t.Value, Memo: t.Memo, HasMemo: t.HasMemo})
		}
	}
	if p := x.matchTransfers(moves, "no matching transfer found"); p != nil {
		return p
	}
	if x.seller.claimed(hash) {
		return refuse("verification-failed", "Payment verification failed: Transaction hash has already been used.")
	}
	return nil
}

func isHash(s string) bool {
	digits, ok := strings.CutPrefix(s, "0x")
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

// verifyProof looks at the signature that answers a charge of zero.
func (x *Exchange) verifyProof() *problem {
	c := x.answered
	number, _ := x.chosen.chain.id.Number()
	account, ok := c.did(number)
	sig, read := c.bytes("signature")
	switch {
	case c.kind != "proof" || !read:
		return refuse("invalid-payload", "Credential payload is invalid.")
	case !ok:
		return refuse("verification-failed", "Payment verification failed: Proof credential source is invalid.")
	}
	signer, err := recoverSigner(proofDigest(number, account, c.challenge.id, c.challenge.realm), sig)
	if err != nil || signer != account {
		return refuse("verification-failed", "Payment verification failed: Proof signature does not match source.")
	}
	if x.seller.config.MPP.ProofOnce && x.seller.claimed("proof "+c.challenge.id) {
		return refuse("verification-failed", "Payment verification failed: Proof has already been used.")
	}
	return nil
}

// proofDigest is the EIP-712 hash that a proof signs, laid out by hand.
func proofDigest(chain uint64, account payment.Address, id, realm string) [32]byte {
	text := func(s string) []byte { h := keccak.Sum256([]byte(s)); return h[:] }
	number := payment.UnitsOf(chain).Bytes()
	domain := keccak.Sum256(text("EIP712Domain(string name,string version,uint256 chainId)"), text("MPP"), text("3"), number[:])
	message := keccak.Sum256(text("Proof(address account,string challengeId,string realm)"), padded(account), text(id), text(realm))
	return keccak.Sum256([]byte{0x19, 0x01}, domain[:], message[:])
}

// verifyCharge looks at an EIP-3009 authorization.
func (x *Exchange) verifyCharge() *problem {
	q, c := x.chosen, x.answered
	a, err := c.authorization(q.asset.Address)
	if err != nil {
		return refuse("invalid-payload", "Credential payload is invalid.")
	}
	switch err := q.chain.Simulate(a); {
	case a.Nonce != keccak.Sum256([]byte(c.challenge.id), []byte(c.challenge.realm)):
		return refuse("verification-failed", "Payment verification failed: nonce is not bound to this challenge.")
	case a.To != q.payTo || a.Value != q.amount || !a.ValidAfter.IsZero():
		return refuse("verification-failed", "Payment verification failed: authorization does not match the request.")
	case !a.signedBy(q.asset, true):
		return refuse("verification-failed", "Payment verification failed: invalid signature.")
	case err != nil:
		return refuse("verification-failed", "Payment verification failed: %v.", strings.TrimPrefix(err.Error(), "canopytest: "))
	}
	return nil
}

package mpp

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

const (
	headerChallenge = "WWW-Authenticate"

	methodTempo  = "tempo"
	methodEVM    = "evm"
	intentCharge = "charge"
)

// Offers reads the offers of a 402, or of a 401, that has challenges of the
// Payment scheme. The body says nothing that counts. What cannot be paid is in
// the *SkippedError beside the offers that can; payment.ErrNotMine means that no
// challenge is of the scheme.
func (r *Rail) Offers(resp *http.Response, _ []byte) ([]payment.Offer, error) {
	if resp.StatusCode != http.StatusPaymentRequired && resp.StatusCode != http.StatusUnauthorized {
		return nil, payment.ErrNotMine
	}
	found, bad := readChallenges(resp.Header.Values(headerChallenge))
	if len(found)+len(bad) == 0 {
		return nil, payment.ErrNotMine
	}
	var offers []payment.Offer
	for i := range found {
		o, why := r.offer(&found[i], resp.Request)
		if why != (skip{}) {
			bad = append(bad, Skipped{found[i].index, why.code, why.detail})
			continue
		}
		offers = append(offers, o)
	}
	if len(bad) > 0 {
		return offers, &SkippedError{bad}
	}
	return offers, nil
}

// offer is what c asks for, by method and intent. req is the request that it
// answers; nil where that is not known.
func (r *Rail) offer(c *challenge, req *http.Request) (payment.Offer, skip) {
	switch {
	case c.header != "" && req != nil && req.Header.Get(c.header) != "":
		return payment.Offer{}, skipped("header_taken", c.header)
	case c.intent != intentCharge:
	case c.method == methodTempo:
		return r.tempoOffer(c, req)
	case c.method == methodEVM:
		return r.evmOffer(c)
	}
	return payment.Offer{}, skipped("unsupported", c.method+"/"+c.intent)
}

// tempoOffer is a charge that is paid on Tempo.
func (r *Rail) tempoOffer(c *challenge, req *http.Request) (payment.Offer, skip) {
	q, why := readTempoCharge(c.requestJSON)
	if why != (skip{}) {
		return payment.Offer{}, why
	}
	t, why := r.tempoToken(&q.charge)
	if why != (skip{}) {
		return payment.Offer{}, why
	}
	if tempo.IsContract(q.recipient) {
		return payment.Offer{}, skipped("reserved_payee", "recipient")
	}
	p := plan{mode: modePull, field: c.field()}
	o := r.base(c, &q.charge, t)
	o.Scheme = SchemeTempo
	o.Recipients = make([]payment.Recipient, 1, 1+len(q.splits))
	o.Recipients[0] = payment.Recipient{Address: q.recipient, Amount: q.primary()}
	first := memo{kind: memoFixed}
	if q.memo != nil {
		first.fixed = *q.memo
	} else {
		first.fixed = tempo.Attribution(c.realm, r.clientID, c.id)
	}
	p.memos = append(make([]memo, 0, 1+len(q.splits)), first)
	for _, s := range q.splits {
		if tempo.IsContract(s.recipient) {
			return o, skipped("reserved_payee", "splits")
		}
		o.Recipients = append(o.Recipients, payment.Recipient{Address: s.recipient, Amount: s.amount})
		m := memo{}
		if s.memo != nil {
			m = memo{memoFixed, *s.memo}
		}
		p.memos = append(p.memos, m)
	}
	switch {
	case q.amount.IsZero() && !r.proofs:
		return o, skipped("no_proofs", "the seller wants a proof of the account, and proofs are turned off (proofs in [mpp], mpp.Config.NoProofs)")
	case q.amount.IsZero() && !r.provesTo(c.realm, req):
		return o, skipped("proof_for_another", "the proof is for "+c.realm+", which is not the host that asks (proof_realms in [mpp], mpp.Config.ProofRealms)")
	case q.amount.IsZero():
		p.mode, p.memos, o.Scheme = modeProof, nil, SchemeProof
	case q.feePayer && !q.pull:
		return o, skipped("no_known_mode", "a sponsored charge is never pushed")
	case q.feePayer && r.envelope == EnvelopeTransaction:
		p.mode = modePlaceholder
	case q.feePayer:
		p.mode = modeSponsored
	case q.pull:
	case r.nodes[t.asset.Chain] == nil:
		return o, skipped("no_node", "the seller wants the transaction broadcast, and there is no node for "+t.asset.Chain.Name()+" (rpc in its [[chain]], mpp.Config.Nodes)")
	default:
		p.mode, o.Broadcast = modePush, true
	}
	if p.transacts() {
		p.limits = r.fees.limits(len(p.memos), p.sponsored())
		if !p.sponsored() {
			var ok bool
			if o.FeeBound, ok = p.limits.bound(t.asset); !ok {
				return o, skipped("fee_overflow", "")
			}
		}
	}
	if p.sponsored() {
		o.Mark = first.fixed
	}
	o.Slot = p.slot()
	return sealed(o, &p, c)
}

// provesTo reports whether a proof for realm may be given to who answered req:
// its own host, or a realm that Config.ProofRealms has. A host could hand on a
// proof for another.
func (r *Rail) provesTo(realm string, req *http.Request) bool {
	if slices.Contains(r.realms, realm) {
		return true
	}
	return req != nil && req.URL != nil && (strings.EqualFold(realm, req.URL.Host) || strings.EqualFold(realm, req.URL.Hostname()))
}

// evmOffer is a charge that is paid by an EIP-3009 authorization, whose nonce
// the challenge binds.
func (r *Rail) evmOffer(c *challenge) (payment.Offer, skip) {
	q, why := readEVMCharge(c.requestJSON)
	if why != (skip{}) {
		return payment.Offer{}, why
	}
	if q.chainID == 0 {
		return payment.Offer{}, skipped("no_chain", "the challenge names no chain")
	}
	t := r.token(chainOf(q.chainID), q.currency)
	switch {
	case !r.serves(chainOf(q.chainID)):
		return payment.Offer{}, skipped("other_chain", strconv.FormatUint(q.chainID, 10))
	case t == nil || t.tempo:
		return payment.Offer{}, skipped("unknown_asset", q.currency.String())
	case q.amount.IsZero():
		return payment.Offer{}, skipped("zero_amount", "")
	}
	p := plan{mode: modeEVM, field: c.field()}
	o := r.base(c, &q, t)
	o.Scheme, o.Slot = SchemeEVM, payment.SlotEVM
	o.Recipients = []payment.Recipient{{Address: q.recipient, Amount: q.amount}}
	o.Mark = boundNonce(c.id, c.realm)
	return sealed(o, &p, c)
}

// boundNonce is the nonce of an authorization for a challenge.
func boundNonce(id, realm string) [32]byte { return keccak.Sum256([]byte(id + realm)) }

// tempoToken is the pinned token that q is paid in. The chain is one of ours, and
// never a guess.
func (r *Rail) tempoToken(q *charge) (*token, skip) {
	chain := r.pin
	if q.chainID != 0 {
		chain = chainOf(q.chainID)
	}
	switch t := r.token(chain, q.currency); {
	case chain == "":
		return nil, skipped("no_chain", "the challenge names no chain, and several are configured")
	case !r.serves(chain):
		return nil, skipped("other_chain", string(chain))
	case t == nil || !t.tempo:
		return nil, skipped("unknown_asset", q.currency.String()+" on "+string(chain))
	default:
		return t, skip{}
	}
}

func chainOf(n uint64) payment.ChainID {
	return payment.ChainID("eip155:" + strconv.FormatUint(n, 10))
}

// base is what the offers of all charges have in common.
func (r *Rail) base(c *challenge, q *charge, t *token) payment.Offer {
	return payment.Offer{
		Rail: Name, Asset: t.asset, Amount: q.amount,
		Expires: c.expires, ChallengeID: c.id, Realm: c.realm, Digest: c.digest,
		Network:     c.method + ":" + strconv.FormatUint(t.chain, 10),
		Description: plaintext.Clean(c.description, 512),
		Version:     1, Resend: true,
	}
}

// sealed is o with what building its authorization needs.
func sealed(o payment.Offer, p *plan, c *challenge) (payment.Offer, skip) {
	var why skip
	if p.challenge, why = c.echo(); why != (skip{}) {
		return o, why
	}
	if o.Echo = p.encode(); o.Echo == nil {
		return o, skipped("echo_too_large", fmt.Sprintf("more than %d bytes", payment.MaxEcho))
	}
	return o, skip{}
}

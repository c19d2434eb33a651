package mpp

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

// mode is how a grant is carried out. It is the first byte of an echo.
type mode byte

const (
	modePull        mode = 'p' // a transaction that the seller broadcasts
	modePush        mode = 'h' // a transaction that is broadcast first, and its hash
	modeSponsored   mode = 's' // a transaction whose fee the seller pays, 0x78
	modePlaceholder mode = 'q' // the same, 0x76
	modeProof       mode = 'z' // a signature that moves nothing
	modeEVM         mode = 'e' // an EIP-3009 authorization
	modeTransfer    mode = 't' // a transaction without a seller
)

// plan is what an echo keeps of an offer, so that the same bytes can be built
// again: how it is paid, the gas limits, the memo of each recipient's transfer,
// the field of the credential, and the challenge as the credential repeats it.
//
// On paper: mode|gas|price|tip|memos|field|challenge, where memos are, by comma,
// 64 hex digits, "-" for none, or "i" for one made of the payment's ID.
type plan struct {
	mode      mode
	limits    limits
	memos     []memo
	field     string // of the request, for the credential; empty without a seller
	challenge []byte
}

// memo is what goes with one recipient's transfer.
type memo struct {
	kind  memoKind
	fixed [32]byte
}

type memoKind uint8

const (
	memoNone    memoKind = iota
	memoFixed            // stated by the seller or the caller, or made of realm and challenge
	memoPayment          // made of the payment's ID, for a transfer
)

// transacts reports whether the plan signs a Tempo transaction.
func (p *plan) transacts() bool {
	switch p.mode {
	case modePull, modePush, modeSponsored, modePlaceholder, modeTransfer:
		return true
	}
	return false
}

func (p *plan) sponsored() bool { return p.mode == modeSponsored || p.mode == modePlaceholder }

// slot is the kind of slot that the plan uses.
func (p *plan) slot() payment.SlotKind {
	switch {
	case p.sponsored():
		return payment.SlotExpiring
	case p.mode == modeProof:
		return payment.SlotProof
	case p.mode == modeEVM:
		return payment.SlotEVM
	}
	return payment.SlotLane
}

// encode writes the plan. It is at most payment.MaxEcho bytes, or nothing.
func (p *plan) encode() []byte {
	b := make([]byte, 0, 96+66*len(p.memos)+len(p.field)+len(p.challenge))
	b = append(b, byte(p.mode), '|')
	b = append(strconv.AppendUint(b, p.limits.gas, 10), '|')
	b = append(strconv.AppendUint(b, p.limits.price, 10), '|')
	b = append(strconv.AppendUint(b, p.limits.tip, 10), '|')
	for i, m := range p.memos {
		if i > 0 {
			b = append(b, ',')
		}
		switch m.kind {
		case memoPayment:
			b = append(b, 'i')
		case memoFixed:
			b = hex.AppendEncode(b, m.fixed[:])
		default:
			b = append(b, '-')
		}
	}
	b = append(append(append(b, '|'), p.field...), '|')
	if b = append(b, p.challenge...); len(b) > payment.MaxEcho {
		return nil
	}
	return b
}

// readPlan reads what encode wrote. It is bounded by the echo's own bound.
func readPlan(echo []byte) (p plan, err error) {
	bad := func(what string) (plan, error) { return plan{}, fmt.Errorf("%w: the echo's %s", ErrGrant, what) }
	if len(echo) > payment.MaxEcho {
		return bad("length")
	}
	var parts [6][]byte
	for i := range parts {
		var ok bool
		if parts[i], echo, ok = bytes.Cut(echo, []byte("|")); !ok {
			return bad("parts")
		}
	}
	if len(parts[0]) != 1 {
		return bad("mode")
	}
	switch p.mode = mode(parts[0][0]); p.mode {
	case modePull, modePush, modeSponsored, modePlaceholder, modeProof, modeEVM, modeTransfer:
	default:
		return bad("mode")
	}
	for i, n := range []*uint64{&p.limits.gas, &p.limits.price, &p.limits.tip} {
		if *n, err = strconv.ParseUint(string(parts[1+i]), 10, 64); err != nil {
			return bad("gas limits")
		}
	}
	if s := string(parts[4]); s != "" {
		p.memos = make([]memo, 0, 1+strings.Count(s, ","))
		for one := range strings.SplitSeq(s, ",") {
			var m memo
			switch {
			case one == "i":
				m.kind = memoPayment
			case one == "-":
			default:
				m.kind = memoFixed
				if len(one) != 64 {
					return bad("memos")
				}
				if _, err := hex.Decode(m.fixed[:], []byte(one)); err != nil {
					return bad("memos")
				}
			}
			p.memos = append(p.memos, m)
		}
	}
	p.field, p.challenge = string(parts[5]), echo
	return p, nil
}

// calls are the transfers of the plan for g: the primary one first.
func (p *plan) calls(g *payment.Grant) []tempo.Call {
	out := make([]tempo.Call, len(p.memos))
	for i := range p.memos {
		out[i] = p.transfer(g, i).Call()
	}
	return out
}

// transfer is the i-th transfer of the plan for g.
func (p *plan) transfer(g *payment.Grant, i int) tempo.Transfer {
	to := &g.Terms.Recipients[i]
	t := tempo.Transfer{Token: g.Terms.Asset.Address, To: to.Address, Amount: to.Amount}
	switch m := &p.memos[i]; m.kind {
	case memoPayment:
		t.HasMemo, t.Memo = true, paymentMemo(g.PaymentID)
	case memoFixed:
		t.HasMemo, t.Memo = true, m.fixed
	}
	return t
}

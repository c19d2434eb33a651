package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// PastStore is an optional power of a Store: it tells what was paid before, for
// rules that ask. Every store of this module has it.
type PastStore interface {
	// Past tells which recipients of t were paid on its origin before, and what
	// the last payment for the same request cost, among the remembered payments
	// in s, which is a scope of kind ScopeAgent. It looks in a few places,
	// whatever the ledger holds.
	//
	// Nothing is locked meanwhile: another payment may be authorized or released
	// before the one that asks is reserved. What is remembered only grows but by
	// a release, so that of two first payments at once both are first.
	Past(ctx context.Context, s policy.Scope, t payment.Terms) (policy.Past, error)
}

// Remembered reports whether e is among what was paid before: it was authorized
// and not released. A proof of nothing is not.
func (e *Entry) Remembered() bool {
	return !e.AuthorizedAt.IsZero() && !e.State.Freed() && !e.Terms.IsProof()
}

// Place stands for where a payment is remembered: whom a scope paid on an
// origin, or what it bought there.
type Place [16]byte

// PayeePlace is where payments to payee are remembered that have the origin of t.
func PayeePlace(s policy.Scope, t *payment.Terms, payee payment.Address) Place {
	return placeOf(s, "payee", t.Origin, string(payee[:]))
}

// PricePlace is where payments for the same method, origin and path are
// remembered; a direct transfer has none.
func PricePlace(s policy.Scope, t *payment.Terms) (p Place, ok bool) {
	if t.IsTransfer() {
		return Place{}, false
	}
	path, _, _ := strings.Cut(t.Target, "?")
	return placeOf(s, "price", t.Origin, t.Method, path), true
}

func placeOf(s policy.Scope, what ...string) Place {
	var space [256]byte
	b := append(space[:0], "canopy.place.v1"...)
	b = append(b, byte(s.Kind))
	if s.Shared {
		b = append(b, 1)
	} else {
		b = appendText(append(b, 0), s.Agent)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(what)))
	for _, w := range what {
		b = appendText(b, w)
	}
	h := sha256.Sum256(b)
	return Place(h[:])
}

// Places are where e is remembered; none where it is not.
func (e *Entry) Places() []Place {
	if !e.Remembered() {
		return nil
	}
	out := make([]Place, 0, 4)
	s := policy.Scope{Kind: policy.ScopeAgent, Agent: e.Agent}
	for {
		for i := range e.Terms.Recipients {
			if a := e.Terms.Recipients[i].Address; !hasPayee(e.Terms.Recipients[:i], a) {
				out = append(out, PayeePlace(s, &e.Terms, a))
			}
		}
		if p, ok := PricePlace(s, &e.Terms); ok {
			out = append(out, p)
		}
		if s.Shared || !e.Shared {
			return out
		}
		s.Shared = true
	}
}

func hasPayee(list []payment.Recipient, a payment.Address) bool {
	for i := range list {
		if list[i].Address == a {
			return true
		}
	}
	return false
}

// PastTx is Past over what is remembered: last is the payment that was
// authorized last in a place, or nil.
func PastTx(s policy.Scope, t *payment.Terms, last func(Place) (*Entry, error)) (policy.Past, error) {
	var p policy.Past
	for i := range t.Recipients {
		a := t.Recipients[i].Address
		if hasPayee(t.Recipients[:i], a) {
			continue
		}
		e, err := last(PayeePlace(s, t, a))
		if err != nil {
			return policy.Past{}, err
		}
		if e != nil {
			p.Payees = append(p.Payees, a)
		}
	}
	place, ok := PricePlace(s, t)
	if !ok {
		return p, nil
	}
	e, err := last(place)
	if e != nil && err == nil {
		p.Price, p.Priced = e.Cost, true
	}
	return p, err
}

// PastOf is what the rules of p ask of s for a payment: nil where they ask for
// nothing, and where s is no PastStore, so that they deny.
func PastOf(ctx context.Context, s Store, p *policy.Policy, pay *payment.Payment) (*policy.Past, error) {
	scope, asks := p.AsksPast(pay.Agent)
	store, ok := s.(PastStore)
	if !asks || !ok {
		return nil, nil
	}
	past, err := store.Past(ctx, scope, pay.Terms)
	if err != nil {
		return nil, err
	}
	return &past, nil
}

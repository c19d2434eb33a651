package x402

import (
	"bytes"
	"slices"
	"sync"

	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/payment"
)

// Bounds of what is remembered.
const (
	maxMemo      = 128
	maxMemoValue = 8 << 10
)

// memo remembers what documents were read as, by their very bytes: a seller
// states the same terms again and again. It is safe for concurrent use; what is
// in it is never changed. The zero value is empty.
type memo[T any] struct {
	mu sync.RWMutex
	m  map[string]T
}

func (k *memo[T]) get(doc string) (T, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	v, ok := k.m[doc]
	return v, ok
}

// put remembers v for doc, and forgets all else where there is too much.
func (k *memo[T]) put(doc string, v T) {
	if len(doc) > maxMemoValue {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil || len(k.m) >= maxMemo {
		k.m = make(map[string]T)
	}
	k.m[doc] = v
}

// quote is what a PAYMENT-REQUIRED header was read as.
type quote struct {
	offers []payment.Offer
	err    error
}

// give is the quote for a caller to keep.
func (q quote) give() ([]payment.Offer, error) {
	out := slices.Clone(q.offers)
	for i := range out {
		out[i].Recipients = slices.Clone(out[i].Recipients)
		out[i].Echo = bytes.Clone(out[i].Echo)
	}
	return out, q.err
}

// quoted reads a PAYMENT-REQUIRED header, or remembers what it said. readable is
// false where the header cannot be read at all.
func (r *Rail) quoted(header string) (offers []payment.Offer, readable bool, err error) {
	q, ok := r.quotes.get(header)
	if !ok {
		c, err := readHeader(header)
		if err != nil {
			return nil, false, err
		}
		q.offers, q.err = r.offers(c)
		r.quotes.put(header, q)
	}
	offers, err = q.give()
	return offers, true, err
}

// accepts reads the entry of accepts that a payment repeats, or remembers it.
func (r *Rail) accepts(entry jsonscan.Value) (usable, skip) {
	if u, ok := r.entries.get(entry.Raw()); ok {
		return u, skip{}
	}
	u, why := r.read(entry, 2)
	if why == (skip{}) {
		r.entries.put(entry.Raw(), u)
	}
	return u, why
}

package whatif

import (
	"container/heap"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// counts are what counts against each limit, at an instant that only rises.
type counts map[counted]*counter

// counted is what tells limits apart that count differently.
type counted struct {
	scope  policy.Scope
	window policy.Window
}

// counter is what counts now, and when each of it stops.
type counter struct {
	usd  payment.USD
	n    int64
	ends byEnd
}

// use is what counts against l at now.
func (c counts) use(l policy.Limit, now time.Time) policy.Use {
	k := c[counted{l.Scope, l.Window}]
	if k == nil {
		return policy.Use{Limit: l}
	}
	for len(k.ends) > 0 && !k.ends[0].at.After(now) {
		e := heap.Pop(&k.ends).(ending)
		k.usd, k.n = k.usd-e.usd, k.n-1
	}
	return policy.Use{Limit: l, USD: k.usd, Count: k.n}
}

// add has usd count against l: in every window up to until, or without end where
// that is zero, and then as the window says unless it was released at until.
func (c counts) add(l policy.Limit, usd payment.USD, until time.Time, released bool) error {
	key := counted{l.Scope, l.Window}
	k := c[key]
	if k == nil {
		k = &counter{}
		c[key] = k
	}
	s, ok := k.usd.Add(usd)
	if !ok {
		usd = payment.MaxUSD - k.usd // what is more makes no difference
		s = payment.MaxUSD
	}
	k.usd, k.n = s, k.n+1
	if until.IsZero() {
		return nil
	}
	end := until
	switch {
	case released:
	case l.Window.Kind == policy.Ever:
		return nil
	case l.Window.Kind == policy.Rolling:
		end = until.Add(l.Window.Length)
	default:
		var err error
		if _, end, err = l.Window.Bounds(until); err != nil {
			return err
		}
	}
	heap.Push(&k.ends, ending{end, usd})
	return nil
}

// ending is when something stops counting.
type ending struct {
	at  time.Time
	usd payment.USD
}

// byEnd is a heap.
type byEnd []ending

func (h byEnd) Len() int           { return len(h) }
func (h byEnd) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h byEnd) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byEnd) Push(x any)        { *h = append(*h, x.(ending)) }
func (h *byEnd) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// decided is a payment and when it was decided for good.
type decided struct {
	at time.Time
	e  ledger.Entry
}

// byTime is a heap.
type byTime []decided

func (h byTime) Len() int { return len(h) }
func (h byTime) Less(i, j int) bool {
	if c := h[i].at.Compare(h[j].at); c != 0 {
		return c < 0
	}
	return h[i].e.ID < h[j].e.ID
}
func (h byTime) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *byTime) Push(x any)   { *h = append(*h, x.(decided)) }
func (h *byTime) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = decided{}
	*h = old[:len(old)-1]
	return x
}

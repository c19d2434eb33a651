package check

import (
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// Past remembers a ledger from one Run to the next. The zero value knows
// nothing yet.
type Past struct {
	heads map[payment.ID]head
	seen  map[payment.ID]bool // in this Run
}

type head struct {
	version int64
	hash    payment.Hash
}

// payment is I9 over time: a payment goes on from where it was.
func (p *Past) payment(c *checking, e *ledger.Entry, events []ledger.Event) {
	if p == nil {
		return
	}
	if p.heads == nil {
		p.heads = map[payment.ID]head{}
	}
	if p.seen == nil {
		p.seen = map[payment.ID]bool{}
	}
	was := p.heads[e.ID]
	switch {
	case e.Version < was.version:
		c.found(e, "I9: it has %d events, and had %d", e.Version, was.version)
	case was.version > 0 && int64(len(events)) >= was.version && events[was.version-1].Hash != was.hash:
		c.found(e, "I9: its event %d is not what it was", was.version)
	default:
		p.heads[e.ID] = head{e.Version, e.Head}
	}
	p.seen[e.ID] = true
}

// finish finds payments that are gone.
func (p *Past) finish(c *checking) {
	if p == nil {
		return
	}
	for id := range p.heads {
		if !p.seen[id] {
			c.add(string(id) + ": I9: it is gone")
		}
	}
	p.seen = nil
}

package canopy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/payment"
)

const (
	probeTime = 2 * time.Second  // what balances and clocks of chains may cost a payment
	probeAge  = 10 * time.Second // how old a figure may be
	shortAge  = time.Second      // how old one may be that stops a payment
	maxAhead  = 30 * time.Second // of a chain's latest block
)

// CodeInsufficientBalance is the code of a denial where the account is known to
// hold too little on every chain that the seller takes.
const CodeInsufficientBalance = "insufficient_balance"

// probe is a figure of a chain as it was last read. The zero value was not.
type probe struct {
	at    time.Time
	value Units
	ahead time.Duration // of the chain's latest block over our clock
	err   error
	busy  bool // somebody reads it now
}

type probeKey struct {
	chain ChainID
	token Address // zero for the chain's clock
}

// probes keeps what was read of chains for some seconds. One caller reads a
// figure at a time; meanwhile the last one is there for others until it is old.
type probes struct {
	mu sync.Mutex
	m  map[probeKey]probe
}

// get returns the figure, read anew where it is older than age says. What was
// not read because ctx ended is not kept.
func (k *probes) get(ctx context.Context, key probeKey, now time.Time, age func(probe) time.Duration, read func(*probe) error) probe {
	k.mu.Lock()
	p, ok := k.m[key]
	old := now.Sub(p.at)
	switch {
	case ok && old >= 0 && old < age(p):
		k.mu.Unlock()
		return p
	case p.busy:
		k.mu.Unlock()
		return probe{err: errUnread}
	}
	if k.m == nil {
		k.m = make(map[probeKey]probe)
	}
	if !ok {
		p.err = errUnread
	}
	p.busy = true
	k.m[key] = p
	k.mu.Unlock()

	p = probe{at: now}
	p.err = safely(func() error { return read(&p) })
	k.mu.Lock()
	defer k.mu.Unlock()
	if ctx.Err() != nil {
		delete(k.m, key)
	} else {
		k.m[key] = p
	}
	return p
}

// safely is f with a panic made an error.
func safely(f func() error) (err error) {
	defer recovered(&err, "the chain")
	return f()
}

var errUnread = errors.New("canopy: another call reads it")

// funds looks at balances and clocks before a payment on one of these offers.
// Those that the account covers come first, then those whose balance could not be
// read; poor are the ones that it is known to have too little for, with verdicts
// that deny. Nothing here waits for more than probeTime in all, and what cannot
// be read stops nothing.
func (c *Client) funds(ctx context.Context, offers []offered) (usable, poor []offered, err error) {
	if len(c.cfg.Treasury.Chains) == 0 || len(offers) == 0 || c.Address() == (Address{}) {
		return offers, nil, nil
	}
	bounded, cancel := clock.WithTimeout(ctx, c.cfg.Clock, probeTime)
	defer cancel()
	var unread []offered
	for _, o := range offers {
		chain := c.chain(o.terms.Asset.Chain)
		if chain == nil {
			o.unread = fmt.Sprintf("the balance on %s is unknown: no rpc is configured for that chain", o.terms.Asset.Chain.Name())
			unread = append(unread, o)
			continue
		}
		if err := c.skew(ctx, bounded, chain); err != nil {
			return nil, nil, err
		}
		held, err := c.balance(ctx, bounded, chain, o.terms)
		switch {
		case errors.Is(err, errUnread):
			o.unread = fmt.Sprintf("the balance on %s is unknown: another call is still reading it", chain.ID().Name())
			unread = append(unread, o)
		case err != nil:
			o.unread = fmt.Sprintf("the balance on %s is unknown: none of its nodes answered", chain.ID().Name())
			unread = append(unread, o)
		case held.Cmp(needs(o.terms)) >= 0:
			usable = append(usable, o)
		default:
			poor = append(poor, o.denied(shortOf(o.terms, held)))
		}
	}
	return append(usable, unread...), poor, nil
}

// funded is funds for a single offer: it comes back with a verdict that denies
// where the account is known to hold too little.
func (c *Client) funded(ctx context.Context, o offered) (offered, error) {
	usable, poor, err := c.funds(ctx, []offered{o})
	if err != nil {
		return o, err
	}
	return append(usable, poor...)[0], nil
}

// denied is o with a verdict that says no for one reason more.
func (o offered) denied(r Reason) offered {
	v := o.verdict
	v.Status = payment.Denied
	v.Reasons = append([]Reason{r}, v.Reasons...)
	o.verdict = v
	return o
}

// needs is what the account has to hold for t: fees are paid in the token too.
func needs(t payment.Terms) Units {
	fee, ok := t.Asset.Units(t.FeeBound)
	if sum, fits := t.Amount.Add(fee); ok && fits {
		return sum
	}
	return payment.UnitsFromBytes(allOnes)
}

var allOnes = [32]byte(bytes.Repeat([]byte{0xff}, 32))

func shortOf(t payment.Terms, have Units) Reason {
	held, _ := t.Asset.Value(have)
	amount, _ := t.Asset.Value(t.Amount)
	return Reason{
		Status: payment.Denied, Code: CodeInsufficientBalance, Cost: t.Cost(),
		Text: fmt.Sprintf("Insufficient balance: %s is needed, and the account holds %s of %s", costText(amount, t.FeeBound), held, t.Asset),
	}
}

// balance is what the account holds of the token that the terms move.
func (c *Client) balance(ctx, bounded context.Context, chain Chain, t payment.Terms) (Units, error) {
	age := func(p probe) time.Duration {
		if p.err == nil && p.value.Cmp(needs(t)) < 0 {
			return shortAge
		}
		return probeAge
	}
	p := c.probes.get(ctx, probeKey{chain.ID(), t.Asset.Address}, c.cfg.Now(), age, func(p *probe) (err error) {
		p.value, err = chain.Balance(bounded, t.Asset, c.Address())
		return err
	})
	return p.value, p.err
}

// skew is an error where the chain's newest block is further ahead of our clock
// than clocks may differ: then ours is behind, and windows of time cannot be
// trusted.
func (c *Client) skew(ctx, bounded context.Context, chain Chain) error {
	k, ok := chain.(Timekeeper)
	if !ok {
		return nil
	}
	age := func(p probe) time.Duration {
		if p.ahead > maxAhead && !p.busy { // nobody slips by while another call reads
			return shortAge
		}
		return probeAge
	}
	p := c.probes.get(ctx, probeKey{chain: chain.ID()}, c.cfg.Now(), age, func(p *probe) error {
		b, err := k.Latest(bounded)
		p.ahead = b.Time.Sub(c.cfg.Now())
		return err
	})
	if p.err != nil || p.ahead <= maxAhead {
		return nil
	}
	return fmt.Errorf("canopy: nothing was signed: %w: the latest block of %s is %s ahead of this machine: set its clock",
		ErrClockSkew, chain.ID().Name(), p.ahead.Round(time.Second))
}

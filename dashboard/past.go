package dashboard

import (
	"context"
	"fmt"
	"strings"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// past is what was paid before to whom a payment would go.
type past struct {
	Lines []pastLine
	New   bool // somebody in it was never paid before
}

// pastLine is one fact; New marks the ones to look at twice.
type pastLine struct {
	New  bool
	Text string
}

// maxPast is how many payments are looked at for each: more than that is "more
// than".
const maxPast = 10

// records looks up what was paid and what counts, once for each payee, host and
// cap of a page.
type records struct {
	p      *Page
	h      ledger.Historian // nil where the store has no such power
	uses   map[policy.Limit]policy.Use
	payees map[payment.Address][]ledger.Entry
	hosts  map[[2]string][]ledger.Entry
}

func (p *Page) records() *records {
	h, _ := p.cfg.Store.(ledger.Historian)
	return &records{p, h, map[policy.Limit]policy.Use{}, map[payment.Address][]ledger.Entry{}, map[[2]string][]ledger.Entry{}}
}

// use is what counts against limits now.
func (r *records) use(ctx context.Context, limits []policy.Limit) ([]policy.Use, error) {
	var missing []policy.Limit
	for _, l := range limits {
		if _, ok := r.uses[l]; !ok {
			missing = append(missing, l)
		}
	}
	found, err := r.p.uses(ctx, missing)
	if err != nil {
		return nil, err
	}
	for i, l := range missing {
		r.uses[l] = found[i]
	}
	out := make([]policy.Use, len(limits))
	for i, l := range limits {
		out[i] = r.uses[l]
	}
	return out, nil
}

func (r *records) payee(ctx context.Context, to payment.Address) ([]ledger.Entry, error) {
	if found, ok := r.payees[to]; ok {
		return found, nil
	}
	found, err := r.h.PaidPayee(ctx, to, maxPast)
	if err == nil {
		r.payees[to] = found
	}
	return found, err
}

func (r *records) host(ctx context.Context, agent, host string) ([]ledger.Entry, error) {
	k := [2]string{agent, host}
	if found, ok := r.hosts[k]; ok {
		return found, nil
	}
	found, err := r.h.PaidHost(ctx, agent, host, maxPast)
	if err == nil {
		r.hosts[k] = found
	}
	return found, err
}

// pastOf looks up who was paid before.
func (p *Page) pastOf(ctx context.Context, h *records, ap ledger.Approval, host string) (past, error) {
	var out past
	if h.h == nil {
		return out, nil
	}
	say := func(isNew bool, format string, args ...any) {
		out.Lines = append(out.Lines, pastLine{isNew, fmt.Sprintf(format, args...)})
		out.New = out.New || isNew
	}
	seen := map[payment.Address]bool{}
	for _, r := range ap.Terms.Recipients {
		if seen[r.Address] {
			continue
		}
		seen[r.Address] = true
		paid, err := h.payee(ctx, r.Address)
		if err != nil {
			return out, err
		}
		if len(paid) == 0 {
			say(true, "Never paid before: nothing on this ledger went to %s.", r.Address)
			continue
		}
		last := paid[0]
		say(false, "%s was paid %s, last %s by agent %s, %s.", r.Address, timesOf(len(paid)), last.Terms.Cost(), clean(last.Agent, 100), p.moment(last.CreatedAt).Away)
	}
	if host == "" {
		return out, nil
	}
	paid, err := h.host(ctx, ap.Agent, host)
	if err != nil {
		return out, err
	}
	if len(paid) == 0 {
		say(true, "Agent %s never paid at %s before.", clean(ap.Agent, 100), host)
		return out, nil
	}
	path, _, _ := strings.Cut(ap.Terms.Target, "?")
	for _, e := range paid {
		if other, _, _ := strings.Cut(e.Terms.Target, "?"); e.Terms.Method != ap.Terms.Method || other != path {
			continue
		}
		say(false, "The same request (%s %s) cost %s %s: %s.", clean(e.Terms.Method, 20), clean(path, 200), e.Terms.Cost(), p.moment(e.CreatedAt).Away, difference(ap.Terms.Cost(), e.Terms.Cost()))
		return out, nil
	}
	say(false, "Agent %s paid at %s %s, last %s %s; never for this request.", clean(ap.Agent, 100), host, timesOf(len(paid)), paid[0].Terms.Cost(), p.moment(paid[0].CreatedAt).Away)
	return out, nil
}

func timesOf(n int) string {
	switch {
	case n >= maxPast:
		return fmt.Sprintf("%d times or more before", maxPast)
	case n == 1:
		return "once before"
	}
	return fmt.Sprintf("%d times before", n)
}

// difference compares a price to the one before.
func difference(now, before payment.USD) string {
	switch {
	case now == before:
		return "the same price"
	case now < before:
		less, _ := before.Sub(now)
		return "this is " + less.String() + " less"
	}
	more, _ := now.Sub(before)
	if before <= 0 || now > payment.MaxUSD/10 {
		return "this is " + more.String() + " more"
	}
	tenths := int64(now) * 10 / int64(before)
	if tenths >= 20 && tenths%10 == 0 {
		return fmt.Sprintf("this is %s more, %d times as much", more, tenths/10)
	}
	if tenths >= 20 {
		return fmt.Sprintf("this is %s more, %d.%d times as much", more, tenths/10, tenths%10)
	}
	return "this is " + more.String() + " more"
}

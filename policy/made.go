package policy

import (
	"slices"
	"sync/atomic"

	"github.com/canopy-go/canopy/payment"
)

// limits are the caps of t and of [org] that apply to pay, with the host and
// the payees that it has.
func (p *Policy) limits(t *table, pay *payment.Payment) []Limit {
	at := &t.made[0]
	if t.hostCaps {
		at = &t.made[slotOf(pay.Host)]
	}
	made := at.Load()
	if made == nil || !made.of(t, pay) {
		made = p.make(t, pay)
		at.Store(made)
	}
	return made.limits
}

// limitsMade are the limits that a table made last, by host: a few, since a
// payment often goes where others went. Nobody changes them.
type limitsMade [16]atomic.Pointer[made]

type made struct {
	host   string            // where there are caps per host
	run    string            // where there are caps per run
	payees []payment.Address // where there are caps per payee
	limits []Limit
}

func slotOf(host string) uint8 {
	h := uint32(2166136261) // FNV-1a
	for i := range len(host) {
		h = (h ^ uint32(host[i])) * 16777619
	}
	return uint8(h>>16) % uint8(len(limitsMade{}))
}

// of reports whether m is what t would make for pay.
func (m *made) of(t *table, pay *payment.Payment) bool {
	if t.hostCaps && m.host != pay.Host {
		return false
	}
	if t.runCaps && m.run != pay.Run {
		return false
	}
	if t.payeeCaps == 0 {
		return true
	}
	return slices.EqualFunc(m.payees, pay.Terms.Recipients, func(a payment.Address, r payment.Recipient) bool { return a == r.Address })
}

func (p *Policy) make(t *table, pay *payment.Payment) *made {
	m := &made{}
	if t.hostCaps {
		m.host = pay.Host
	}
	if t.runCaps {
		m.run = pay.Run
	}
	add := func(l Limit) {
		switch l.Scope.Kind {
		case ScopeHost:
			if l.Scope.Host = pay.Host; pay.Host != "" { // a transfer has none
				m.limits = append(m.limits, l)
			}
		case ScopeRun:
			if l.Scope.Name = pay.Run; pay.Run != "" { // what judges without a client has none
				m.limits = append(m.limits, l)
			}
		case ScopePayee:
			for j := range pay.Terms.Recipients {
				if l.Scope.Payee = pay.Terms.Recipients[j].Address; !named(pay.Terms.Recipients[:j], l.Scope.Payee) {
					m.limits = append(m.limits, l)
				}
			}
		default:
			m.limits = append(m.limits, l)
		}
	}
	for _, l := range t.caps {
		add(l)
	}
	for _, l := range t.totals {
		add(l)
	}
	if t.payeeCaps > 0 {
		for i := range pay.Terms.Recipients {
			m.payees = append(m.payees, pay.Terms.Recipients[i].Address)
		}
	}
	m.limits = slices.Clip(append(m.limits, p.caps...))
	return m
}

func named(list []payment.Recipient, a payment.Address) bool {
	for i := range list {
		if list[i].Address == a {
			return true
		}
	}
	return false
}

package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// setup is what a seed makes of a world before it begins.
type setup struct {
	procs  int
	agents []string
	fleet  bool // processes on machines of their own, with clocks of their own
	calm   bool // no disk, network or signer fails by itself
	nodes  int  // RPC nodes of an EVM chain; 0 for a ledger that can ask nobody
	others int  // the same of Tempo
	lanes  int  // of the pool on Tempo
	caps   []limit
	asks   map[string]payment.USD // by table: approve_above; absent where it never asks
	quorum map[string]int         // by table: how many of the named people have to say yes; absent where nobody is named
	ttl    time.Duration
	guard  time.Duration // duplicate_window
	valid  time.Duration // max_validity
}

// limit is a cap as the simulator itself counts it.
type limit struct {
	table string // "" for [org]
	scope string // "", host or payee
	usd   payment.USD
	count int64 // a cap on the number where it is not 0
	span  time.Duration
	day   bool
}

// rate is one chance in n, never in a calm world.
func (s *setup) rate(n int) int {
	if s.calm {
		return 0
	}
	return n
}

const table = "alice" // the agent with rules of its own; the others share the default ones

func newSetup(rng *rand.Rand) setup {
	pick := func(list ...payment.USD) payment.USD { return list[rng.IntN(len(list))] }
	span := func() time.Duration {
		return []time.Duration{5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}[rng.IntN(4)]
	}
	const cent = payment.Cent
	s := setup{
		procs: 2 + rng.IntN(7), agents: []string{table, "bob", "carol"}[:1+rng.IntN(3)],
		fleet: rng.IntN(2) == 0, calm: rng.IntN(10) == 0, nodes: []int{0, 1, 1, 2, 2, 3}[rng.IntN(6)], others: []int{0, 1, 1, 2, 2, 2, 2, 3}[rng.IntN(8)], lanes: []int{1, 3, 5, 8, 8, 16}[rng.IntN(6)],
		ttl: 5 * time.Minute, guard: 90 * time.Second, valid: []time.Duration{30, 60, 60, 120}[rng.IntN(4)] * time.Second,
		asks: map[string]payment.USD{}, quorum: map[string]int{},
	}
	for _, t := range []string{"default", table} {
		s.caps = append(s.caps,
			limit{table: t, usd: pick(150*cent, 300*cent, 500*cent), span: span()},
			limit{table: t, scope: "host", usd: pick(90*cent, 180*cent), span: span()},
			limit{table: t, count: int64(5 + rng.IntN(25)), span: span()},
		)
		if rng.IntN(2) == 0 {
			s.caps = append(s.caps, limit{table: t, scope: "payee", usd: pick(90*cent, 150*cent), span: span()})
		}
		if rng.IntN(2) == 0 {
			s.asks[t] = pick(10*cent, 18*cent, 25*cent)
		}
	}
	s.caps = append(s.caps, limit{usd: pick(300*cent, 700*cent), span: span()})
	if rng.IntN(2) == 0 {
		s.caps = append(s.caps, limit{usd: 2000 * cent, day: true})
	}
	for _, t := range []string{"default", table} {
		if n := rng.IntN(4); n > 0 && n < 3 {
			s.quorum[t] = n
		}
	}
	return s
}

// String is l as a policy document writes it.
func (l limit) String() string {
	out := l.usd.String()
	if l.count > 0 {
		out = fmt.Sprintf("%d payments", l.count)
	}
	if l.day {
		out += " / day"
	} else {
		out += fmt.Sprintf(" / %dm", int(l.span.Minutes()))
	}
	if l.scope != "" {
		out += " per " + l.scope
	}
	return out
}

// document is the policy of the world.
func (s *setup) document() string {
	caps := func(table string) string {
		var out []string
		for _, l := range s.caps {
			if l.table == table {
				out = append(out, fmt.Sprintf("%q", l))
			}
		}
		return "caps = [" + strings.Join(out, ", ") + "]\n"
	}
	doc := "[org]\nname = \"Sim\"\n" + caps("")
	for _, t := range []string{"default", table} {
		doc += fmt.Sprintf("[policy.%s]\n%sallow = [\"*\"]\nmax_payment = \"$1\"\nduplicate_window = \"%ds\"\nmax_validity = \"%ds\"\napproval_ttl = \"%ds\"\n",
			t, caps(t), int(s.guard.Seconds()), int(s.valid.Seconds()), int(s.ttl.Seconds()))
		if above, ok := s.asks[t]; ok {
			doc += fmt.Sprintf("approve_above = %q\n", above)
		}
		if n, ok := s.quorum[t]; ok {
			doc += fmt.Sprintf("approvers = [\"%s\"]\nquorum = %d\n", strings.Join(named, "\", \""), n)
		}
	}
	return doc
}

// named are the people whom policies name, where they name anybody; the others
// have credentials too.
var (
	named  = []string{"ana", "ben", "cyd"}
	others = []string{"dan"}
)

// tableOf is the table that judges an agent.
func tableOf(agent string) string {
	if agent == table {
		return table
	}
	return "default"
}

// newSellers are the facilitator and the hosts of a world.
func (w *world) newSellers() {
	w.facilitator = &seller{w: w, host: "the facilitator", manners: []manner{honest, honest}}
	for range 1 + w.rng.IntN(4) {
		m := []manner{dropBefore, dropAfter, sayFailed, settleSayFailed, sayUsed, pending, forge}[w.rng.IntN(7)]
		w.facilitator.manners = append(w.facilitator.manners, m)
	}
	for i, name := range []string{"alpha", "beta", "gamma", "delta"} {
		s := &seller{w: w, host: name + ".example", to: canopytest.Address(name), price: payment.USD(3+w.rng.IntN(30)) * payment.Cent}
		s.valid = []time.Duration{20, 60, 60, 300, 3600}[w.rng.IntN(5)] * time.Second
		if i == 3 {
			s.to = canopytest.Address("gamma") // one payee behind two hosts
		}
		if w.rng.IntN(3) == 0 {
			s.fee = payment.USD(1+w.rng.IntN(5)) * payment.Cent
		}
		if w.rng.IntN(3) == 0 {
			s.walk = payment.USD(1+w.rng.IntN(4)) * payment.Cent
		}
		s.speak = w.protocols
		if n := w.rng.IntN(3); n < len(w.protocols) && len(w.protocols) > 1 {
			s.speak = w.protocols[n : n+1]
		}
		s.lasts = []time.Duration{30, 90, 300, 3600}[w.rng.IntN(4)] * time.Second
		s.sponsor, s.push, s.sticks = w.chance(3), w.chance(4), w.chance(5)
		s.push = s.push && !s.sponsor
		if w.chance(3) {
			s.splits = 1 + w.rng.IntN(2)
		}
		s.manners = []manner{honest, honest}
		if w.chance(3) {
			s.manners = append(s.manners, sayAgain, sayAgain, settleAgain)
		}
		for range 2 + w.rng.IntN(6) {
			s.manners = append(s.manners, manner(w.rng.IntN(int(slow)+1)))
		}
		w.sellers[s.host] = s
		w.hosts = append(w.hosts, s)
	}
}

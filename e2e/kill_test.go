//go:build e2e

package e2e

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/canopy-go/canopy/ledger"
)

// The phases of a payment in which a kill can fall: before the commit that takes the hold, between it and the
// sending of what it allowed, between that and the commit that records the outcome, and after it.
const (
	beforeHold = iota
	beforeSending
	beforeOutcome
	afterOutcome
	phases
)

var phaseNames = [phases]string{"before the hold", "before sending", "before the outcome", "after the outcome"}

const (
	killLanes   = 4 // each with a key, a ledger and a hostile seller of its own
	laneKills   = 50
	laneCap     = 110 // cents, as of each payment
	killUnits   = 10_000
	leastKills  = 20 // in each phase
	recoverTime = 2 * time.Second
)

// TestKill kills the program with SIGKILL 200 times while it pays hostile sellers, at random moments in every
// phase of a payment. After each kill the next start takes less than two seconds to put the ledger in order,
// every authorization that the seller has is in the ledger, and nothing was paid twice. Then the sellers
// harvest up to the cap and settle at the last second, and when the last authorization is dead all is settled or
// released, to the unit that the chain shows.
func TestKill(t *testing.T) {
	t.Parallel()
	seed := seedOf(t)
	t.Logf("E2E_SEED=%d", seed)
	c := NewChain(t)
	sellers := []*Seller{NewSeller(t, c, 2), NewSeller(t, c, 1)}
	lanes := make([]*lane, killLanes)
	for i := range lanes {
		lanes[i] = newLane(t, c, sellers[i%2], seed+uint64(i))
	}
	start := time.Now()
	t.Run("kills", func(t *testing.T) {
		for i, l := range lanes {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for l.kills < laneKills && !t.Failed() {
					l.kill(t)
				}
				l.fill(t)
			})
		}
	})
	if t.Failed() {
		return
	}
	var fell [phases]int
	kills, slowest := 0, time.Duration(0)
	for _, l := range lanes {
		for p, n := range l.fell {
			fell[p] += n
		}
		kills, slowest = kills+l.kills, max(slowest, l.slowest)
	}
	for p, n := range fell {
		if n < leastKills {
			t.Errorf("%d kills fell %s, want at least %d", n, phaseNames[p], leastKills)
		}
	}
	for i, l := range lanes {
		t.Logf("lane %d: %d kills in %d runs: %v", i, l.kills, l.runs, l.fell)
	}
	t.Logf("%d kills in %v: %v %q; the slowest recovery took %v", kills, time.Since(start).Round(time.Second), fell, phaseNames, slowest.Round(time.Millisecond))

	late := lastSecond(t, c, lanes)
	moved := map[common.Address]uint64{}
	for i, l := range lanes {
		paid := l.end(t)
		moved[l.h.seller.PayTo] += paid
		t.Logf("lane %d: %d cents of the cap's %d moved", i, paid/killUnits, laneCap)
	}
	for payee, units := range moved {
		if got := c.BalanceOf(t, payee); got != units {
			t.Errorf("the payee %v has %d, and the ledgers say %d", payee, got, units)
		}
	}
	if late == 0 {
		t.Error("no authorization was settled at the last second")
	}
	t.Logf("%d authorizations were settled at the last second", late)
}

// seedOf is that of E2E_SEED, or a new one.
func seedOf(t testing.TB) uint64 {
	seed := rand.Uint64()
	if s := os.Getenv("E2E_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatal(err)
		}
	}
	return seed
}

// lane is one payer and its seller.
type lane struct {
	*shell
	h    *hostile
	rand *rand.Rand

	runs, kills int
	fell        [phases]int
	slowest     time.Duration
	whole       time.Duration // what a run takes, about
	close       aim
}

// aim is how long after a moment kills fall into a narrow phase, learned from where they fell.
type aim struct{ d time.Duration }

func (a *aim) pick(r *rand.Rand) time.Duration {
	return time.Duration(float64(a.d) * (0.5 + r.Float64()))
}

func (a *aim) learn(early, late bool) {
	switch {
	case early:
		a.d = min(a.d*5/4, 200*time.Millisecond)
	case late:
		a.d = max(a.d*4/5, 50*time.Microsecond)
	}
}

func newLane(t *testing.T, c *Chain, s *Seller, seed uint64) *lane {
	network := fmt.Sprintf("%s[[chain]]\nid = \"base\"\nrpc = [%q]\n", allowLoopback, c.URL)
	rules := fmt.Sprintf("[policy.default]\nmax_payment = \"$1\"\ncaps = [\"$%d.%02d / 24h\"]\nallow = [\"host:127.0.0.1\"]\n", laneCap/100, laneCap%100)
	sh, h := newShell(t, c, rules, network, 10*laneCap*killUnits), newHostile(t, s, seed)
	sh.env = []string{"SSL_CERT_FILE=" + h.certificate(t, sh.dir)}
	return &lane{
		shell: sh, h: h, rand: rand.New(rand.NewPCG(seed, 2)),
		whole: 400 * time.Millisecond, close: aim{3 * time.Millisecond},
	}
}

func (l *lane) fetch() []string {
	return []string{"fetch", "-s", "-o", os.DevNull, "--key", fmt.Sprint("key-", l.runs), fmt.Sprintf("%s/cent?%d", l.h.URL, l.runs)}
}

// shot is when a kill falls: in a phase, or anywhere.
type shot struct {
	phase int           // -1 for anywhere
	delay time.Duration // after the moment with which the phase begins
	slow  time.Duration // of the seller's greeting, which is between the hold and the sending
}

// take aims one kill of three at no phase, and the others where the fewest fell.
func (l *lane) take() shot {
	within := func(d time.Duration) time.Duration { return time.Duration(l.rand.Int64N(int64(d))) }
	s := shot{phase: -1, delay: within(l.whole), slow: within(2) * 20 * time.Millisecond}
	if l.rand.IntN(3) == 0 {
		return s
	}
	for p, n := range l.fell {
		if s.phase < 0 || n < l.fell[s.phase] {
			s.phase = p
		}
	}
	switch s.phase {
	case beforeHold:
		s.delay = within(l.whole / 2)
	case beforeSending:
		s.slow = 20 * time.Millisecond
		s.delay = within(s.slow)
	case beforeOutcome:
		s.delay = within(60 * time.Millisecond)
	case afterOutcome:
		s.delay = l.close.pick(l.rand)
	}
	return s
}

// kill starts a purchase and kills it. Where it ended before, no kill is counted.
func (l *lane) kill(t *testing.T) {
	l.runs++
	shot := l.take()
	call := l.h.begin(false, shot.slow)
	moment := map[int]chan struct{}{beforeSending: call.greeted, beforeOutcome: call.sent, afterOutcome: call.answered}[shot.phase]
	cmd := l.command(l.fetch()...)
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		if moment != nil {
			select {
			case <-moment:
			case <-ended:
				return
			}
		}
		select {
		case <-time.After(shot.delay):
			cmd.Process.Kill() // it may have ended
		case <-ended:
		}
	})
	err := cmd.Wait()
	close(ended)
	killer.Wait()
	var exit *exec.ExitError
	killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	if !killed {
		l.whole = (l.whole*3 + time.Since(begun)) / 4
		if code := cmd.ProcessState.ExitCode(); code != 0 && code != 5 && code != 6 {
			t.Errorf("run %d ended with %d", l.runs, code)
		}
		if shot.phase == afterOutcome {
			l.close.learn(false, true)
		}
		return
	}
	l.kills++
	l.recover(t)
	phase := l.look(t, reached(call.sent))
	l.fell[phase]++
	if shot.phase == afterOutcome {
		l.close.learn(phase < shot.phase, false)
	}
}

// recover starts the program again, once to reconcile and once to buy the same, and has it verify the ledger. A
// purchase has recovered when it asks the seller.
func (l *lane) recover(t *testing.T) {
	args, came := []string{"reconcile"}, make(chan struct{})
	if l.kills%2 == 0 {
		args, came = l.fetch(), l.h.begin(true, 0).came
	}
	begun, took := time.Now(), make(chan time.Duration, 1)
	over := make(chan struct{})
	go func() {
		select {
		case <-came:
		case <-over:
		}
		took <- time.Since(begun)
	}()
	r := l.exec(t, 0, args...)
	close(over)
	l.recovered(t, r, <-took)
	if r.code != 0 && (args[0] == "reconcile" || r.code != 5 && r.code != 6) {
		t.Errorf("%s\nafter a kill", r)
	}
	l.run(t, 0, "ledger", "verify")
}

// recovered judges how long a recovery took. On a machine that is busy with other things, what a start takes
// that has nothing to recover is not counted.
func (l *lane) recovered(t *testing.T, r ran, took time.Duration) {
	if took > recoverTime {
		begun := time.Now()
		l.run(t, 0, "ledger", "list")
		took -= time.Since(begun)
	}
	if l.slowest = max(l.slowest, took); took > recoverTime {
		t.Errorf("%s\nrecovery took %v", r, took)
	}
}

// look opens the ledger and tells in which phase the last kill fell. Everything that the seller has, and
// everything that moved, has to be there.
func (l *lane) look(t *testing.T, sent bool) int {
	s := l.open(t)
	defer s.Close()
	reckon(t, l.chain, s, l.payer.Address)
	slots := map[string]bool{}
	phase := beforeHold
	for _, e := range entries(t, s) {
		slots[hex.EncodeToString(e.Slot.NonceID[:])] = true
		if e.State == ledger.Authorized {
			t.Errorf("payment %s of a dead process is still authorized", e.ID)
		}
		if e.Key != fmt.Sprint("key-", l.runs) || e.AuthorizedAt.IsZero() {
			continue
		}
		events, err := s.Events(t.Context(), e.ID)
		if err != nil {
			t.Fatal(err)
		}
		phase = afterOutcome
		for _, ev := range events {
			if ev.From == ledger.Authorized && ev.By == ledger.ByRecovery {
				phase = beforeSending
				if sent {
					phase = beforeOutcome
				}
			}
		}
	}
	for _, a := range l.h.harvested() {
		if !slots[hex.EncodeToString(a.nonce[:])] {
			t.Errorf("the seller has an authorization %x that the ledger does not know", a.nonce)
		}
	}
	return phase
}

// fill buys for authorizations that the seller only keeps, until the cap is full.
func (l *lane) fill(t *testing.T) {
	l.h.mu.Lock()
	l.h.greed = true
	l.h.mu.Unlock()
	for !t.Failed() {
		l.runs++
		l.h.begin(false, 0)
		r := l.exec(t, 0, l.fetch()...)
		if r.code == 4 {
			r.has(t, "Spend cap exceeded")
			return
		}
		if r.code != 0 && r.code != 5 && r.code != 6 {
			t.Errorf("%s", r)
		}
	}
}

// lastSecond settles what the sellers kept: most of it in the last second of its validity, some never. It
// returns how many moved money.
func lastSecond(t *testing.T, c *Chain, lanes []*lane) int {
	used := func() (n int) {
		for _, l := range lanes {
			n += c.AuthorizationsUsed(t, l.payer.Address)
		}
		return n
	}
	before := used()
	for since := time.Now(); time.Since(since) < 2500*time.Millisecond; time.Sleep(100 * time.Millisecond) {
		if n := used(); n != before { // the real sellers are still at it
			before, since = n, time.Now()
		}
	}
	now := c.Now(t)
	var all []harvest
	for _, l := range lanes {
		all = append(all, l.h.harvested()...)
	}
	for i, a := range sorted(all) {
		if i%4 == 0 {
			continue
		}
		if last := int64(a.validBefore) - 1; last > now {
			c.SetNextTime(t, last)
			now = last
		}
		// One that is used or dead reverts.
		if _, err := c.SendAnyway(t.Context(), c.Faucet, a.packBytes("transferWithAuthorization", a.signature)); err != nil {
			t.Fatal(err)
		}
		now = c.Now(t)
	}
	late := used() - before
	c.Advance(t, 2*time.Minute)
	c.Mine(t, 3)
	return late
}

// end reconciles, and returns what the ledger says that was paid: all that the chain shows.
func (l *lane) end(t *testing.T) uint64 {
	l.run(t, 0, "reconcile").has(t, "waiting 0")
	l.run(t, 0, "ledger", "verify")
	s := l.open(t)
	defer s.Close()
	reckon(t, l.chain, s, l.payer.Address)
	paid, bought := uint64(0), map[string]bool{}
	for _, e := range entries(t, s) {
		switch {
		case e.State == ledger.Settled:
			if paid += uint64(e.Cost); bought[e.Terms.Target] {
				t.Errorf("%s was paid twice", e.Terms.Target)
			}
			bought[e.Terms.Target] = true
		case e.State != ledger.ExpiredUnused && e.State != ledger.Denied:
			t.Errorf("payment %s is %v when all is over", e.ID, e.State)
		}
	}
	if gone := 10*laneCap*killUnits - l.chain.BalanceOf(t, l.payer.Address); gone != paid || gone > laneCap*killUnits {
		t.Errorf("%d moved, and the ledger says %d under a cap of %d", gone, paid, laneCap*killUnits)
	}
	if frozen, err := s.Freezes(t.Context()); err != nil || len(frozen) > 0 {
		t.Errorf("frozen: %v, %v", frozen, err)
	}
	owners, err := filepath.Glob(filepath.Join(l.dir, "canopy.db-owner-*"))
	if err != nil || len(owners) > 1 { // this test's own
		t.Errorf("%s were left, %v", strings.Join(owners, ", "), err)
	}
	return paid
}

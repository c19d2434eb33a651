//go:build linux || darwin

package sqlite

import (
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// onLane is request on a lane of a pool of size.
func onLane(now time.Time, n uint64, size int, limits ...policy.Limit) ledger.Request {
	r := request(now, n, limits...)
	r.Slot, r.Lanes, r.Watched = payment.Slot{Kind: payment.SlotLane}, size, true
	return r
}

// TestLaneCrash kills a process before the commit that allots a lane and after
// it: either the lane and its payment are there, or neither is.
func TestLaneCrash(t *testing.T) {
	for name, at := range map[string]point{"before the commit": beforeCommit, "after it": afterCommit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			s := open(t, path, Options{})
			first := pay(t, s, onLane(time.Now(), 1, 1))
			for _, st := range []ledger.State{ledger.InDoubt, ledger.Settled} {
				var err error
				if first, err = s.Advance(t.Context(), ledger.Change{ID: first.ID, Version: first.Version, To: st, By: actor(st), Now: time.Now()}); err != nil {
					t.Fatal(err)
				}
			}
			start(t, child{Task: "lane and die", Path: path, Point: at}).killed()

			e, _, err := s.Reserve(t.Context(), onLane(time.Now(), 3, 1))
			if err != nil {
				t.Fatal(err)
			}
			if at == beforeCommit {
				if e.State != ledger.Authorized || e.Slot.NonceID != first.Slot.NonceID || e.Slot.Nonce != 1 {
					t.Errorf("%s on %s, want the nonce that the dead process did not take", e.State, e.Slot)
				}
			} else if e.State != ledger.Denied || e.Reasons[0].Code != ledger.CodeNoFreeLane {
				t.Errorf("%s on %s: %v, want no free lane", e.State, e.Slot, e.Reasons)
			}
			if r := verify(t, s); len(r.Problems) > 0 {
				t.Error(r.Problems)
			}
		})
	}
}

// TestLaneProcesses: processes race for four lanes, and no lane has two of them.
func TestLaneProcesses(t *testing.T) {
	const procs = 4
	path := newPath(t)
	s := open(t, path, Options{})
	var all []*process
	for range procs {
		p := start(t, child{Task: "lanes", Path: path, Payers: 4})
		if got := p.line(); got != "ready" {
			t.Fatal(got)
		}
		all = append(all, p)
	}
	for _, p := range all {
		p.tell()
	}
	for _, p := range all {
		if got := p.line(); got != "done" {
			t.Fatal(got)
		}
	}
	nonces := map[[32]byte]map[uint64]int{}
	n := 0
	for e, err := range s.Entries(t.Context(), ledger.Query{States: []ledger.State{ledger.Settled}}) {
		if err != nil {
			t.Fatal(err)
		}
		if nonces[e.Slot.NonceID] == nil {
			nonces[e.Slot.NonceID] = map[uint64]int{}
		}
		nonces[e.Slot.NonceID][e.Slot.Nonce]++
		n++
	}
	if n != procs*4*5 || len(nonces) > 4 {
		t.Errorf("%d payments on %d lanes", n, len(nonces))
	}
	for key, used := range nonces {
		for nonce := range uint64(len(used)) {
			if used[nonce] != 1 {
				t.Errorf("lane %x: nonce %d was used %d times", key[:4], nonce, used[nonce])
			}
		}
	}
	if r := verify(t, s); len(r.Problems) > 0 {
		t.Error(r.Problems)
	}
}

// TestLaneEdits: Verify finds a pool that tells something else than its
// payments, and no lane is given on the word of one.
func TestLaneEdits(t *testing.T) {
	for name, tt := range map[string]struct{ sql, says string }{
		"nonce":    {sql: `UPDATE lanes SET nonce = nonce + 1`, says: "its slot is not the one that its lane tells"},
		"key":      {sql: `UPDATE lanes SET key = zeroblob(32)`, says: "its slot is not the one that its lane tells|is missing"},
		"payment":  {sql: `UPDATE lanes SET n = 1`, says: "its lane is told to be"},
		"nobody's": {sql: `PRAGMA foreign_keys = OFF; UPDATE lanes SET n = 99`, says: "foreign_key|lanes|is missing"},
		"twice":    {sql: `INSERT INTO lanes (chain, account, key, nonce, n) SELECT chain, account, x'01', nonce, n FROM lanes`, says: "has a name that is none"},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			s := open(t, path, Options{})
			first := pay(t, s, onLane(time.Now(), 1, 1))
			for _, st := range []ledger.State{ledger.InDoubt, ledger.Settled} {
				var err error
				if first, err = s.Advance(t.Context(), ledger.Change{ID: first.ID, Version: first.Version, To: st, By: actor(st), Now: time.Now()}); err != nil {
					t.Fatal(err)
				}
			}
			second := pay(t, s, onLane(time.Now(), 2, 1))
			if second.Slot.NonceID != first.Slot.NonceID || second.Slot.Nonce != 1 {
				t.Fatalf("the lane goes on at %s", second.Slot)
			}
			edit{sql: tt.sql}.make(t, path)
			found := false
			for _, p := range verify(t, s).Problems {
				for says := range strings.SplitSeq(tt.says, "|") {
					found = found || strings.Contains(p, says)
				}
			}
			if !found {
				t.Errorf("Verify finds %v, want %q", verify(t, s).Problems, tt.says)
			}
			e, _, err := s.Reserve(t.Context(), onLane(time.Now(), 3, 1))
			if err == nil && e.State == ledger.Authorized && e.Slot.NonceID == first.Slot.NonceID {
				t.Errorf("%s was given on a word that is not true", e.Slot)
			}
			if err == nil && e.State == ledger.Authorized && e.Slot == second.Slot {
				t.Errorf("%s was given twice", e.Slot)
			}
		})
	}
}

// TestLaneRetired: lanes that are never used again do not pile up.
func TestLaneRetired(t *testing.T) {
	s := open(t, newPath(t), Options{})
	for n := range uint64(10) {
		e := pay(t, s, onLane(time.Now(), n, 2))
		for _, st := range []ledger.State{ledger.InDoubt, ledger.ExpiredUnused} {
			var err error
			c := ledger.Change{ID: e.ID, Version: e.Version, To: st, By: actor(st), Now: time.Now(), Assumed: st == ledger.ExpiredUnused}
			if e, err = s.Advance(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
	}
	var rows int64
	err := s.read(t.Context(), func(x *tx) error {
		_, err := x.c.first(`SELECT count(*) FROM lanes`, nil, &rows)
		return err
	})
	if err != nil || rows != 1 {
		t.Errorf("%d lanes are kept, %v; want the last", rows, err)
	}
}

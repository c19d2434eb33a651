package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// What the nodes show as used is not called unused, whatever an operator says; where
// they cannot tell, only a flag that says so lets it be.
func TestResolveUnusedAsksTheChain(t *testing.T) {
	t.Parallel()
	w, _ := connected(t,
		canopytest.Route{Pattern: "GET /lost", Price: 20 * payment.Cent, Faults: canopytest.Plan{canopytest.Always(canopytest.DropAfterSettling())}},
		canopytest.Route{Pattern: "GET /never", Price: 30 * payment.Cent, Faults: canopytest.Plan{canopytest.Always(canopytest.DropBeforeSettling())}},
	)
	w.want(5, "fetch", w.url+"/lost")
	w.want(5, "fetch", w.url+"/never")
	w.chain.Finalize()
	lost, never := w.entries()[0]["transactionId"].(string), w.entries()[1]["transactionId"].(string)
	unused := func(id string, more ...string) result {
		t.Helper()
		return w.want(1, append([]string{"ledger", "resolve", id, "--unused", "--reason", "no such tx", "--by", "ana", "--yes"}, more...)...)
	}
	for _, more := range [][]string{nil, {"--despite-chain"}} {
		contains(t, unused(lost, more...).err, "is not unused", "is its transfer", w.chain.Transfers()[0].TxHash, "canopy --config "+w.config+" reconcile")
	}
	contains(t, unused(never).err, "cannot tell", "it is final up to", "--despite-chain", "reconcile")
	contains(t, unused(never, "--despite-chain").err, "could not tell", "can still move money until")
	w.chain.SetDown(context.DeadlineExceeded)
	for _, id := range []string{lost, never} {
		contains(t, unused(id).err, "cannot tell", "--despite-chain")
	}
	w.want(2, "ledger", "resolve", lost, "--settled", "0x"+strings.Repeat("ab", 32), "--despite-chain", "--reason", "x", "--by", "ana", "--yes")
	w.chain.SetDown(nil)
	for _, e := range w.entries() {
		if e["state"] != "in_doubt" {
			t.Errorf("%v", e)
		}
	}
	contains(t, w.want(0, "reconcile").out, lost+"  $0.20  settled: the chain shows the transfer 0x")
}

// evidence is what a chain of a test shows of one slot.
type evidence struct {
	at         payment.Block
	used       bool
	uses       []payment.Settlement
	down, logs error
}

func (e evidence) Sources() int                                              { return 2 }
func (e evidence) Finalized(context.Context) (payment.Block, error)          { return e.at, e.down }
func (e evidence) Confirm(context.Context, payment.Settlement) (bool, error) { return false, nil }

func (e evidence) Used(context.Context, []payment.Slot, payment.Block) ([]bool, error) {
	return []bool{e.used}, nil
}

func (e evidence) BlockAt(context.Context, time.Time, payment.Block) (uint64, error) { return 1, nil }

func (e evidence) Uses(context.Context, canopy.Asset, canopy.Address, uint64, payment.Block) ([]payment.Settlement, error) {
	return e.uses, e.logs
}

func TestUsedOn(t *testing.T) {
	t.Parallel()
	valid := time.Date(2026, 5, 8, 17, 0, 0, 0, time.UTC)
	before, after := payment.Block{Number: 9, Time: valid.Add(-time.Second)}, payment.Block{Number: 9, Time: valid}
	to := []payment.Recipient{{Address: canopytest.Address("seller"), Amount: payment.UnitsOf(10_000)}}
	evm := payment.Slot{Kind: payment.SlotEVM, Chain: payment.Base, NonceID: [32]byte{1}}
	expiring := evm
	expiring.Kind = payment.SlotExpiring
	paid := func(s payment.Slot) []payment.Settlement {
		other := s
		other.NonceID[0]++
		return []payment.Settlement{{Slot: other, TxHash: "0xother", Moved: to}, {Slot: s, TxHash: "0xpaid", Block: 7, Moved: to}}
	}
	wrong := []payment.Settlement{{Slot: evm, TxHash: "0xwrong", Block: 7}}
	down := errors.New("no route")
	for _, tt := range []struct {
		name        string
		e           evidence
		slot        payment.Slot
		state       ledger.State
		shown, fail string
	}{
		{"unused and dead", evidence{at: after}, evm, ledger.InDoubt, "", ""},
		{"unused and alive", evidence{at: before}, evm, ledger.InDoubt, "", "it is final up to"},
		{"used", evidence{at: before, used: true, uses: paid(evm)}, evm, ledger.InDoubt, "0xpaid in block 7 is its transfer", ""},
		{"used otherwise", evidence{at: after, used: true, uses: wrong}, evm, ledger.InDoubt, "0xwrong in block 7 used its authorization", ""},
		{"used, and no logs", evidence{at: after, used: true, logs: down}, evm, ledger.InDoubt, "its authorization was used", ""},
		{"nobody answers", evidence{down: down}, evm, ledger.InDoubt, "", "no route"},
		{"expiring, unused and dead", evidence{at: after}, expiring, ledger.InDoubt, "", ""},
		{"expiring, unused and alive", evidence{at: before}, expiring, ledger.InDoubt, "", "it is final up to"},
		{"expiring, used", evidence{at: before, uses: paid(expiring)}, expiring, ledger.InDoubt, "0xpaid in block 7 is its transfer", ""},
		{"expiring, no logs", evidence{at: after, logs: down}, expiring, ledger.InDoubt, "", "no route"},
		{"for an operator", evidence{at: after, used: true, uses: wrong}, evm, ledger.NeedsOperator, "", ""},
		{"for an operator, paid", evidence{at: after, used: true, uses: paid(evm)}, evm, ledger.NeedsOperator, "0xpaid in block 7 is its transfer", ""},
		{"for an operator, no logs", evidence{at: after, used: true, logs: down}, evm, ledger.NeedsOperator, "", "no route"},
	} {
		entry := ledger.Entry{State: tt.state}
		entry.Slot, entry.ValidBefore, entry.AuthorizedAt = tt.slot, valid, valid.Add(-time.Minute)
		entry.Terms.Recipients = to
		shown, err := usedOn(t.Context(), tt.e, entry)
		if tt.shown == "" && shown != "" || !strings.Contains(shown, tt.shown) {
			t.Errorf("%s: shown %q, want %q", tt.name, shown, tt.shown)
		}
		if tt.fail == "" && err != nil || tt.fail != "" && (err == nil || !strings.Contains(err.Error(), tt.fail)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.fail)
		}
	}
}

// What ends the freeze of everybody is not what ends that of an agent.
func TestFrozenHint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy+"[[chain]]\nid = \"base\"\nfacilitator = \"http://127.0.0.1:1/\"\n", route("GET /cent", payment.Cent))
	w.want(0, "freeze", "--all", "--reason", "strange uses", "--by", "ana")
	for _, args := range [][]string{{"fetch", w.url + "/cent"}, {"check", w.url + "/cent"}, {"preview", payee(t), "0.05"}, {"pay", payee(t), "0.05"}} {
		r := w.want(4, args...)
		contains(t, r.err, "Everybody on this ledger is frozen. Look first", w.config+" reconcile", w.config+" unfreeze --all --reason TEXT")
		lacks(t, r.err, "by itself")
	}
	w.want(0, "unfreeze", "--all", "--reason", "explained", "--by", "ana")
	w.want(0, "freeze", "--reason", "strange prices", "--by", "ana")
	r := w.want(4, "fetch", w.url+"/cent")
	contains(t, r.err, "Agent default is frozen by itself", "unfreeze --agent default --reason TEXT")
	lacks(t, r.err, "--all", "Everybody")
	w.want(0, "unfreeze", "--agent", "default", "--reason", "explained", "--by", "ana")
	w.want(0, "fetch", w.url+"/cent")
}

package main

import (
	"encoding/json"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// A payment's own transfer is told as that, and not as a stranger's, where an
// operator had called it unused. Whoever reads it learns that all are frozen.
func TestReconcileTellsLateTransfer(t *testing.T) {
	t.Parallel()
	for _, asJSON := range []bool{false, true} {
		w, _ := connected(t, canopytest.Route{Pattern: "GET /late", Price: 20 * payment.Cent, Faults: canopytest.Plan{canopytest.Always(canopytest.AnswerAgain())}})
		if r := w.want(0, "reconcile", "--json"); r.object(t)["frozen"] != nil {
			t.Errorf("frozen from the start: %s", r.out)
		}
		w.want(5, "fetch", w.url+"/late")
		id := w.entries()[0]["transactionId"].(string)
		file, err := config.Load(w.config)
		if err != nil {
			t.Fatal(err)
		}
		s, err := file.OpenLedger()
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.Entry(t.Context(), payment.ID(id))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Advance(t.Context(), ledger.Change{ID: e.ID, Version: e.Version, To: ledger.ExpiredUnused, By: ledger.ByOperator, Who: "ana", Note: "no such tx", Now: e.ValidBefore}); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if _, err := w.seller.Harvest().SettleAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.chain.Finalize()
		tx := w.chain.Transfers()[0].TxHash
		if !asJSON {
			out := w.want(0, "reconcile").out
			contains(t, out, "LATE TRANSFER of payment "+id+" by "+tx, "an operator had called it unused", "No cap counts it", "EVERYBODY on this ledger is frozen: payment "+id, "unfreeze --all --reason TEXT")
			lacks(t, out, "not signed by this ledger")
			continue
		}
		r := w.want(0, "reconcile", "--json")
		v := r.object(t)
		use := v["foreign"].([]any)[0].(map[string]any)
		if use["transactionId"] != id || use["releasedBy"] != "operator" || use["txHash"] != tx || v["knownForeign"] != json.Number("0") {
			t.Errorf("%s", r.out)
		}
		contains(t, v["frozen"].(string), id, tx)
	}
}

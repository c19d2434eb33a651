package canopy_test

import (
	"testing"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// A transfer that was approved is carried out with the memo that its caller
// stated, also by Resume, which does not repeat it.
func TestResumeMemo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, onTempo(setup{}))
		p, err := w.client.Pay(t.Context(), canopy.Transfer{To: friend, Amount: 6 * payment.Dollar, Chain: payment.TempoTest, Memo: "invoice 7"})
		if err != nil || p.Status != canopy.PendingApproval {
			t.Fatalf("%+v, %v", p, err)
		}
		w.rule(p.ApprovalID, true)
		if r, err := w.client.Resume(t.Context(), p.PaymentID); err != nil || r.PaymentID != p.PaymentID || r.Status != canopy.Allowed {
			t.Fatalf("%+v, %v", r, err)
		}
		var memo [32]byte
		copy(memo[:], "invoice 7")
		var got []canopytest.Transfer
		for _, m := range w.chain.Transfers() {
			if m.To == friend {
				got = append(got, m)
			}
		}
		if len(got) != 1 || !got[0].HasMemo || got[0].Memo != memo {
			t.Errorf("moved %+v, want one with the memo", got)
		}
	})
}

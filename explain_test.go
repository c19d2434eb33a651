package canopy_test

import (
	"slices"
	"testing"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Explain says of a URL what CheckURL does, and what every rule says; it signs,
// reserves and stores nothing.
func TestExplain(t *testing.T) {
	for name, tc := range map[string]struct {
		price  payment.USD
		opts   []canopy.Option
		policy string
		failed []string // codes
		rules  bool
	}{
		"free":      {0, nil, "", nil, false},
		"allowed":   {dime, nil, "", nil, true},
		"pending":   {report, nil, "", []string{policy.CodeApprovalThreshold}, true},
		"denied":    {11 * payment.Dollar, nil, "", []string{policy.CodeMaxPayment, policy.CodeApprovalThreshold}, true},
		"cap":       {dime, nil, capped("$0.05 / 24h"), []string{policy.CodeCapExceeded}, true},
		"max price": {dime, []canopy.Option{canopy.WithMaxPrice(1)}, "", nil, true}, // the caller's word is no rule
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{policy: tc.policy})
				s, url := w.sells(tc.price)
				c, x, err := w.client.Explain(w.context(), url, tc.opts...)
				want, err2 := w.client.CheckURL(w.context(), url, tc.opts...)
				if err != nil || err2 != nil || c.Status != want.Status || c.Code != want.Code || c.Amount != tc.price || !want.Cached {
					t.Errorf("check %+v, %v; CheckURL says %+v, %v", c, err, want, err2)
				}
				var failed []string
				passed := 0
				for _, r := range x.Rules {
					if r.Code != "" {
						failed = append(failed, r.Code)
						if r.Fix == "" {
							t.Errorf("no fix in %+v", r)
						}
						continue
					}
					passed++
				}
				slices.Sort(failed)
				slices.Sort(tc.failed)
				if !slices.Equal(failed, tc.failed) || tc.rules != (passed > 0) || tc.rules && x.Table != "default" {
					t.Errorf("explained %+v", x)
				}
				w.signed(0)
				w.handed(s, 0)
				w.counted(0)
				for range w.store.Entries(w.context(), ledger.Query{}) {
					t.Error("it was stored")
				}
			})
		})
	}
}

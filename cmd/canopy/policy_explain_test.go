package main

import (
	"strings"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

func TestPolicyExplain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, canopytest.Route{Pattern: "/a", Price: 400_000}, canopytest.Route{Pattern: "/c", Price: 3 * payment.Dollar}, canopytest.Route{Pattern: "/free"})
	r := w.want(0, "policy", "explain", w.url+"/a")
	for _, want := range []string{"pass  max_payment $2", "pass  allow host:127.0.0.1", "pass  deny", "$0.00 + $0.40 of $3.00, $2.60 left", "0 + 1 of 100 payments, 99 left", "Judged by default."} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
	}
	r = w.want(4, "policy", "explain", w.url+"/c")
	for _, want := range []string{"FAIL  max_payment $2", "would pass with a max_payment of at least $3.00", "asks  approve_above $1", "pass  caps $3 / 24h"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
	}
	o := w.want(4, "policy", "explain", w.url+"/c", "--json").object(t)
	wantKeys(t, result{out: w.want(4, "policy", "explain", w.url+"/c", "--json").out}, "url status reason amountUsd feeUsd costUsd agent judgedBy policySha256 rules")
	if o["status"] != "denied" || o["judgedBy"] != "default" || len(o["rules"].([]any)) != 7 {
		t.Errorf("%v", o)
	}
	if o := w.want(0, "policy", "explain", w.url+"/free", "--json").object(t); len(o["rules"].([]any)) != 0 || o["judgedBy"] != nil {
		t.Errorf("%v", o)
	}
	w.want(2, "policy", "explain")
}

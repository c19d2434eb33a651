package x402_test

import "testing"

func TestRoundTrip(t *testing.T) {
	for _, doc := range []string{v2(R), v1(R1)} {
		g := grant(t, offer(t, doc))
		g.Recover = true
		a := authorize(t, g)
		t.Log(a.Header, document(t, a))
		got, err := rail(t).Decode(a, g)
		if err != nil || got.Hash() != g.Terms.Hash() {
			t.Errorf("Decode: %v, %v", got, err)
		}
	}
}

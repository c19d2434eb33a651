package mpp

import "testing"

func TestWriteAccept(t *testing.T) {
	t.Parallel()
	for want, kinds := range map[string][]acceptable{
		"":                                     nil,
		"tempo/charge":                         {{"tempo", "charge", 1000}},
		"tempo/charge, evm/charge;q=0.5":       {{"tempo", "charge", 1000}, {"evm", "charge", 500}},
		"tempo/charge;q=0.25, */session;q=0":   {{"tempo", "charge", 250}, {"*", "session", 0}},
		"a/b;q=0.001, a/c;q=0.999, a/d;q=0.01": {{"a", "b", 1}, {"a", "c", 999}, {"a", "d", 10}},
		"a/b, a/c;q=0":                         {{"a", "b", 2000}, {"a", "c", -1}},
	} {
		if got := writeAccept(kinds); got != want {
			t.Errorf("writeAccept(%v) = %q, want %q", kinds, got, want)
		}
	}
}

package policy_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain draws more than rapid's own 100 cases, unless told otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		checks := "3000"
		if raceEnabled {
			checks = "300"
		}
		if err := f.Value.Set(checks); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

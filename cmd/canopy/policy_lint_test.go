package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is about a whole table is told at its head, and nothing at line 0 that
// stands in the file.
func TestLintLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "canopy.toml")
	text := "# a policy\n[org]\nname = \"Acme\"\n[policy.default]\ncaps = [\"$5 / 24h\"]\nallow = [\"*\"]\n[policy.\"a.b\"]\nfrom = \"default\"\nduplicate_window = \"0s\"\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := call(t, t.Context(), "", "policy", "lint", path, "--json")
	if r.code != 0 {
		t.Fatalf("%+v", r)
	}
	var v struct {
		Findings []struct {
			Line int
			Code string
		}
	}
	if err := json.Unmarshal([]byte(r.out), &v); err != nil {
		t.Fatal(err)
	}
	got := map[string][]int{}
	for _, f := range v.Findings {
		got[f.Code] = append(got[f.Code], f.Line)
	}
	if diff := cmp.Diff(map[string][]int{"no_org_cap": {2}, "worst_case": {4, 7}, "no_duplicate_guard": {9}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	contains(t, call(t, t.Context(), "", "policy", "lint", path).out, path+":7: policy.a.b: note: ")
}

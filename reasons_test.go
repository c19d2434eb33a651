package canopy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every code of a reason, and those of this package's own denials, stand in
// docs/policy.md.
func TestReasonsAreDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`(?m)^\s*(?:const )?Code\w+\s*=\s*"([a-z_]+)"|\b(?:denial|deny)\("([a-z_]+)"`)
	found := map[string]bool{}
	for _, dir := range []string{".", "policy", "ledger"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range codes.FindAllStringSubmatch(string(text), -1) {
				found[m[1]+m[2]] = true
			}
		}
	}
	for _, code := range []string{"cap_exceeded", "duplicate", "insufficient_balance", "max_price", "bad_terms"} {
		if !found[code] {
			t.Errorf("the code has no %s", code)
		}
	}
	for code := range found {
		if !strings.Contains(string(doc), "`"+code+"`") {
			t.Errorf("docs/policy.md does not tell %s", code)
		}
	}
}

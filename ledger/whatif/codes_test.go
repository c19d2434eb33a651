package whatif

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Every code that package policy has is known here, as a policy's reason or as
// none that another policy could see otherwise.
func TestPolicyCodes(t *testing.T) {
	t.Parallel()
	others := map[string]bool{
		"frozen": true, "invalid_terms": true, "zero_amount": true, "amount_overflow": true, // decide by whatever policy
		"budget_exceeded":    true,                                             // is the work's own, whatever the policy
		"approval_threshold": true, "approval_total": true, "price_jump": true, // ask, and never deny
	}
	files, err := filepath.Glob("../../policy/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	n := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^\s+Code\w+\s*= "(\w+)"`).FindAllSubmatch(b, -1) {
			n++
			if code := string(m[1]); policyCodes[code] == others[code] {
				t.Errorf("%s of %s is not known", code, f)
			}
		}
	}
	if n < 20 {
		t.Errorf("%d codes found", n)
	}
}

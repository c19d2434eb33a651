package policy_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// TestDocumentation holds docs/policy.md to the code: its document loads, and
// it names every code and every key.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	_, rest, _ := strings.Cut(page, "```toml\n")
	example, _, _ := strings.Cut(rest, "```")
	p := parse(t, example)
	for _, f := range policy.Lint(p) {
		if f.Level != policy.Note {
			t.Errorf("the example: %v", f)
		}
	}
	words := map[string]bool{}
	for _, file := range []string{"evaluate.go", "apply.go", "lint.go", "lint_caps.go", "lint_habits.go", "parse.go"} {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:Code\w+ += |Code: |case |warn\(\w+, )"([a-z_]+)"`).FindAllStringSubmatch(string(src), -1) {
			words[m[1]] = true
		}
	}
	if len(words) < 40 {
		t.Errorf("only %d words found", len(words))
	}
	for w := range words {
		if !strings.Contains(page, "`"+w+"`") && !strings.Contains(page, "`["+w) {
			t.Errorf("docs/policy.md does not name %s", w)
		}
	}
}

func ExampleParse() {
	p, err := policy.Parse("canopy.toml", []byte(`
[policy.default]
max_payment   = "$10"
caps          = ["$20 / 24h"]
approve_above = "$5"
allow         = ["host:feed.example"]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	usdc := payment.KnownAssets().On(payment.Base)[0]
	amount, _ := usdc.Units(7*payment.Dollar + 50*payment.Cent)
	v := p.Evaluate(payment.Payment{
		Agent: "researcher", Host: "feed.example", Port: 443,
		Terms: payment.Terms{Asset: usdc, Amount: amount, Recipients: []payment.Recipient{{Address: payment.Address{1}, Amount: amount}}, Method: "GET"},
	}, time.Now(), policy.History{})
	fmt.Println(v.Status)
	fmt.Println(v.Reason())
	// Output:
	// pending_approval
	// Amount $7.50 exceeds approval threshold of $5
}

func ExampleLint() {
	p, err := policy.Parse("canopy.toml", []byte("[policy.default]\nmax_payment = \"$30\"\ncaps = [\"$20 / 24h\"]\nallow = [\"host:*.com\"]\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range policy.Lint(p) {
		if f.Level >= policy.Warning {
			fmt.Println(f)
		}
	}
	// Output:
	// line 2: warning: [policy.default] max_payment $30 is above the cap "$20 / 24h": no payment above $20.00 passes (above_cap)
	// line 4: warning: [policy.default] allow "host:*.com" admits names that anybody can register (broad_host)
}

type noSplits struct{}

func (noSplits) Check(p payment.Payment) (policy.Reason, error) {
	if len(p.Terms.Recipients) > 1 {
		return policy.Reason{Status: payment.Denied, Code: "splits", Text: "Splits are not paid"}, nil
	}
	return policy.Reason{}, nil
}

func ExampleNew() {
	p, err := policy.New(policy.Config{Tables: map[string]policy.Table{
		"default": {MaxPayment: "$10", Caps: []string{"$20 / 24h"}, Allow: []string{"*"}, Rules: []policy.Rule{noSplits{}}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.MaxPayment("anybody"), p.Agents())
	// Output: $10.00 [default]
}

package canopy_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/canopy-go/canopy"

// goPackage is what go list says of a package.
type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Standard   bool
	Module     *struct{ Path string }
}

// importRules are which packages of the module, beside internal/, a package may
// import, by the longest prefix that matches. Others are free.
var importRules = map[string][]string{
	"payment":   {},
	"policy":    {"payment"},
	"ledger":    {"payment", "policy"},
	"approvals": {"payment", "policy", "ledger"},
	"":          {"payment", "policy", "ledger", "approvals"},
	"x402":      {"payment"},
	"mpp":       {"payment"},
	"signer":    {"payment"},
	"chain":     {"payment"},

	"ledger/sqlite":     {"payment", "policy", "ledger"},
	"ledger/postgres":   {"payment", "policy", "ledger"},
	"ledger/ledgertest": {"payment", "policy", "ledger"},
	"ledger/whatif":     {"payment", "policy", "ledger"},
	"canopytest":        {"payment", "policy", "ledger"},
	"dashboard":         {"payment", "policy", "ledger", "approvals"}, // it can sign nothing
	"answer":            {},
}

// foreignRules are who may import a foreign module, by package prefix.
var foreignRules = map[string][]string{
	"github.com/ethereum/go-ethereum":  {"x402", "mpp", "signer", "chain", "internal/", "canopytest"},
	"modernc.org/":                     {"ledger/sqlite", "answer"},
	"github.com/jackc/":                {"ledger/postgres"},
	"github.com/modelcontextprotocol/": {"mcp", "answer"},
	"github.com/spf13/":                {"cmd/"},
	"github.com/pelletier/go-toml":     {"policy", "config", "directory"},
	"go.opentelemetry.io/":             {"telemetry"},
	"golang.org/x/net":                 {"internal/", "policy", "canopytest"},
	"golang.org/x/crypto":              {"internal/", "signer", "x402", "mpp"},
	"pgregory.net/rapid":               {"ledger/ledgertest", "canopytest"},
	"github.com/google/go-cmp":         {"ledger/ledgertest", "canopytest"},
}

// sdkModules are all the modules that a program may link by embedding the SDK
// itself, without what go-ethereum's library brings along.
var sdkModules = []string{
	module, "github.com/ethereum/go-ethereum", "golang.org/x/sync", "golang.org/x/net", "golang.org/x/crypto",
	"golang.org/x/text", "golang.org/x/sys", "github.com/pelletier/go-toml/v2",
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t, "./...") {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		allowed, ruled := importRules[name]
		for _, imp := range p.Imports {
			own, isOwn := strings.CutPrefix(imp, module)
			own = strings.TrimPrefix(own, "/")
			switch {
			case isOwn && strings.HasPrefix(own, "cmd/"):
				t.Errorf("%s imports the command %s", p.ImportPath, imp)
			case isOwn && ruled && !strings.HasPrefix(own, "internal/") && !slices.Contains(allowed, own):
				t.Errorf("%s may import %v and internal/, not %s", p.ImportPath, allowed, imp)
			}
			if !isOwn {
				checkForeign(t, name, imp)
			}
		}
		if ruled && strings.HasPrefix(name, "internal/") {
			t.Errorf("a rule names the internal package %s", name)
		}
	}
}

// checkForeign fails t where package name may not import imp.
func checkForeign(t *testing.T, name, imp string) {
	t.Helper()
	for prefix, who := range foreignRules {
		if !strings.HasPrefix(imp, prefix) {
			continue
		}
		if !slices.ContainsFunc(who, func(w string) bool {
			return name == w || strings.HasPrefix(name, w+"/") || strings.HasSuffix(w, "/") && strings.HasPrefix(name, w)
		}) {
			t.Errorf("%s imports %s, which is for %v only", name, imp, who)
		}
	}
}

// TestSDKStaysLight holds the promise that a program links what it uses: the
// root and the nouns bring no rail, store or signer, and no foreign module but
// those that the README names.
func TestSDKStaysLight(t *testing.T) {
	t.Parallel()
	root := listPackages(t, module)[0]
	for _, dep := range root.Deps {
		own, isOwn := strings.CutPrefix(dep, module+"/")
		if isOwn && !strings.HasPrefix(own, "internal/") && !slices.Contains(importRules[""], own) {
			t.Errorf("the root package links %s", dep)
		}
		for _, heavy := range []string{"modernc.org/", "github.com/spf13/", "github.com/jackc/", "go.opentelemetry.io/", "github.com/modelcontextprotocol/"} {
			if strings.HasPrefix(dep, heavy) {
				t.Errorf("the root package links %s", dep)
			}
		}
	}
	for _, p := range listPackages(t, "./", "./payment", "./policy", "./ledger", "./approvals", "./signer", "./x402") {
		for _, imp := range p.Imports {
			if !strings.Contains(strings.Split(imp, "/")[0], ".") {
				continue // the standard library
			}
			if !slices.ContainsFunc(sdkModules, func(m string) bool { return imp == m || strings.HasPrefix(imp, m+"/") }) {
				t.Errorf("%s imports %s, which the SDK does without", p.ImportPath, imp)
			}
		}
	}
}

func listPackages(t *testing.T, patterns ...string) []goPackage {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,Deps,Standard,Module"}, patterns...)...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v: %s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var pkgs []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		err := dec.Decode(&p)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		pkgs = append(pkgs, p)
	}
	if len(pkgs) == 0 {
		t.Fatal("go list found no package")
	}
	return pkgs
}

package canopy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// docs/attacks.md has every row that concerns what is built, and every test
// that it names exists.
func TestAttacksAreMapped(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("docs/attacks.md")
	must(t, err)
	want := map[int]bool{}
	for _, span := range [][2]int{{1, 12}, {19, 49}, {76, 98}} {
		for n := span[0]; n <= span[1]; n++ {
			want[n] = true
		}
	}
	row := regexp.MustCompile(`(?m)^\| (\d+) \| [^|]+ \| ([^|]+) \|$`)
	named := regexp.MustCompile("`([a-z0-9/]+)\\.([A-Za-z0-9_]+)`")
	for _, m := range row.FindAllStringSubmatch(string(doc), -1) {
		n, _ := strconv.Atoi(m[1])
		if !want[n] {
			t.Errorf("row %d stands there twice, or should not", n)
		}
		delete(want, n)
		tests := named.FindAllStringSubmatch(m[2], -1)
		if len(tests) == 0 && !strings.Contains(m[2], "Limit: ") && !strings.Contains(m[2], "Planned: ") {
			t.Errorf("row %d names no test, no limit and no plan", n)
		}
		for _, test := range tests {
			if !declared(t, test[1], test[2]) {
				t.Errorf("row %d: there is no %s in %s", n, test[2], test[1])
			}
		}
	}
	for n := range want {
		t.Errorf("row %d is missing", n)
	}
}

// declared reports whether the package has that function.
func declared(t *testing.T, pkg, name string) bool {
	if pkg == "canopy" {
		pkg = "."
	}
	files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
	must(t, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		must(t, err)
		if strings.Contains(string(b), "\nfunc "+name+"(t *testing.T") || strings.Contains(string(b), "\nfunc "+name+"(f *testing.F") || strings.Contains(string(b), "\nfunc "+name+"(") && strings.HasPrefix(name, "test") {
			return true
		}
	}
	return false
}

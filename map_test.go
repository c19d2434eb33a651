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
	for _, span := range [][2]int{{1, 50}, {53, 54}, {56, 63}, {70, 98}} {
		for n := span[0]; n <= span[1]; n++ {
			want[n] = true
		}
	}
	row := regexp.MustCompile(`(?m)^\| (\d+) \| [^|]+ \| ([^|]+) \|$`)
	for _, m := range row.FindAllStringSubmatch(string(doc), -1) {
		n, _ := strconv.Atoi(m[1])
		if !want[n] {
			t.Errorf("row %d stands there twice, or should not", n)
		}
		delete(want, n)
		tests := namedTest.FindAllStringSubmatch(m[2], -1)
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

// namedTest is a test as the documents name it.
var namedTest = regexp.MustCompile("`([a-z0-9/]+)\\.([A-Za-z0-9_]+)`")

// docs/faults.md has every row, and every test that it names exists and plays
// the fault on the ledgers that the row says.
func TestFaultsAreMapped(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("docs/faults.md")
	must(t, err)
	want := map[string]bool{}
	for n := range 30 {
		want["F"+strconv.Itoa(n+1)] = true
	}
	for n := range 16 {
		want["I"+strconv.Itoa(n+1)] = true
	}
	row := regexp.MustCompile(`(?m)^\| ([FI]\d+) \| [^|]+ \|(?: (both|file|) ?\|)? ([^|]+) \|$`)
	for _, m := range row.FindAllStringSubmatch(string(doc), -1) {
		name, on, held := m[1], m[2], m[3]
		if !want[name] {
			t.Errorf("row %s stands there twice, or should not", name)
		}
		delete(want, name)
		tests := namedTest.FindAllStringSubmatch(held, -1)
		switch planned := strings.Contains(held, "Planned: "); {
		case len(tests) == 0 && !planned:
			t.Errorf("row %s names no test and no plan", name)
		case name[0] == 'F' && on == "" && !planned:
			t.Errorf("row %s does not say what it is played on", name)
		}
		played := map[string]bool{"": true}
		for _, test := range tests {
			body := source(t, test[1], test[2])
			played["both"] = played["both"] || strings.Contains(body, " play(t, ") || strings.Contains(body, "\tplay(t, ")
			played["file"] = played["file"] || strings.Contains(body, "playFile(t, ") || strings.Contains(body, "playDisk(t, ")
			if name[0] == 'F' && test[1] == "canopy" && strings.HasPrefix(test[2], "TestF") && test[2][5] >= '0' && test[2][5] <= '9' &&
				!strings.Contains(held, "`canopy.Test"+name+"_") {
				t.Errorf("row %s has no test of its name", name)
			}
		}
		if !played[on] {
			t.Errorf("row %s is not played on %s", name, on)
		}
	}
	for name := range want {
		t.Errorf("row %s is missing", name)
	}
	for _, test := range namedTest.FindAllStringSubmatch(string(doc), -1) {
		if !declared(t, test[1], test[2]) {
			t.Errorf("there is no %s in %s", test[2], test[1])
		}
	}
}

// source is the text of a function, and empty where there is none.
func source(t *testing.T, pkg, name string) string {
	t.Helper()
	if pkg == "canopy" {
		pkg = "."
	}
	files, err := filepath.Glob(filepath.Join(pkg, "*_test.go"))
	must(t, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		must(t, err)
		if _, rest, ok := strings.Cut(string(b), "\nfunc "+name+"("); ok {
			body, _, _ := strings.Cut(rest, "\n}\n")
			return body
		}
	}
	return ""
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

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPatchesApply holds the patches to the code as it stands: one that no
// longer applies plants nothing, and has to be brought up to date.
func TestPatchesApply(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../testdata/mutants/*.patch")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d patches, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".patch"), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := parse(string(raw))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range p.files {
				source, err := os.ReadFile(filepath.Join("../../..", filepath.FromSlash(f.path)))
				if err != nil {
					t.Fatal(err)
				}
				if changed, err := f.apply(string(source)); err != nil {
					t.Error(err)
				} else if changed == string(source) {
					t.Errorf("%s is as it was", f.path)
				}
			}
		})
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	const diff = "what it plants\n--- a/x.go\n+++ b/x.go\n@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n"
	p, err := parse(diff)
	if err != nil || p.what != "what it plants" {
		t.Fatal(p, err)
	}
	for _, tc := range []struct{ in, want string }{
		{"a\nb\nc\nd\n", "a\nb\nC\nd\n"},
		{"0\n1\n2\nb\nc\nd\n", "0\n1\n2\nb\nC\nd\n"},
		{"0\nb\nc\nd\nb\nc\nd\n", "0\nb\nC\nd\nb\nc\nd\n"}, // the nearest of two
		{"a\nb\nx\nd\n", ""},
	} {
		got, err := p.files[0].apply(tc.in)
		if got != tc.want || (err != nil) != (tc.want == "") {
			t.Errorf("apply to %q = %q, %v", tc.in, got, err)
		}
	}
	if p, err := parse("what\nrail: mpp\n" + diff[len("what it plants\n"):]); err != nil || p.rail != "mpp" || len(p.files) != 1 {
		t.Errorf("with a rail it is %+v, %v", p, err)
	}
	for _, bad := range []string{"", "what\n", "what\nrail: other\n--- a/x.go\n+++ b/x.go\n@@ -1 +1 @@\n-a\n", "what\n+++ b/x.go\nnothing\n", "what\n+++ b/x.go\n@@ -x +1 @@\n", "what\n+++ b/x.go\n-a\n"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is a patch", bad)
		}
	}
}

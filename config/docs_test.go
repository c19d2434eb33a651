package config_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/canopy-go/canopy/config"
)

// The file that docs/config.md shows is one.
func TestDocument(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(b, -1) {
		f, err := config.Parse("canopy.toml", block[1])
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Notes) != 2 || len(f.Warnings) != 0 {
			t.Errorf("notes %q, warnings %q", f.Notes, f.Warnings)
		}
	}
}

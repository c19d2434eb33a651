package host_test

import (
	"strings"
	"testing"

	"github.com/canopy-go/canopy/internal/host"
)

func TestSuspicious(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"ASCII", "feed.example", ""},
		{"German", "bücher.example", ""},
		{"French", "café.example", ""},
		{"Russian", "пример.рф", ""},
		{"Russian below ASCII", "пример.example", ""},
		{"Greek", "παράδειγμα.example", ""},
		{"Japanese, three scripts", "日本のテスト.example", ""},
		{"Japanese and Latin", "東京tokyo.example", ""},
		{"Korean", "한국.example", ""},
		{"Hebrew", "דוגמה.example", ""},
		{"Cyrillic a in apple", "аpple.example", `reads as "apple"`},
		{"all Cyrillic apple", "аррӏе.example", `reads as "apple"`},
		{"Greek omicron", "gοοgle.example", `reads as "google"`},
		{"Latin script g", "ɡoogle.example", `reads as "google"`},
		{"Turkish dotless i", "fıeld.example", `reads as "field"`},
		{"foreign zero", "g๐๐gle.example", `reads as "g00gle"`},
		{"Cyrillic and Latin", "feжd.example", "mixes Cyrillic and Latin"},
		{"Greek and Cyrillic", "αжβ.example", "mixes Cyrillic and Greek"},
		{"in a later label", "a.аpple.example", `reads as "apple"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h, err := host.Normalize(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			got := host.Suspicious(h.Name)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("Suspicious(%q) = %q, want %q", h.Name, got, tc.want)
			}
		})
	}
	if got := host.Suspicious("xn--a.example"); !strings.Contains(got, "cannot be decoded") {
		t.Errorf("Suspicious of a false A-label = %q", got)
	}
}

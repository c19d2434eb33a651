package host

import (
	"testing"
	"unicode"
)

func TestLookalikes(t *testing.T) {
	t.Parallel()
	for r, ascii := range lookalikes {
		if r <= unicode.MaxASCII || ascii >= unicode.MaxASCII || !unicode.IsLower(ascii) && !unicode.IsDigit(ascii) {
			t.Errorf("%U looks like %U", r, ascii)
		}
	}
	if len(lookalikes) < 70 {
		t.Errorf("%d lookalikes", len(lookalikes))
	}
}

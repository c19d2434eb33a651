package payment_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/payment"
)

func TestPlainMemo(t *testing.T) {
	t.Parallel()
	hexOf := func(s string) string {
		b := make([]byte, 32)
		copy(b, s)
		return "0x" + hex.EncodeToString(b)
	}
	for s, want := range map[string]string{
		"": "", "inv 7": "inv 7", hexOf("inv 7"): "inv 7", "0X" + hexOf("inv 7")[2:]: "0X" + hexOf("inv 7")[2:],
		"0x" + strings.ToUpper(hexOf("Miete \u00e4")[2:]): "Miete \u00e4", strings.Repeat("a", 32): strings.Repeat("a", 32),
		hexOf(strings.Repeat("a", 32)): strings.Repeat("a", 32), "0x" + strings.Repeat("AB", 32): "0x" + strings.Repeat("ab", 32),
		hexOf(""): hexOf(""), hexOf("a\x00b"): hexOf("a\x00b"), hexOf("\u202e"): hexOf("\u202e"), hexOf("0xab"): hexOf("0xab"),
		hexOf("a\x1b"): hexOf("a\x1b"), "0x1234": "0x1234", hexOf(" "): " ",
	} {
		if got := payment.PlainMemo(s); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
		if got := payment.PlainMemo(payment.PlainMemo(s)); got != want {
			t.Errorf("%q again is %q", s, got)
		}
	}
}

// However a memo is written, it is one.
func FuzzPlainMemo(f *testing.F) {
	f.Add([]byte("inv 7"))
	f.Add([]byte{0xab, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m [32]byte
		copy(m[:], b)
		low := "0x" + hex.EncodeToString(m[:])
		plain := payment.PlainMemo(low)
		if other := payment.PlainMemo("0x" + strings.ToUpper(low[2:])); other != plain || payment.PlainMemo(plain) != plain {
			t.Fatalf("%q and %q", plain, other)
		}
		if !strings.HasPrefix(plain, "0x") && plain != strings.TrimRight(string(m[:]), "\x00") {
			t.Fatalf("%x is %q", m, plain)
		}
	})
}

package plaintext_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/canopy-go/canopy/internal/plaintext"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"plain", "Payment required", "Payment required"},
		{"other scripts", "Zahlung nötig: 5 € — 支払い", "Zahlung nötig: 5 € — 支払い"},
		{"line breaks", "a\r\nb\n\nc\td", "a b c d"},
		{"spaces at the ends", "  a  b  ", "a b"},
		{"controls", "a\x00b\x1b[31mc\x7f", "ab[31mc"},
		{"C1 controls", "a\u009bb", "ab"},
		{"bidirectional", "pay \u202eevil\u202c \u2066x\u2069\u200f", "pay evil x"},
		{"zero width", "a\u200bb\u200dc\ufeffd\u2060e", "abcde"},
		{"line separator", "a\u2028b\u2029c", "a b c"},
		{"tags", "a\U000e0041\U000e0042b", "ab"},
		{"variation selectors", "a\ufe0fb\U000e0100c", "abc"},
		{"private use", "a\ue000b", "ab"},
		{"hangul fillers", "a\u3164b\u115fc", "abc"},
		{"not UTF-8", "a\xff\xfeb", "ab"},
		{"a replacement character", "a\ufffdb", "a\ufffdb"},
		{"long", strings.Repeat("x", 100), strings.Repeat("x", 40)},
		{"cut between characters", strings.Repeat("é", 40), strings.Repeat("é", 20)},
		{"cut before a space", strings.Repeat("x", 39) + " y", strings.Repeat("x", 39)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := plaintext.Clean(tc.in, 40); got != tc.want {
				t.Errorf("Clean(%q) = %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

// What is too long is cut between words, and no figure is cut.
func TestWords(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "short": "short", "exactly twenty bytes": "exactly twenty bytes",
		"exactly twenty bytes.":      "exactly twenty…",
		"it needs $1234567.654321":   "it needs…",
		"it needs, $1234567.65":      "it needs…",
		"it needs 12345678…":         "it needs 12345678…",
		"twenty bytes then it 🙂":     "twenty bytes then…",
		"abcdefghijklmnopqrstuvwxyz": "abcdefghijklmnopqrst",
		"a\u202eb\x1b and $1":        "ab and $1",
		"spaces   are   not   words": "spaces are not words",
	} {
		if got := plaintext.Words(in, 20); got != want || len(got) > 20 {
			t.Errorf("Words(%q) = %q, want %q", in, got, want)
		}
	}
	for n := 10; n < 60; n++ {
		const text = "Spend cap exceeded: $8.00 + $5.00 > $10 / 24h"
		got, cut := strings.CutSuffix(plaintext.Words(text, n), "…")
		if len(got) > n || cut != (n < len(text)) || cut && strings.ContainsRune("0123456789.", rune(text[len(got)])) {
			t.Errorf("in %d bytes: %q", n, got)
		}
	}
}

func TestCode(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                     "",
		"invalid_exact_evm_nonce_already_used": "invalid_exact_evm_nonce_already_used",
		"Payment required":                     "payment_required",
		"invalid_exact_evm_transaction_failed: The contract reverted": "invalid_exact_evm_transaction_failed",
		"X-PAYMENT header is required":                                "x_payment_header_is_required",
		"a\nb":                                                        "a", "__a__b__": "a_b", "é": "", "\u202epay": "pay",
		strings.Repeat("ab ", 99): strings.Repeat("ab_", 27)[:80],
	} {
		if got := plaintext.Code(in); got != want {
			t.Errorf("Code(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\u202e b\x00", 7)
	f.Fuzz(func(t *testing.T, s string, max int) {
		max &= 0xff
		got := plaintext.Clean(s, max)
		if len(got) > max || !utf8.ValidString(got) {
			t.Fatalf("Clean(%q, %d) = %q", s, max, got)
		}
		for _, r := range got {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
				t.Fatalf("Clean(%q) keeps %U", s, r)
			}
		}
		if again := plaintext.Clean(got, max); again != got {
			t.Fatalf("Clean(%q) = %q, and again %q", s, got, again)
		}
		code := plaintext.Code(s)
		if len(code) > 80 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || plaintext.Code(code) != code {
			t.Fatalf("Code(%q) = %q", s, code)
		}
	})
}

package payment_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/canopy-go/canopy/payment"
)

func TestParseUSD(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		want payment.USD
		text string
	}{
		{"0", 0, "$0.00"},
		{"$0", 0, "$0.00"},
		{"1", payment.Dollar, "$1.00"},
		{"$10", 10 * payment.Dollar, "$10.00"},
		{"7.5", 7_500_000, "$7.50"},
		{"7.50", 7_500_000, "$7.50"},
		{"0.01", payment.Cent, "$0.01"},
		{"0.005", 5_000, "$0.005"},
		{"0.000001", 1, "$0.000001"},
		{"0.0000010000", 1, "$0.000001"},
		{"999999999999.999999", 999_999_999_999_999_999, "$999999999999.999999"},
		{"1000000000000", 1_000_000_000_000 * payment.Dollar, "$1000000000000.00"},
	} {
		got, err := payment.ParseUSD(tt.in)
		if err != nil || got != tt.want {
			t.Errorf("ParseUSD(%q) = %d, %v, want %d", tt.in, got, err, tt.want)
		}
		if got.String() != tt.text {
			t.Errorf("ParseUSD(%q).String() = %s, want %s", tt.in, got, tt.text)
		}
	}
}

func TestParseUSDRefuses(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", " ", "$", "$$1", "1$", "-1", "+1", "-0", "$-1", "01", "00", "1.", ".5", "$.5", "1.0000001", "0.0000005",
		"1e3", "1E3", "0x10", "1_000", "1,000", "1 000", " 1", "1 ", "1\n", "1\x00", "٣", "１", "NaN", "Inf", "infinity",
		"1.2.3", "1..2", "$1.-2", "1.+2", "1000000000000.000001", "1000000000001", "99999999999999", "9223372036854775807",
		strings.Repeat("9", 400), "0." + strings.Repeat("0", 400), "1.5€", "USD 1", "1 USD", "null", "true", "\u20091", "1\u200b",
	} {
		if got, err := payment.ParseUSD(in); err == nil || !errors.Is(err, payment.ErrAmount) {
			t.Errorf("ParseUSD(%q) = %d, %v, want an ErrAmount", in, got, err)
		} else if len(err.Error()) > 200 {
			t.Errorf("ParseUSD(%q): an error of %d bytes", in[:20], len(err.Error()))
		}
	}
}

func TestUSDRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		u := payment.USD(rapid.Int64Range(0, 1_000_000_000_000_000_000).Draw(t, "usd"))
		for _, s := range []string{u.String(), u.Decimal()} {
			if got, err := payment.ParseUSD(s); err != nil || got != u {
				t.Fatalf("ParseUSD(%q) = %d, %v, want %d", s, got, err, u)
			}
		}
		b, err := json.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		var back payment.USD
		if err := json.Unmarshal(b, &back); err != nil || back != u {
			t.Fatalf("JSON %s gave %d, %v, want %d", b, back, err, u)
		}
	})
}

func TestUSDUnmarshalJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]payment.USD{`0.10`: 100_000, `"0.10"`: 100_000, `"$0.10"`: 100_000, `5`: 5 * payment.Dollar} {
		var got payment.USD
		if err := json.Unmarshal([]byte(in), &got); err != nil || got != want {
			t.Errorf("%s gave %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{`1e1`, `-1`, `1.0000001`, `0.30000000000000004`, `true`, `{}`, `[1]`, `""`, `"1e3"`, `1E0`} {
		got := payment.USD(77)
		if err := json.Unmarshal([]byte(in), &got); err == nil || got != 77 {
			t.Errorf("%s gave %d, %v, want an error and no change", in, got, err)
		}
	}
}

func TestUSDAddSub(t *testing.T) {
	t.Parallel()
	const max = payment.MaxUSD
	for _, tt := range []struct {
		a, b, sum payment.USD
		ok        bool
	}{
		{1, 2, 3, true}, {0, 0, 0, true}, {max - 2, 1, max - 1, true}, {max, 0, max, false}, {0, max, max, false},
		{max - 1, 2, max, false}, {max, max, max, false}, {-1, 5, max, false}, {5, -1, max, false}, {math.MinInt64, 0, max, false},
	} {
		if got, ok := tt.a.Add(tt.b); got != tt.sum || ok != tt.ok {
			t.Errorf("%d + %d = %d, %t, want %d, %t", tt.a, tt.b, got, ok, tt.sum, tt.ok)
		}
	}
	for _, tt := range []struct {
		a, b, diff payment.USD
		ok         bool
	}{
		{3, 2, 1, true}, {2, 2, 0, true}, {2, 3, 0, false}, {-1, 0, 0, false}, {0, -1, 0, false},
	} {
		if got, ok := tt.a.Sub(tt.b); got != tt.diff || ok != tt.ok {
			t.Errorf("%d - %d = %d, %t, want %d, %t", tt.a, tt.b, got, ok, tt.diff, tt.ok)
		}
	}
}

func FuzzParseUSD(f *testing.F) {
	for _, s := range []string{"$7.50", "0.000001", "1e3", "٣", "00", "-0", "1000000000000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := payment.ParseUSD(s)
		if err != nil {
			return
		}
		if u < 0 || u > 1_000_000_000_000*payment.Dollar {
			t.Fatalf("ParseUSD(%q) = %d", s, u)
		}
		if again, err := payment.ParseUSD(u.String()); err != nil || again != u {
			t.Fatalf("%q is %d, and %q is %d, %v", s, u, u.String(), again, err)
		}
	})
}

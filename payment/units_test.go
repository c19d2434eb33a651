package payment_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/canopy-go/canopy/payment"
)

var maxUnits = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))

func units(t testing.TB, s string) payment.Units {
	t.Helper()
	u, err := payment.ParseUnits(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestParseUnitsRefuses(t *testing.T) {
	t.Parallel()
	above := new(big.Int).Add(maxUnits, big.NewInt(1)).String()
	for _, in := range []string{
		"", " ", "+5", "-0", "-1", "007", "00", "0x10", "0X10", "1_000", "1,000", "1e3", "1E3", " 5", "5 ", "5\n", "5\t", "５", "٥", "5.0", "5.",
		".5", "1/2", "NaN", "Infinity", "null", "true", "\"5\"", "5\x00", "\x005", "0b1", "0o7", "5n", "5u", "--5", "++5", "5-", "5+",
		above, "9" + strings.Repeat("9", 77), "1" + strings.Repeat("0", 78), strings.Repeat("9", 10_000), "\ufeff5", "5\u200b", "1e-30", "1e30",
	} {
		if got, err := payment.ParseUnits(in); err == nil || !errors.Is(err, payment.ErrAmount) {
			t.Errorf("ParseUnits(%.40q) = %v, %v, want an ErrAmount", in, got, err)
		} else if len(err.Error()) > 200 {
			t.Errorf("ParseUnits(%.20q): an error of %d bytes", in, len(err.Error()))
		}
	}
}

func TestParseUnitsExtremes(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"0", "1", "9", "10", "18446744073709551615", "18446744073709551616", "340282366920938463463374607431768211456",
		"999999999999999999", "1000000000000000000", "1" + strings.Repeat("0", 77), maxUnits.String(),
	} {
		u := units(t, in)
		if u.String() != in || u.Big().String() != in {
			t.Errorf("%s came back as %s and %s", in, u, u.Big())
		}
	}
}

// big.Int is the oracle of all arithmetic.
func TestUnitsAgainstBig(t *testing.T) {
	t.Parallel()
	gen := rapid.Custom(func(t *rapid.T) payment.Units {
		var b [32]byte
		copy(b[rapid.IntRange(0, 32).Draw(t, "zeros"):], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "bytes"))
		return payment.UnitsFromBytes(b)
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		if got := payment.UnitsFromBytes(a.Bytes()); got != a {
			t.Fatalf("bytes of %s gave %s", a, got)
		}
		if got, ok := payment.UnitsFromBig(a.Big()); !ok || got != a {
			t.Fatalf("big %s gave %s, %t", a, got, ok)
		}
		if a.Cmp(b) != a.Big().Cmp(b.Big()) || (a == b) != (a.Cmp(b) == 0) {
			t.Fatalf("Cmp(%s, %s) = %d", a, b, a.Cmp(b))
		}
		sum, ok := a.Add(b)
		want := new(big.Int).Add(a.Big(), b.Big())
		if fits := want.Cmp(maxUnits) <= 0; ok != fits || fits && sum.Big().Cmp(want) != 0 {
			t.Fatalf("%s + %s = %s, %t, want %s", a, b, sum, ok, want)
		}
		diff, ok := a.Sub(b)
		want.Sub(a.Big(), b.Big())
		if fits := want.Sign() >= 0; ok != fits || fits && diff.Big().Cmp(want) != 0 {
			t.Fatalf("%s - %s = %s, %t, want %s", a, b, diff, ok, want)
		}
		j, err := json.Marshal(a)
		var back payment.Units
		if err != nil || json.Unmarshal(j, &back) != nil || back != a {
			t.Fatalf("JSON %s gave %s", j, back)
		}
	})
	for _, bad := range []*big.Int{nil, big.NewInt(-1), new(big.Int).Lsh(big.NewInt(1), 256)} {
		if u, ok := payment.UnitsFromBig(bad); ok {
			t.Errorf("UnitsFromBig(%v) = %s", bad, u)
		}
	}
}

func FuzzParseUnits(f *testing.F) {
	for _, s := range []string{"0", "10000", "+5", "007", maxUnits.String(), "1e3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := payment.ParseUnits(s)
		b, ok := new(big.Int).SetString(s, 10)
		canonical := ok && b.String() == s && b.Sign() >= 0 && b.Cmp(maxUnits) <= 0
		if (err == nil) != canonical {
			t.Fatalf("ParseUnits(%q): %v, want accepted %t", s, err, canonical)
		}
		if err == nil && u.String() != s {
			t.Fatalf("%q came back as %q", s, u)
		}
	})
}

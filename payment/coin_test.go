package payment_test

import (
	"math"
	"testing"

	"github.com/canopy-go/canopy/payment"
)

func TestCoin(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"0": "0", "0.0": "0", "1": "1000000000000000000", "0.0005": "500000000000000", "10": "10000000000000000000",
		"0.000000000000000001": "1", "999999999.999999999999999999": "999999999999999999999999999",
	} {
		got, err := payment.ParseCoin(in)
		if err != nil || got.String() != want {
			t.Errorf("%s: %s, %v; want %s", in, got, err, want)
		}
		if back, err := payment.ParseCoin(got.Coin()); err != nil || back != got {
			t.Errorf("%s: written as %s, which is %s, %v", in, got.Coin(), back, err)
		}
	}
	for _, in := range []string{"", ".", "1.", ".5", "-1", "+1", "1e3", "01", "1,5", "0x1", " 1", "1 ", "1000000000", "0.0000000000000000001", "٣"} {
		if got, err := payment.ParseCoin(in); err == nil {
			t.Errorf("%q: %s", in, got)
		}
	}
	for n, want := range map[uint64]string{0: "0", 1: "0.000000000000000001", 500000000000000: "0.0005", 2000000000000000000: "2", math.MaxUint64: "18.446744073709551615"} {
		if got := payment.UnitsOf(n).Coin(); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

func TestCarryCost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		c    payment.Carry
		want string
	}{
		{payment.Carry{}, "0"},
		{payment.Carry{GasLimit: 200_000, MaxFee: 1_000_000_000}, "200000000000000"},
		{payment.Carry{GasLimit: 200_000, MaxFee: 1_000_000_000, MaxTip: 7, DataFee: payment.UnitsOf(5)}, "200000000000005"},
		{payment.Carry{GasLimit: math.MaxUint64, MaxFee: math.MaxUint64}, "340282366920938463426481119284349108225"},
		{payment.Carry{GasLimit: 1, MaxFee: 1, DataFee: allOnes()}, ""},
	} {
		got, ok := tt.c.Cost()
		if ok != (tt.want != "") || ok && got.String() != tt.want {
			t.Errorf("%+v: %s, %t; want %s", tt.c, got, ok, tt.want)
		}
	}
	c := func(nonce, fee uint64) payment.Carry { return payment.Carry{Nonce: nonce, GasLimit: 10, MaxFee: fee} }
	for _, tt := range []struct {
		all  []payment.Carry
		want string
	}{
		{nil, "0"},
		{[]payment.Carry{c(1, 5)}, "50"},
		{[]payment.Carry{c(1, 5), c(1, 7)}, "70"},  // one of them lands
		{[]payment.Carry{c(1, 7), c(1, 5)}, "70"},  // whichever came first
		{[]payment.Carry{c(1, 5), c(2, 7)}, "120"}, // both may
		{[]payment.Carry{c(1, 5), c(2, 7), c(1, 9)}, "160"},
		{[]payment.Carry{{Nonce: 1, DataFee: allOnes()}, c(2, 1)}, ""},
	} {
		got, ok := payment.CarryCost(tt.all)
		if ok != (tt.want != "") || ok && got.String() != tt.want {
			t.Errorf("%+v: %s, %t; want %s", tt.all, got, ok, tt.want)
		}
	}
}

func allOnes() payment.Units {
	var b [32]byte
	for i := range b {
		b[i] = 0xff
	}
	return payment.UnitsFromBytes(b)
}

package signer_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/internal/permit"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/signer"
)

// The key of vectors/x402.json, which guards nothing.
const (
	canary  = "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"
	address = "0x2c7536E3605D9C16a7a3D7b1898e529396a65c23"
)

var noon = time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)

func key(t testing.TB) *signer.Key {
	t.Helper()
	k, err := signer.FromHex("0x" + canary)
	if err != nil {
		t.Fatal(err)
	}
	return k.WithNow(func() time.Time { return noon })
}

func mint() payment.Permit { return permit.Mint("evm/test", noon.Add(time.Minute)) }

// leaks reports whether s has the key in hex of either case, in decimal, as
// bytes, or as a list of bytes.
func leaks(s string) bool {
	raw, _ := hex.DecodeString(canary)
	low := strings.ToLower(s)
	list := strings.Trim(fmt.Sprint(raw), "[]")
	for _, secret := range []string{canary, canary[:16], canary[48:], new(big.Int).SetBytes(raw).String(), string(raw), list, list[:20], hex.EncodeToString([]byte(canary))[:32]} {
		if strings.Contains(low, strings.ToLower(secret)) {
			return true
		}
	}
	return false
}

func TestKeyPrintsItsAddress(t *testing.T) {
	t.Parallel()
	k := key(t)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%X", "%q", "%d", "%o", "%b", "%c", "%U", "%t", "%e", "%T|%v", "% x", "%#x", "%20v", "%-80s", "%.3s", "%z", "%p|%v"} {
		n := strings.Count(verb, "%")
		for _, v := range []any{k, *k} {
			got := fmt.Sprintf(verb, []any{v, v}[:n]...)
			if !strings.Contains(got, address) || leaks(got) {
				t.Errorf("%s of %T prints %s", verb, v, got)
			}
		}
	}
}

// A key inside other values, where fmt may not call its methods.
func TestKeyInsideOtherValues(t *testing.T) {
	t.Parallel()
	k := key(t)
	type hidden struct {
		inner *signer.Key
		value signer.Key
		iface payment.Signer
		list  []*signer.Key
		table map[string]signer.Key
	}
	h := hidden{k, *k, k, []*signer.Key{k}, map[string]signer.Key{"a": *k}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
		for _, v := range []any{h, &h, []any{k}, map[string]any{"k": k}, struct{ K *signer.Key }{k}, struct{ K any }{*k}} {
			if got := fmt.Sprintf(verb, v); leaks(got) {
				t.Errorf("%s of %T prints %s", verb, v, got)
			}
		}
	}
}

func TestKeyIsWrittenAsItsAddress(t *testing.T) {
	t.Parallel()
	k := key(t)
	for _, v := range []any{k, *k, struct{ K *signer.Key }{k}, map[string]any{"k": *k}} {
		b, err := json.Marshal(v)
		if err != nil || !strings.Contains(string(b), `"`+address+`"`) || leaks(string(b)) {
			t.Errorf("JSON of %T: %s, %v", v, b, err)
		}
	}
	if b, err := k.MarshalText(); err != nil || string(b) != address {
		t.Errorf("text: %s, %v", b, err)
	}
	if b, err := xml.Marshal(k); err != nil || leaks(string(b)) {
		t.Errorf("XML: %s, %v", b, err)
	}
	var out bytes.Buffer
	if err := gob.NewEncoder(&out).Encode(k); err == nil && leaks(out.String()) {
		t.Errorf("gob holds the key")
	}
}

func TestKeyIsLoggedAsItsAddress(t *testing.T) {
	t.Parallel()
	k := key(t)
	var out bytes.Buffer
	for _, h := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		l := slog.New(h)
		l.Info("key", "pointer", k, "value", *k, slog.Group("g", "k", k), "any", []any{k}, "struct", struct{ K *signer.Key }{k})
		l.With("k", k).Error("failed", "err", fmt.Errorf("with %v", k))
	}
	l := log.New(&out, "", 0)
	l.Print(k, *k)
	l.Printf("%+v", k)
	l.Println(k)
	if got := out.String(); leaks(got) || strings.Count(got, address) < 12 {
		t.Errorf("logs hold %s", got)
	}
	func() {
		defer func() {
			if got := fmt.Sprint(recover()); leaks(got) {
				t.Errorf("panic prints %s", got)
			}
		}()
		panic(fmt.Sprintf("%#v", k))
	}()
}

func TestFromHex(t *testing.T) {
	t.Parallel()
	for _, s := range []string{canary, "0x" + canary, strings.ToUpper(canary)} {
		k, err := signer.FromHex(s)
		if err != nil || k.Address().String() != address {
			t.Errorf("FromHex: %v, %v", k, err)
		}
	}
	order := crypto.S256().Params().N
	for name, s := range map[string]string{
		"empty":            "",
		"0x alone":         "0x",
		"short":            canary[:63],
		"long":             canary + "0",
		"0X":               "0X" + canary,
		"0x twice":         "0x0x" + canary,
		"space before":     " " + canary,
		"space within":     canary[:32] + " " + canary[33:],
		"newline after":    canary + "\n",
		"quotes":           `"` + canary + `"`,
		"not hex":          canary[:63] + "g",
		"full-width digit": canary[:61] + "５",
		"minus":            "-" + canary[1:],
		"a mnemonic":       "test test test test test test test test test test test junk",
		"zero":             strings.Repeat("0", 64),
		"the order":        hex.EncodeToString(order.Bytes()),
		"above the order":  hex.EncodeToString(new(big.Int).Add(order, big.NewInt(7)).Bytes()),
		"all ones":         strings.Repeat("f", 64),
		"base64":           "TAiDppECk31iMUcbXbtiBP5RKWFwgnkq5GjQGj82Ixg=",
	} {
		k, err := signer.FromHex(s)
		if !errors.Is(err, signer.ErrKey) || k != nil {
			t.Errorf("%s: %v, %v; want ErrKey", name, k, err)
		}
		if leaks(fmt.Sprintf("%+v %#v", err, err)) {
			t.Errorf("%s: the error tells the key: %v", name, err)
		}
	}
	below, err := signer.FromHex(hex.EncodeToString(new(big.Int).Sub(order, big.NewInt(1)).Bytes()))
	if err != nil || below.Address().IsZero() {
		t.Errorf("the largest key: %v, %v", below, err)
	}
}

func TestFromEnv(t *testing.T) {
	t.Setenv("CANOPY_TEST_KEY", "0x"+canary)
	if k, err := signer.FromEnv("CANOPY_TEST_KEY"); err != nil || k.Address().String() != address {
		t.Errorf("FromEnv: %v, %v", k, err)
	}
	t.Setenv("CANOPY_TEST_KEY", canary+"\n")
	if _, err := signer.FromEnv("CANOPY_TEST_KEY"); !errors.Is(err, signer.ErrKey) || !strings.Contains(err.Error(), "CANOPY_TEST_KEY") || leaks(err.Error()) {
		t.Errorf("with a newline: %v", err)
	}
	for _, name := range []string{"CANOPY_TEST_NO_KEY", ""} {
		if _, err := signer.FromEnv(name); !errors.Is(err, signer.ErrNoKey) {
			t.Errorf("FromEnv(%q): %v, want ErrNoKey", name, err)
		}
	}
}

func TestSign(t *testing.T) {
	t.Parallel()
	k := key(t)
	// The first vector of vectors/x402.json.
	digest := [32]byte(unhex(t, "de914abb9acfe2d7816b5e4555792b93b7dcb6ddcbf123cad912c84367cfb4b7"))
	want := "35b8ce854da048ada926f78294b84e416758a21eb271310d912d4b269e450e720c8b1b45ab0ac4d1cc2032f7995071037b2ac8d0159df99faac36f3476b8739c1c"
	for range 3 { // RFC 6979: the same bytes each time, under permits of their own
		sig, err := k.Sign(t.Context(), mint(), digest)
		if err != nil || hex.EncodeToString(sig) != want {
			t.Fatalf("Sign = %x, %v; want %s", sig, err, want)
		}
	}
	if !payment.IsDeterministic(k) || !payment.IsLocal(k) {
		t.Error("a key is deterministic and local")
	}
}

func TestSignNeedsAPermit(t *testing.T) {
	t.Parallel()
	k := key(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	used := mint()
	if _, err := k.Sign(t.Context(), used, [32]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Sign(t.Context(), used, [32]byte{1}); err != nil {
		t.Errorf("the same digest again: %v", err)
	}
	for _, tc := range []struct {
		name   string
		key    *signer.Key
		ctx    context.Context
		permit payment.Permit
		want   error
	}{
		{"the zero permit", k, t.Context(), payment.Permit{}, permit.ErrNone},
		{"a permit of no slot", k, t.Context(), permit.Mint("", noon.Add(time.Minute)), permit.ErrNone},
		{"expired", k, t.Context(), permit.Mint("evm/test", noon), permit.ErrExpired},
		{"of no deadline", k, t.Context(), permit.Mint("evm/test", time.Time{}), permit.ErrExpired},
		{"used for another digest", k, t.Context(), used, permit.ErrUsed},
		{"cancelled", k, cancelled, mint(), context.Canceled},
		{"the zero key", &signer.Key{}, t.Context(), mint(), signer.ErrNoKey},
		{"no key", nil, t.Context(), mint(), signer.ErrNoKey},
	} {
		sig, err := tc.key.Sign(tc.ctx, tc.permit, [32]byte{2})
		if !errors.Is(err, tc.want) || sig != nil {
			t.Errorf("%s: %x, %v; want %v", tc.name, sig, err, tc.want)
		}
	}
	fresh := mint()
	if _, err := k.Sign(cancelled, fresh, [32]byte{3}); err == nil {
		t.Fatal("a cancelled context signs")
	}
	if _, err := k.Sign(t.Context(), fresh, [32]byte{4}); err != nil {
		t.Errorf("a cancelled call used the permit: %v", err)
	}
}

func TestZeroKeyPrints(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprintf("%v", signer.Key{}); got != (payment.Address{}).String() {
		t.Errorf("the zero Key prints %s", got)
	}
	if got := fmt.Sprintf("%v", (*signer.Key)(nil)); got != "<nil>" {
		t.Errorf("a nil Key prints %s", got)
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func BenchmarkSign(b *testing.B) {
	k, p, digest := key(b), mint(), [32]byte{7}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Sign(b.Context(), p, digest); err != nil {
			b.Fatal(err)
		}
	}
}

package eip1559_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/canopy-go/canopy/internal/eip1559"
	"github.com/canopy-go/canopy/internal/eip3009"
)

func sample() eip1559.Transaction {
	return eip1559.Transaction{
		ChainID: 8453, Nonce: 7, MaxTip: 1_000_000, MaxFee: 30_000_000_000, GasLimit: 200_000, To: [20]byte{0x83, 19: 0x13}, Input: []byte{0xe3, 0xee, 0x16, 0x0e, 0, 1},
	}
}

// signed is t as the test key sends it.
func signed(tb testing.TB, t eip1559.Transaction) ([]byte, [20]byte) {
	tb.Helper()
	key, err := crypto.ToECDSA(bytes.Repeat([]byte{0x42}, 32))
	if err != nil {
		tb.Fatal(err)
	}
	digest := t.Digest()
	raw, err := crypto.Sign(digest[:], key)
	if err != nil {
		tb.Fatal(err)
	}
	sig, err := eip3009.NormalizeSignature(raw)
	if err != nil {
		tb.Fatal(err)
	}
	return t.Encode(sig), crypto.PubkeyToAddress(key.PublicKey)
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	max := ^uint64(0)
	for name, tx := range map[string]eip1559.Transaction{
		"usual": sample(), "zero": {}, "one": {ChainID: 1, Nonce: 1, MaxTip: 1, MaxFee: 1, GasLimit: 1, Input: []byte{1}},
		"a byte of 0x80": {ChainID: 0x80, Nonce: 0x7f, MaxTip: 0x100, Input: []byte{0x80}},
		"most":           {ChainID: max, Nonce: max, MaxTip: max, MaxFee: max, GasLimit: max, To: [20]byte(bytes.Repeat([]byte{0xff}, 20)), Input: make([]byte, 3000)},
	} {
		raw, from := signed(t, tx)
		got, sender, err := eip1559.Decode(raw)
		if err != nil || sender != from {
			t.Errorf("%s: from %x, %v; want %x", name, sender, err, from)
			continue
		}
		if got.Digest() != tx.Digest() || got.Nonce != tx.Nonce || got.MaxFee != tx.MaxFee || got.MaxTip != tx.MaxTip || got.To != tx.To || !bytes.Equal(got.Input, tx.Input) ||
			got.ChainID != tx.ChainID || got.GasLimit != tx.GasLimit {
			t.Errorf("%s: %+v", name, got)
		}
		for i := range raw {
			if _, _, err := eip1559.Decode(raw[:i]); !errors.Is(err, eip1559.ErrTransaction) {
				t.Errorf("%s: the first %d bytes: %v", name, i, err)
			}
		}
		if _, _, err := eip1559.Decode(append(raw, 0)); !errors.Is(err, eip1559.ErrTransaction) {
			t.Errorf("%s: a byte more: %v", name, err)
		}
	}
}

// Every other spelling, and what is more than a call, is refused.
func TestRefused(t *testing.T) {
	t.Parallel()
	raw, _ := signed(t, sample())
	type field = rlp.RawValue
	var fields []field
	if err := rlp.DecodeBytes(raw[1:], &fields); err != nil || len(fields) != 12 {
		t.Fatalf("%d fields, %v", len(fields), err)
	}
	build := func(list []field) []byte {
		b, err := rlp.EncodeToBytes(list)
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte{2}, b...)
	}
	if !bytes.Equal(build(fields), raw) {
		t.Fatal("the fields do not make the transaction")
	}
	high := func() field { // s in the upper half, with v the other way round
		order, _ := hex.DecodeString("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141")
		s := make([]byte, 32)
		copy(s[32-len(fields[11])+1:], fields[11][1:])
		borrow := 0
		for i := 31; i >= 0; i-- {
			d := int(order[i]) - int(s[i]) - borrow
			if borrow = 0; d < 0 {
				d, borrow = d+256, 1
			}
			s[i] = byte(d)
		}
		return append(field{0xa0}, s...)
	}()
	for name, change := range map[string]map[int]field{
		"a value":                {6: {1}},
		"a long value":           {6: {0x89, 1, 0, 0, 0, 0, 0, 0, 0, 0}},
		"an access list":         {8: {0xc1, 0xc0}},
		"an access list of text": {8: {0x80}},
		"no contract":            {5: {0x80}},
		"a long contract":        {5: append(field{0x95}, make([]byte, 21)...)},
		"a leading zero":         {1: {0x82, 0, 7}},
		"a zero of one byte":     {6: {0}},
		"a long nonce":           {1: {0x89, 1, 0, 0, 0, 0, 0, 0, 0, 0}},
		"v of 2":                 {9: {2}},
		"v of 27":                {9: {27}},
		"an r of zero":           {10: {0x80}},
		"an r that is long":      {10: append(field{0xa1, 1}, make([]byte, 32)...)},
		"an r with a zero":       {10: append(field{0x82}, 0, 5)},
		"an s of zero":           {11: {0x80}},
		"an s above the half":    {9: {1 - fields[9][0]&1}, 11: high},
		"a list for a nonce":     {1: {0xc0}},
	} {
		list := append([]field(nil), fields...)
		for i, f := range change {
			list[i] = f
		}
		b, err := rlp.EncodeToBytes(list)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := eip1559.Decode(append([]byte{2}, b...)); !errors.Is(err, eip1559.ErrTransaction) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "type 1": append([]byte{1}, raw[1:]...), "type 3": append([]byte{3}, raw[1:]...), "no type": raw[1:],
		"a field more": build(append(append([]field(nil), fields...), field{1})), "a field less": build(fields[:11]), "too long": make([]byte, eip1559.MaxSize+1),
	} {
		if _, _, err := eip1559.Decode(b); !errors.Is(err, eip1559.ErrTransaction) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever is read is written in the same bytes.
func FuzzDecode(f *testing.F) {
	raw, _ := signed(f, sample())
	f.Add(raw)
	raw, _ = signed(f, eip1559.Transaction{})
	f.Add(raw)
	f.Add([]byte{2, 0xc0})
	f.Fuzz(func(t *testing.T, b []byte) {
		tx, sender, err := eip1559.Decode(b)
		if err != nil {
			return
		}
		if sender == [20]byte{} {
			t.Error("from nobody")
		}
		var list []rlp.RawValue
		if err := rlp.DecodeBytes(b[1:], &list); err != nil || len(list) != 12 {
			t.Fatal("it is no list of twelve")
		}
		var v uint64
		var r, s []byte
		for i, to := range []any{&v, &r, &s} {
			if err := rlp.DecodeBytes(list[9+i], to); err != nil {
				t.Fatal(err)
			}
		}
		var sig [65]byte
		copy(sig[32-len(r):], r)
		copy(sig[64-len(s):], s)
		sig[64] = byte(v) + 27
		if again := tx.Encode(sig); !bytes.Equal(again, b) {
			t.Errorf("read from %x, and written as %x", b, again)
		}
	})
}

package canopytest_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
)

type tempoVector struct {
	Name             string
	Fields           map[string]any
	Sender           string
	Serialized, Hash string
	Placeholder      string `json:"clientSerialized0x76Marker"`
	HandOff          string `json:"clientSerialized0x78"`
	FeePayer         string
	FeePayerFeeToken string
	Calls            int
}

func tempoVectors(t testing.TB) []tempoVector {
	t.Helper()
	b, err := os.ReadFile("testdata/tempo.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Vectors []tempoVector }
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Vectors) != 10 {
		t.Fatalf("%d vectors", len(doc.Vectors))
	}
	return doc.Vectors
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.TrimPrefix(s, "0x"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The vectors of the network's own library: who signed, who pays, the hash.
func TestDecodeTempoVectors(t *testing.T) {
	t.Parallel()
	for _, v := range tempoVectors(t) {
		tx, err := canopytest.DecodeTempo(unhex(t, v.Serialized))
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		if tx.Sender.Lower() != v.Sender || tx.Hash() != v.Hash {
			t.Errorf("%s: of %s with hash %s", v.Name, tx.Sender, tx.Hash())
		}
		payer := v.FeePayer
		if payer == "" {
			payer = v.Sender
		}
		if tx.FeePayer.Lower() != payer || tx.Sponsored != (v.FeePayer != "") {
			t.Errorf("%s: paid by %s", v.Name, tx.FeePayer)
		}
		if v.FeePayer != "" && tx.FeeToken.Lower() != v.FeePayerFeeToken {
			t.Errorf("%s: paid in %s", v.Name, tx.FeeToken)
		}
		if calls := v.Fields["calls"].([]any); len(tx.Calls) != len(calls) {
			t.Errorf("%s: %d calls, want %d", v.Name, len(tx.Calls), len(calls))
		}
		before, _ := v.Fields["validBefore"].(float64)
		after, _ := v.Fields["validAfter"].(float64)
		if tx.ValidBefore != uint64(before) || tx.ValidAfter != uint64(after) {
			t.Errorf("%s: valid from %d to %d", v.Name, tx.ValidAfter, tx.ValidBefore)
		}
		for _, form := range []string{v.Placeholder, v.HandOff} {
			if form == "" {
				continue
			}
			open, err := canopytest.DecodeTempo(unhex(t, form))
			if err != nil || open.Sender.Lower() != v.Sender || !open.Sponsored || !open.FeePayer.IsZero() {
				t.Errorf("%s: on its way to the sponsor: %v, %v", v.Name, open, err)
			}
		}
	}
}

// What a wrong byte anywhere makes of a transaction: no transaction, or one of
// another sender.
func TestDecodeTempoRefuses(t *testing.T) {
	t.Parallel()
	v := tempoVectors(t)[2]
	raw := unhex(t, v.Serialized)
	for i := range raw {
		bent := bytes.Clone(raw)
		bent[i] ^= 1
		tx, err := canopytest.DecodeTempo(bent)
		if err == nil && tx.Sender.Lower() == v.Sender {
			t.Errorf("byte %d changed and the sender is the same", i)
		}
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "another type": append([]byte{0x02}, raw[1:]...), "cut short": raw[:len(raw)-1],
		"followed by more": append(bytes.Clone(raw), 0), "a type and no list": {0x76}, "unsigned": unhex(t, "0x76c0"),
		"huge": append([]byte{0x76}, make([]byte, 1<<17)...),
	} {
		if tx, err := canopytest.DecodeTempo(b); !errors.Is(err, canopytest.ErrTempoTx) {
			t.Errorf("%s: %v, %v", name, tx, err)
		}
	}
}

// Whatever bytes are read as a transaction are written again as they were, but
// for v, which has two spellings.
func FuzzDecodeTempo(f *testing.F) {
	for _, v := range tempoVectors(f) {
		for _, s := range []string{v.Serialized, v.Placeholder, v.HandOff} {
			f.Add(unhex(f, s))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		tx, err := canopytest.DecodeTempo(raw)
		if err != nil {
			return
		}
		if tx.Sender.IsZero() || tx.Sponsored == (tx.FeePayer == tx.Sender) && !tx.Sponsored {
			t.Errorf("nobody's: %v", tx)
		}
		again, err := canopytest.DecodeTempo(tx.Raw())
		if err != nil || again.Hash() != tx.Hash() || again.Sender != tx.Sender {
			t.Errorf("%v, %v", again, err)
		}
		if !bytes.Equal(canopytest.EncodeForTest(tx), raw) {
			t.Errorf("written as %x", canopytest.EncodeForTest(tx))
		}
	})
}

// Integers have one spelling, also where the bytes are signed.
func TestDecodeTempoIntegers(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Manual)
	x := w.memoTx(1, memo1)
	for i := range 13 {
		for name, v := range map[string]any{"a zero in front": []byte{0, 5}, "a zero": []byte{0}, "33 bytes": bytes.Repeat([]byte{1}, 33)} {
			fields := x.fields(x.token, []byte{})
			switch fields[i].(type) {
			case uint64, *big.Int:
			default:
				continue
			}
			fields[i] = v
			if tx, err := canopytest.DecodeTempo(w.wallet.seal(fields)); err == nil {
				t.Errorf("field %d, %s: %v", i, name, tx)
			}
		}
	}
	if _, err := canopytest.DecodeTempo(w.wallet.seal(x.fields(x.token, []byte{}))); err != nil {
		t.Error(err)
	}
}

// A signature of 65 bytes is the sender's own whatever byte it begins with.
func TestDecodeTempoSignatures(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Manual)
	first := map[byte]bool{}
	for i := range uint64(2_000) {
		raw := w.wallet.raw(w.memoTx(i, memo1))
		tx, err := canopytest.DecodeTempo(raw)
		if err != nil || tx.Sender != w.wallet.Address() {
			t.Fatalf("%d: %v, %v", i, tx, err)
		}
		first[tx.Signature[0]] = true
	}
	if !first[3] || !first[4] {
		t.Error("no signature begins with 3 and 4")
	}
}

package tempo_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/rlp"

	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

// fields is a transaction as a list that go-ethereum's rlp encodes, so that a
// test can put anything into it.
func fields() []any {
	transfer := tempo.Transfer{Token: pathUSD, To: payee, Amount: payment.UnitsOf(1)}.Call()
	return []any{
		uint64(42431), uint64(1), uint64(2), uint64(3),
		[]any{[]any{transfer.To[:], []byte{}, transfer.Data}},
		[]any{}, []byte{}, uint64(0), uint64(200), uint64(100), pathUSD[:], []byte{}, []any{},
		signature(27),
	}
}

func signature(v byte) []byte { return append(bytes.Repeat([]byte{1}, 64), v) }

func encode(t *testing.T, kind byte, list []any) []byte {
	t.Helper()
	b, err := rlp.EncodeToBytes(list)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{kind}, b...)
}

func nested(depth int) (v any) {
	v = []byte("x")
	for range depth {
		v = []any{v}
	}
	return v
}

func TestDecodeStrict(t *testing.T) {
	t.Parallel()
	raw := func(b ...byte) rlp.RawValue { return b }
	long, long55 := bytes.Repeat([]byte{1}, 33), bytes.Repeat([]byte{1}, 55)
	call := func(item ...any) any { return []any{item} }
	word := bytes.Repeat([]byte{7}, 32)
	keychain := func(version byte, inner []byte) []byte {
		return slices.Concat([]byte{version}, payee[:], inner)
	}
	type change map[int]any
	for _, tc := range []struct {
		name string
		kind byte
		set  change
		want string // part of the error, empty where it is fine
	}{
		{"as it is", 0x76, nil, ""},
		{"type 0x02", 0x02, nil, "type is neither"},
		{"0x78 whose sender pays", 0x78, nil, "type 0x78"},
		{"0x78 with placeholder", 0x78, change{11: []byte{0}}, "type 0x78"},
		{"0x76 with placeholder", 0x76, change{11: []byte{0}}, ""},
		{"0x78 with sender", 0x78, change{11: payee[:]}, ""},
		{"0x76 with sender", 0x76, change{11: payee[:]}, "type 0x76"},
		{"0x78 with signature", 0x78, change{11: []any{uint8(1), word, word}}, "type 0x78"},
		{"0x76 with signature", 0x76, change{11: []any{uint8(1), word, word}}, ""},
		{"fee payer is the zero address", 0x78, change{11: make([]byte, 20)}, "zero address"},
		{"fee payer 01", 0x76, change{11: []byte{1}}, "fee payer"},
		{"fee payer of 2 bytes", 0x76, change{11: []byte{0, 0}}, "fee payer"},
		{"fee payer of 21 bytes", 0x78, change{11: make([]byte, 21)}, "fee payer"},
		{"fee payer parity 2", 0x76, change{11: []any{uint8(2), word, word}}, "fee payer"},
		{"fee payer parity 257", 0x76, change{11: []any{uint64(257), word, word}}, "fee payer"},
		{"fee payer r 0", 0x76, change{11: []any{uint8(0), []byte{}, word}}, "fee payer"},
		{"fee payer s 0", 0x76, change{11: []any{uint8(0), word, []byte{}}}, "fee payer"},
		{"fee payer r too long", 0x76, change{11: []any{uint8(0), long, word}}, "fee payer"},
		{"fee payer r with a leading zero", 0x76, change{11: []any{uint8(0), append([]byte{0}, word[1:]...), word}}, "fee payer"},
		{"fee payer of two items", 0x76, change{11: []any{uint8(0), word}}, "fee payer"},
		{"fee payer of four items", 0x76, change{11: []any{uint8(0), word, word, word}}, "fee payer"},
		{"fee payer empty list", 0x76, change{11: []any{}}, "fee payer"},

		{"chain id as 00", 0x76, change{0: raw(0)}, "chain id: not the shortest"},
		{"chain id as 8100", 0x76, change{0: raw(0x81, 0)}, "chain id: not the shortest"},
		{"chain id as 8101", 0x76, change{0: raw(0x81, 1)}, "chain id: not the shortest"},
		{"chain id with a leading zero", 0x76, change{0: raw(0x82, 0, 0xa5)}, "chain id: not the shortest"},
		{"chain id is a list", 0x76, change{0: []any{}}, "chain id: a list"},
		{"nonce as 00", 0x76, change{7: raw(0)}, "nonce: not the shortest"},
		{"fee of 9 bytes", 0x76, change{2: bytes.Repeat([]byte{1}, 9)}, "max fee: too long"},
		{"fee of 8 bytes", 0x76, change{2: bytes.Repeat([]byte{0xff}, 8)}, ""},
		{"gas of 9 bytes", 0x76, change{3: bytes.Repeat([]byte{1}, 9)}, "gas: too long"},
		{"nonce key of 33 bytes", 0x76, change{6: long}, "nonce key: too long"},
		{"nonce key with a leading zero", 0x76, change{6: []byte{0, 7}}, "nonce key: not the shortest"},
		{"nonce key of 32 bytes", 0x76, change{6: tempo.ExpiringKey[:]}, ""},
		{"valid before in the long form", 0x76, change{8: raw(0xb8, 1, 0xc8)}, "valid before: not the shortest"},
		{"window of no time", 0x76, change{8: uint64(100)}, "ends at 100"},
		{"window that ends before it begins", 0x76, change{8: uint64(99)}, "ends at 99"},
		{"window without end", 0x76, change{8: uint64(0)}, ""},
		{"fee token of 19 bytes", 0x76, change{10: pathUSD[:19]}, "fee token"},
		{"fee token is the zero address", 0x76, change{10: make([]byte, 20)}, "fee token: the zero address"},
		{"no fee token", 0x76, change{10: []byte{}}, ""},

		{"no calls", 0x76, change{4: []any{}}, "no calls"},
		{"calls are a string", 0x76, change{4: []byte{}}, "calls: a list"},
		{"call is a string", 0x76, change{4: []any{[]byte{}}}, "call: a list"},
		{"call of two items", 0x76, change{4: call(pathUSD[:], []byte{})}, "call data: ends early"},
		{"call of four items", 0x76, change{4: call(pathUSD[:], []byte{}, []byte{}, []byte{})}, "call: more follows"},
		{"call to 19 bytes", 0x76, change{4: call(pathUSD[:19], []byte{}, []byte{})}, "call to"},
		{"call data of 55 bytes in the long form", 0x76, change{4: call(pathUSD[:], []byte{}, raw(append([]byte{0xb8, 55}, long55...)...))}, "call data: not the shortest"},
		{"call data of 55 bytes", 0x76, change{4: call(pathUSD[:], []byte{}, long55)}, ""},
		{"call data of 56 bytes", 0x76, change{4: call(pathUSD[:], []byte{}, append(long55, 1))}, ""},
		{"call data of 56 bytes, length with a zero", 0x76, change{4: call(pathUSD[:], []byte{}, raw(append([]byte{0xb9, 0, 56}, append(long55, 1)...)...))}, "call data: not the shortest"},
		{"call data of 2^32 bytes", 0x76, change{4: call(pathUSD[:], []byte{}, raw(0xbc, 1, 0, 0, 0, 0))}, "call data: too long"},
		{"call data of 2^16 bytes and one", 0x76, change{4: call(pathUSD[:], []byte{}, raw(0xba, 1, 0, 1))}, "call data: too long"},
		{"call with value 00", 0x76, change{4: call(pathUSD[:], raw(0), []byte{})}, "call value"},
		{"call with value of 33 bytes", 0x76, change{4: call(pathUSD[:], long, []byte{})}, "call value"},
		{"call to the zero address", 0x76, change{4: call(make([]byte, 20), []byte{}, []byte{})}, ""},
		{"create", 0x76, change{4: call([]byte{}, []byte{}, []byte{1})}, ""},
		{"create second", 0x76, change{4: []any{[]any{pathUSD[:], []byte{}, []byte{}}, []any{[]byte{}, []byte{}, []byte{}}}}, "call 1"},

		{"access list", 0x76, change{5: []any{[]any{pathUSD[:], []any{word, word}}, []any{payee[:], []any{}}}}, ""},
		{"access without address", 0x76, change{5: []any{[]any{[]byte{}, []any{}}}}, "access address: empty"},
		{"access without keys", 0x76, change{5: []any{[]any{pathUSD[:]}}}, "access keys: ends early"},
		{"access key of 31 bytes", 0x76, change{5: []any{[]any{pathUSD[:], []any{word[:31]}}}}, "access key"},
		{"access of three items", 0x76, change{5: []any{[]any{pathUSD[:], []any{}, []any{}}}}, "access: more follows"},

		{"authorization list is a string", 0x76, change{12: []byte{}}, "authorization list: a list"},
		{"authorization list of anything", 0x76, change{12: nested(16)}, ""},
		{"authorization list too deep", 0x76, change{12: nested(17)}, "authorization list: nested"},
		{"authorization list not canonical", 0x76, change{12: raw(0xc2, 0x81, 1)}, "authorization list: not the shortest"},
		{"authorization list with an item that ends early", 0x76, change{12: raw(0xc2, 0x82, 1)}, "authorization list: ends early"},
		{"key authorization", 0x76, change{13: nested(3), 14: signature(28)}, ""},
		{"key authorization unsigned", 0x76, change{13: nested(3)}, ""},
		{"key authorization empty", 0x76, change{13: []any{}, 14: signature(28)}, "key authorization: empty"},
		{"two key authorizations", 0x76, change{13: nested(3), 14: nested(3)}, "signature: a list"},
		{"sixteen fields", 0x76, change{13: nested(3), 14: signature(27), 15: []byte{}}, "fields: more follows"},
		{"two signatures", 0x76, change{14: signature(27)}, "fields: more follows"},

		{"empty signature", 0x76, change{13: []byte{}}, "signature: empty"},
		{"signature with v 0", 0x76, change{13: signature(0)}, ""},
		{"signature with v 1", 0x76, change{13: signature(1)}, ""},
		{"signature with v 2", 0x76, change{13: signature(2)}, "no known form"},
		{"signature with v 26", 0x76, change{13: signature(26)}, "no known form"},
		{"signature with v 29", 0x76, change{13: signature(29)}, "no known form"},
		{"signature of 64 bytes", 0x76, change{13: signature(27)[1:]}, "no known form"},
		{"signature of 66 bytes", 0x76, change{13: append(signature(27), 27)}, "no known form"},
		{"P256", 0x76, change{13: append([]byte{1}, make([]byte, 129)...)}, ""},
		{"P256 short", 0x76, change{13: append([]byte{1}, make([]byte, 128)...)}, "no known form"},
		{"P256 with prehash 2", 0x76, change{13: append(append([]byte{1}, make([]byte, 128)...), 2)}, "no known form"},
		{"WebAuthn", 0x76, change{13: append([]byte{2}, make([]byte, 200)...)}, ""},
		{"WebAuthn without data", 0x76, change{13: append([]byte{2}, make([]byte, 128)...)}, "no known form"},
		{"keychain v1", 0x76, change{13: keychain(3, signature(27))}, ""},
		{"keychain v2 of P256", 0x76, change{13: keychain(4, append([]byte{1}, make([]byte, 129)...))}, ""},
		{"keychain of nothing", 0x76, change{13: keychain(4, nil)}, "no known form"},
		{"keychain of a bad v", 0x76, change{13: keychain(4, signature(9))}, "no known form"},
		{"keychain of a keychain", 0x76, change{13: keychain(4, keychain(4, signature(27)))}, "no known form"},
		{"type 5", 0x76, change{13: append([]byte{5}, make([]byte, 129)...)}, "no known form"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			list := fields()
			for i := range 16 {
				if v, ok := tc.set[i]; ok && i < len(list) {
					list[i] = v
				} else if ok {
					list = append(list, v)
				}
			}
			b := encode(t, tc.kind, list)
			got, err := tempo.Decode(b)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("Decode: %v", err)
			case tc.want == "" && !bytes.Equal(got.Encode(), b):
				t.Errorf("Encode(Decode) = %x, want %x", got.Encode(), b)
			case tc.want != "" && (!errors.Is(err, tempo.ErrTransaction) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("Decode: %v, want %q", err, tc.want)
			}
			checkDecode(t, b)
		})
	}
}

// Field counts, and what follows the end.
func TestDecodeEnds(t *testing.T) {
	t.Parallel()
	all := append(fields()[:13], nested(2), signature(27))
	for n := range 13 {
		if _, err := tempo.Decode(encode(t, 0x76, all[:n])); !errors.Is(err, tempo.ErrTransaction) {
			t.Errorf("Decode of %d fields: %v", n, err)
		}
	}
	for n := 13; n <= 15; n++ {
		b := encode(t, 0x76, all[:n])
		if _, err := tempo.Decode(b); err != nil {
			t.Errorf("Decode of %d fields: %v", n, err)
		}
		if _, err := tempo.Decode(append(b, 0)); err == nil || !strings.Contains(err.Error(), "1 bytes after") {
			t.Errorf("Decode of %d fields and a byte: %v", n, err)
		}
	}
	for _, b := range [][]byte{nil, {}, {0x76}, {0x76, 0x80}, {0x76, 0xc0}, {0x76, 0xff}, {0x76, 0xf8}, {0x76, 0xf8, 0}, {0x76, 0xbf, 1}} {
		if _, err := tempo.Decode(b); !errors.Is(err, tempo.ErrTransaction) {
			t.Errorf("Decode(%x): %v", b, err)
		}
	}
}

func TestSizeLimit(t *testing.T) {
	t.Parallel()
	tx := tempo.Transaction{Calls: []tempo.Call{{To: pathUSD}}}
	tx.Calls[0].Data = make([]byte, tempo.MaxSize)
	for len(tx.Encode()) > tempo.MaxSize {
		tx.Calls[0].Data = tx.Calls[0].Data[1:]
	}
	if b := tx.Encode(); len(b) != tempo.MaxSize || tx.Check() != nil {
		t.Fatalf("%d bytes, Check: %v", len(b), tx.Check())
	}
	if got, err := tempo.Decode(tx.Encode()); err != nil || !got.Equal(&tx) {
		t.Errorf("Decode of %d bytes: %v", tempo.MaxSize, err)
	}
	tx.Calls[0].Data = append(tx.Calls[0].Data, 0)
	if err := tx.Check(); !errors.Is(err, tempo.ErrTransaction) {
		t.Errorf("Check of a byte more: %v", err)
	}
	if _, err := tempo.Decode(tx.Encode()); !errors.Is(err, tempo.ErrTransaction) {
		t.Errorf("Decode of a byte more: %v", err)
	}
}

// What Decode returns is its own: neither the bytes that it read nor an append
// to one field reaches another.
func TestDecodeKeepsNothing(t *testing.T) {
	t.Parallel()
	b := encode(t, 0x76, append(fields()[:13], nested(2), signature(27)))
	want := bytes.Clone(b)
	tx := must[tempo.Transaction](t)(tempo.Decode(b))
	clear(b)
	more := bytes.Repeat([]byte{0xee}, 8)
	_ = append(tx.Calls[0].Data, more...)
	_ = append(tx.KeyAuthorization, more...)
	_ = append(tx.Signature, more...)
	same(t, "Encode", tx.Encode(), want)
}

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

// full has something in every field.
func full() tempo.Transaction {
	tx := charge()
	tx.Calls = append(tx.Calls, tempo.Call{To: payee, Value: payment.UnitsFromBytes([32]byte{3: 1}), Data: []byte{5}})
	tx.AccessList = []tempo.Access{{Address: pathUSD, Keys: [][32]byte{{1}, {2}}}, {Address: payee}}
	tx.ValidAfter = 1_767_225_000
	tx.Authorizations = []byte{0xc2, 0xc1, 0x05}
	tx.KeyAuthorization = []byte{0xc1, 0xc0}
	tx.Signature = signature(28)
	return tx
}

// changes are one change of every field.
var changes = []struct {
	name   string
	change func(*tempo.Transaction)
}{
	{"chain id", func(t *tempo.Transaction) { t.ChainID++ }},
	{"max priority fee", func(t *tempo.Transaction) { t.MaxPriorityFeePerGas++ }},
	{"max fee", func(t *tempo.Transaction) { t.MaxFeePerGas++ }},
	{"gas", func(t *tempo.Transaction) { t.Gas++ }},
	{"one call less", func(t *tempo.Transaction) { t.Calls = t.Calls[:1] }},
	{"calls swapped", func(t *tempo.Transaction) { t.Calls = []tempo.Call{t.Calls[1], t.Calls[0]} }},
	{"call to", func(t *tempo.Transaction) { t.Calls = slices.Clone(t.Calls); t.Calls[1].To[19]++ }},
	{"call value", func(t *tempo.Transaction) { t.Calls = slices.Clone(t.Calls); t.Calls[1].Value = payment.UnitsOf(1) }},
	{"call data", func(t *tempo.Transaction) { t.Calls = slices.Clone(t.Calls); t.Calls[1].Data = []byte{6} }},
	{"create", func(t *tempo.Transaction) {
		t.Calls = slices.Clone(t.Calls)
		t.Calls[0].Create, t.Calls[0].To = true, payment.Address{}
	}},
	{"access address", func(t *tempo.Transaction) { t.AccessList = slices.Clone(t.AccessList); t.AccessList[0].Address[0]++ }},
	{"access key", func(t *tempo.Transaction) {
		t.AccessList = slices.Clone(t.AccessList)
		t.AccessList[0].Keys = [][32]byte{{1}, {3}}
	}},
	{"no access list", func(t *tempo.Transaction) { t.AccessList = nil }},
	{"nonce key", func(t *tempo.Transaction) { t.NonceKey[31]++ }},
	{"nonce", func(t *tempo.Transaction) { t.Nonce++ }},
	{"valid before", func(t *tempo.Transaction) { t.ValidBefore++ }},
	{"no valid before", func(t *tempo.Transaction) { t.ValidBefore = 0 }},
	{"valid after", func(t *tempo.Transaction) { t.ValidAfter++ }},
	{"fee token", func(t *tempo.Transaction) { t.FeeToken[19]++ }},
	{"no fee token", func(t *tempo.Transaction) { t.FeeToken = payment.Address{} }},
	{"sponsored", func(t *tempo.Transaction) { t.FeePayer.Kind = tempo.FeePayerPlaceholder }},
	{"authorizations", func(t *tempo.Transaction) { t.Authorizations = nil }},
	{"key authorization", func(t *tempo.Transaction) { t.KeyAuthorization = nil }},
}

// Every field is part of what is signed, of the bytes and of Equal.
func TestEveryFieldIsSigned(t *testing.T) {
	t.Parallel()
	base := full()
	if err := base.Check(); err != nil {
		t.Fatal(err)
	}
	hashes := map[[32]byte]string{base.SigningHash(): "base"}
	for _, c := range changes {
		tx := full()
		c.change(&tx)
		if err := tx.Check(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if other, ok := hashes[tx.SigningHash()]; ok {
			t.Errorf("%s: the signing hash is that of %s", c.name, other)
		}
		hashes[tx.SigningHash()] = c.name
		if tx.Equal(&base) || base.Equal(&tx) {
			t.Errorf("%s: Equal = true", c.name)
		}
		if bytes.Equal(tx.Encode(), base.Encode()) {
			t.Errorf("%s: the bytes are the same", c.name)
		}
		back := must[tempo.Transaction](t)(tempo.Decode(tx.Encode()))
		if !back.Equal(&tx) {
			t.Errorf("%s: Decode = %+v, want %+v", c.name, back, tx)
		}
		checkDecode(t, tx.Encode())
	}
}

// A contract made is no call to the zero address.
func TestCreateIsNoAddress(t *testing.T) {
	t.Parallel()
	create, zero := full(), full()
	create.Calls[0] = tempo.Call{Create: true, Data: []byte{1}}
	zero.Calls[0] = tempo.Call{Data: []byte{1}}
	if create.Equal(&zero) || create.SigningHash() == zero.SigningHash() {
		t.Error("they are the same")
	}
	checkDecode(t, create.Encode())
	checkDecode(t, zero.Encode())
}

// What the sender does not sign.
func TestSigningHashLeavesOut(t *testing.T) {
	t.Parallel()
	self := full()
	resigned := self
	resigned.Signature = nil
	if resigned.SigningHash() != self.SigningHash() {
		t.Error("the signing hash depends on the signature")
	}
	if resigned.Equal(&self) {
		t.Error("Equal does not look at the signature")
	}
	sponsored := full()
	sponsored.FeePayer = tempo.FeePayer{Kind: tempo.FeePayerPlaceholder}
	want := sponsored.SigningHash()
	for name, f := range map[string]tempo.FeePayer{
		"sender": {Kind: tempo.FeePayerSender, Sender: payee},
		"signed": {Kind: tempo.FeePayerSigned, R: [32]byte{1}, S: [32]byte{2}},
	} {
		tx := sponsored
		tx.FeePayer, tx.FeeToken = f, payment.Address{}
		if tx.SigningHash() != want {
			t.Errorf("%s: the signing hash depends on the form of the slot or on the fee token", name)
		}
		if tx.Equal(&sponsored) {
			t.Errorf("%s: Equal = true", name)
		}
	}
	// The sponsor signs the token and the sender.
	token, sender := sponsored, sponsored
	token.FeeToken[19]++
	if token.FeePayerHash(payee) == sponsored.FeePayerHash(payee) || sender.FeePayerHash(pathUSD) == sponsored.FeePayerHash(payee) {
		t.Error("the sponsor's hash leaves out the token or the sender")
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		want   string
		change func(*tempo.Transaction)
	}{
		{"no calls", func(t *tempo.Transaction) { t.Calls = nil }},
		{"call 0", func(t *tempo.Transaction) { t.Calls[0].Create = true }},
		{"call 1", func(t *tempo.Transaction) { t.Calls[1].Create, t.Calls[1].To = true, payment.Address{} }},
		{"ends at", func(t *tempo.Transaction) { t.ValidAfter = t.ValidBefore }},
		{"zero address", func(t *tempo.Transaction) { t.FeePayer.Kind = tempo.FeePayerSender }},
		{"another kind", func(t *tempo.Transaction) { t.FeePayer.Sender = payee }},
		{"another kind", func(t *tempo.Transaction) {
			t.FeePayer = tempo.FeePayer{Kind: tempo.FeePayerPlaceholder, R: [32]byte{1}}
		}},
		{"another kind", func(t *tempo.Transaction) {
			t.FeePayer = tempo.FeePayer{Kind: tempo.FeePayerSender, Sender: payee, YParity: 1}
		}},
		{"another kind", func(t *tempo.Transaction) {
			t.FeePayer = tempo.FeePayer{Kind: tempo.FeePayerSigned, Sender: payee, R: [32]byte{1}, S: [32]byte{1}}
		}},
		{"not a signature", func(t *tempo.Transaction) { t.FeePayer = tempo.FeePayer{Kind: tempo.FeePayerSigned, R: [32]byte{1}} }},
		{"not a signature", func(t *tempo.Transaction) { t.FeePayer = tempo.FeePayer{Kind: tempo.FeePayerSigned, S: [32]byte{1}} }},
		{"not a signature", func(t *tempo.Transaction) {
			t.FeePayer = tempo.FeePayer{Kind: tempo.FeePayerSigned, YParity: 2, R: [32]byte{1}, S: [32]byte{1}}
		}},
		{"kind 4", func(t *tempo.Transaction) { t.FeePayer.Kind = 4 }},
		{"authorization list: a list", func(t *tempo.Transaction) { t.Authorizations = []byte{5} }},
		{"authorization list: empty", func(t *tempo.Transaction) { t.Authorizations = []byte{0xc0} }},
		{"authorization list: more", func(t *tempo.Transaction) { t.Authorizations = []byte{0xc1, 5, 5} }},
		{"key authorization: ends", func(t *tempo.Transaction) { t.KeyAuthorization = []byte{0xc2, 5} }},
		{"no known form", func(t *tempo.Transaction) { t.Signature = []byte{1} }},
		{"at most", func(t *tempo.Transaction) { t.Calls[1].Data = make([]byte, tempo.MaxSize) }},
	} {
		tx := full()
		tc.change(&tx)
		if err := tx.Check(); !errors.Is(err, tempo.ErrTransaction) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Check = %v, want %q", err, tc.want)
		}
		if got, err := tempo.Decode(tx.Encode()); err == nil && got.Equal(&tx) {
			t.Errorf("%s: Check refuses what Decode reads back", tc.want)
		}
	}
}

// oracleEncode lays tx out through go-ethereum's rlp.
func oracleEncode(t *testing.T, tx tempo.Transaction) []byte {
	t.Helper()
	short := func(b []byte) []byte { return bytes.TrimLeft(b, "\x00") }
	var calls, access []any
	for _, c := range tx.Calls {
		to := c.To[:]
		if c.Create {
			to = nil
		}
		calls = append(calls, []any{to, c.Value.Big(), c.Data})
	}
	for _, a := range tx.AccessList {
		access = append(access, []any{a.Address, slices.Clone(a.Keys)})
	}
	kind, token, slot, lists := byte(0x76), tx.FeeToken[:], any([]byte{}), rlp.RawValue(tx.Authorizations)
	if tx.FeeToken.IsZero() {
		token = nil
	}
	switch f := tx.FeePayer; f.Kind {
	case tempo.FeePayerPlaceholder:
		slot = []byte{0}
	case tempo.FeePayerSender:
		kind, slot = 0x78, f.Sender[:]
	case tempo.FeePayerSigned:
		slot = []any{f.YParity, short(f.R[:]), short(f.S[:])}
	}
	if len(lists) == 0 {
		lists = rlp.RawValue{0xc0}
	}
	list := []any{
		tx.ChainID, tx.MaxPriorityFeePerGas, tx.MaxFeePerGas, tx.Gas, calls, access,
		short(tx.NonceKey[:]), tx.Nonce, tx.ValidBefore, tx.ValidAfter, token, slot, lists,
	}
	if len(tx.KeyAuthorization) > 0 {
		list = append(list, rlp.RawValue(tx.KeyAuthorization))
	}
	if len(tx.Signature) > 0 {
		list = append(list, tx.Signature)
	}
	return encode(t, kind, list)
}

// FuzzEncode makes transactions of any shape: what passes Check is laid out as
// the oracle does and read back as it was.
func FuzzEncode(f *testing.F) {
	f.Add(uint64(42431), uint64(1e9), uint64(300_000), uint64(3), uint64(200), uint64(100), uint8(2), uint8(1), uint8(0), []byte{7}, []byte{1, 2, 3}, []byte{}, []byte{}, signature(27))
	f.Add(^uint64(0), uint64(0), uint64(127), uint64(128), uint64(0), uint64(0), uint8(1), uint8(0), uint8(3), bytes.Repeat([]byte{9}, 90), bytes.Repeat([]byte{1}, 300), []byte{0xc1, 5}, []byte{0xc1, 6}, []byte{})
	f.Add(uint64(55), uint64(56), uint64(255), uint64(256), uint64(1), uint64(0), uint8(9), uint8(200), uint8(2), []byte{0, 0, 1}, []byte{0x80}, []byte{}, []byte{}, append([]byte{2}, make([]byte, 400)...))
	f.Fuzz(func(t *testing.T, chain, fee, gas, nonce, before, after uint64, calls, keys, payer uint8, seed, data, authorizations, keyAuthorization, sig []byte) {
		tx := tempo.Transaction{
			ChainID: chain, MaxPriorityFeePerGas: fee / 2, MaxFeePerGas: fee, Gas: gas, Nonce: nonce,
			ValidBefore: before, ValidAfter: after,
			Authorizations: authorizations, KeyAuthorization: keyAuthorization, Signature: sig,
			FeePayer: tempo.FeePayer{Kind: tempo.FeePayerKind(payer)},
		}
		fill := func(b []byte, skip int) { copy(b, seed[min(skip, len(seed)):]) }
		fill(tx.NonceKey[:], 0)
		fill(tx.FeeToken[:], 3)
		switch tx.FeePayer.Kind {
		case tempo.FeePayerSender:
			fill(tx.FeePayer.Sender[:], 0)
		case tempo.FeePayerSigned:
			tx.FeePayer.YParity = uint8(nonce & 1)
			fill(tx.FeePayer.R[:], 0)
			fill(tx.FeePayer.S[:], 0)
		}
		for i := range int(calls) {
			c := tempo.Call{Create: i == 0 && nonce&2 != 0, Data: data[min(i, len(data)):]}
			if !c.Create {
				fill(c.To[:], i)
			}
			var value [32]byte
			fill(value[:], i+1)
			c.Value = payment.UnitsFromBytes(value)
			tx.Calls = append(tx.Calls, c)
		}
		for i := range int(keys) {
			a := tempo.Access{}
			fill(a.Address[:], i)
			a.Keys = make([][32]byte, i%3)
			tx.AccessList = append(tx.AccessList, a)
		}
		got, err := tempo.Decode(tx.Encode())
		if tx.Check() != nil {
			if err == nil && got.Equal(&tx) {
				t.Fatalf("Check refuses what Decode reads back: %v", tx.Check())
			}
			return
		}
		if err != nil || !got.Equal(&tx) {
			t.Fatalf("Decode(Encode(%+v)) = %+v, %v", tx, got, err)
		}
		if out, want := tx.Encode(), oracleEncode(t, tx); !bytes.Equal(out, want) {
			t.Fatalf("Encode = %x, the oracle %x", out, want)
		}
		pre := tx
		pre.Signature = nil
		if pre.Sponsored() {
			pre.FeeToken, pre.FeePayer = payment.Address{}, tempo.FeePayer{Kind: tempo.FeePayerPlaceholder}
		}
		if out, want := tx.Preimage(), oracleEncode(t, pre); !bytes.Equal(out, want) {
			t.Fatalf("Preimage = %x, the oracle %x", out, want)
		}
	})
}

package tempo_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/rlp"

	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

// oracle is a transaction as go-ethereum's reflective codec reads it.
type oracle struct {
	ChainID, MaxPriorityFeePerGas, MaxFeePerGas, Gas uint64
	Calls                                            []oracleCall
	AccessList                                       []oracleAccess
	NonceKey                                         *big.Int
	Nonce, ValidBefore, ValidAfter                   uint64
	FeeToken                                         []byte
	FeePayer, Authorizations                         rlp.RawValue
	Tail                                             []rlp.RawValue `rlp:"tail"`
}

type oracleCall struct {
	To    []byte
	Value *big.Int
	Data  []byte
}

type oracleAccess struct {
	Address [20]byte
	Keys    [][32]byte
}

type oracleSignature struct {
	YParity uint8
	R, S    *big.Int
}

// oracleDecode is a second reading of what a transaction may be, with nothing
// of the package in it but its types.
func oracleDecode(b []byte) (tx tempo.Transaction, err error) {
	if len(b) == 0 || len(b) > 65536 || b[0] != 0x76 && b[0] != 0x78 {
		return tx, errors.New("type or size")
	}
	var o oracle
	if err := rlp.DecodeBytes(b[1:], &o); err != nil {
		return tx, err
	}
	tx = tempo.Transaction{
		ChainID: o.ChainID, MaxPriorityFeePerGas: o.MaxPriorityFeePerGas, MaxFeePerGas: o.MaxFeePerGas, Gas: o.Gas,
		Nonce: o.Nonce, ValidBefore: o.ValidBefore, ValidAfter: o.ValidAfter,
	}
	if o.NonceKey.BitLen() > 256 || o.ValidBefore != 0 && o.ValidAfter >= o.ValidBefore || len(o.Calls) == 0 {
		return tx, errors.New("nonce key, window or calls")
	}
	o.NonceKey.FillBytes(tx.NonceKey[:])
	for i, c := range o.Calls {
		value, ok := payment.UnitsFromBig(c.Value)
		if !ok || len(c.To) != 20 && (len(c.To) != 0 || i > 0) {
			return tx, fmt.Errorf("call %d", i)
		}
		call := tempo.Call{Create: len(c.To) == 0, Value: value, Data: c.Data}
		copy(call.To[:], c.To)
		tx.Calls = append(tx.Calls, call)
	}
	for _, a := range o.AccessList {
		tx.AccessList = append(tx.AccessList, tempo.Access{Address: a.Address, Keys: a.Keys})
	}
	if n := len(o.FeeToken); n != 0 && (n != 20 || bytes.Equal(o.FeeToken, make([]byte, 20))) {
		return tx, errors.New("fee token")
	}
	copy(tx.FeeToken[:], o.FeeToken)
	if tx.FeePayer, err = oracleFeePayer(o.FeePayer); err != nil {
		return tx, err
	}
	if (b[0] == 0x78) != (tx.FeePayer.Kind == tempo.FeePayerSender) {
		return tx, errors.New("type of the fee payer slot")
	}
	return tx, oracleTail(&tx, o)
}

func oracleFeePayer(b []byte) (f tempo.FeePayer, err error) {
	var s oracleSignature
	switch {
	case bytes.Equal(b, []byte{0x80}):
		return f, nil
	case bytes.Equal(b, []byte{0}):
		return tempo.FeePayer{Kind: tempo.FeePayerPlaceholder}, nil
	case len(b) == 21 && b[0] == 0x94 && !bytes.Equal(b[1:], make([]byte, 20)):
		return tempo.FeePayer{Kind: tempo.FeePayerSender, Sender: payment.Address(b[1:])}, nil
	}
	if err := rlp.DecodeBytes(b, &s); err != nil {
		return f, err
	}
	if s.YParity > 1 || s.R.Sign() == 0 || s.S.Sign() == 0 || s.R.BitLen() > 256 || s.S.BitLen() > 256 {
		return f, errors.New("fee payer signature")
	}
	f = tempo.FeePayer{Kind: tempo.FeePayerSigned, YParity: s.YParity}
	s.R.FillBytes(f.R[:])
	s.S.FillBytes(f.S[:])
	return f, nil
}

func oracleTail(tx *tempo.Transaction, o oracle) error {
	if err := oracleList(o.Authorizations, 0); err != nil {
		return err
	}
	if len(o.Authorizations) > 1 {
		tx.Authorizations = o.Authorizations
	}
	tail := o.Tail
	if len(tail) > 0 && tail[0][0] >= 0xc0 {
		if err := oracleList(tail[0], 0); err != nil || len(tail[0]) == 1 {
			return errors.New("key authorization")
		}
		tx.KeyAuthorization, tail = tail[0], tail[1:]
	}
	if len(tail) == 0 {
		return nil
	}
	if err := rlp.DecodeBytes(tail[0], &tx.Signature); err != nil || len(tail) > 1 {
		return errors.New("signature")
	}
	s := tx.Signature
	if len(s) > 65 && (s[0] == 3 || s[0] == 4) {
		s = s[21:]
	}
	switch {
	case len(s) == 65 && (s[64] < 2 || s[64] == 27 || s[64] == 28):
	case len(s) == 130 && s[0] == 1 && s[129] < 2:
	case len(s) >= 130 && s[0] == 2:
	default:
		return errors.New("form of the signature")
	}
	return nil
}

func oracleList(b []byte, depth int) error {
	kind, content, _, err := rlp.Split(b)
	if err != nil || kind != rlp.List || depth == 16 {
		return fmt.Errorf("no list at depth %d: %w", depth, err)
	}
	for len(content) > 0 {
		kind, _, rest, err := rlp.Split(content)
		if err != nil {
			return err
		}
		if kind == rlp.List {
			if err := oracleList(content[:len(content)-len(rest)], depth+1); err != nil {
				return err
			}
		}
		content = rest
	}
	return nil
}

// seeds are all transactions and preimages of the vectors.
func seeds(t testing.TB) (all [][]byte) {
	t.Helper()
	v := readVectors(t)
	for _, v := range v.Vectors {
		for _, b := range [][]byte{v.SigningPreimage, v.Serialized, v.ClientSerialized0x76Marker, v.ClientSerialized0x78, v.FeePayerSigningPreimage} {
			if b != nil {
				all = append(all, b)
			}
		}
	}
	return append(all, v.MPP.Session.OpenSigningPreimage, v.MPP.Session.OpenSerialized)
}

// Decode accepts what the oracle accepts, reads it alike, and Encode gives it
// back.
func FuzzDecode(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b)
	}
	f.Fuzz(checkDecode)
}

func checkDecode(t *testing.T, b []byte) {
	before := bytes.Clone(b)
	got, err := tempo.Decode(b)
	want, wantErr := oracleDecode(b)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("Decode(%x): %v, the oracle: %v", b, err, wantErr)
	}
	if err != nil {
		if !errors.Is(err, tempo.ErrTransaction) || !got.Equal(&tempo.Transaction{}) {
			t.Fatalf("Decode(%x) = %+v, %v", b, got, err)
		}
		return
	}
	if !got.Equal(&want) {
		t.Fatalf("Decode(%x) = %+v, the oracle %+v", b, got, want)
	}
	clear(b)
	if out := got.Encode(); !bytes.Equal(out, before) {
		t.Fatalf("Encode(Decode(%x)) = %x", before, out)
	}
	if hash, err := got.Hash(); err == nil && hash == got.SigningHash() {
		t.Fatalf("hash and signing hash of %x are one", before)
	}
}

// Every seed with a byte changed, put in, taken out or spelt longer, and cut at
// every place.
func TestDecodeMutations(t *testing.T) {
	t.Parallel()
	all := seeds(t)
	if len(all) != 28 {
		t.Fatalf("%d seeds, want 28", len(all))
	}
	for _, b := range all {
		for i := range b {
			for _, v := range []byte{0x00, 0x01, 0x80, 0x94, 0xa0, 0xc0, 0xf8} {
				checkDecode(t, splice(b, i, 1, v))
				checkDecode(t, splice(b, i, 0, v))
			}
			checkDecode(t, splice(b, i, 1))
			checkDecode(t, splice(b, i, 1, 0x81, b[i]))
			checkDecode(t, splice(b, i, 1, 0xb8, b[i]))
			checkDecode(t, bytes.Clone(b[:i]))
		}
	}
}

func splice(b []byte, at, remove int, put ...byte) []byte {
	return append(append(bytes.Clone(b[:at]), put...), b[at+remove:]...)
}

package tempo_test

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

type vectors struct {
	Vectors []vector
	MPP     struct {
		Attribution struct {
			Tag   hexBytes
			Cases []struct {
				ChallengeID, ServerID, ClientID string
				Memo                            hexBytes
			}
		}
		Calldata struct{ Transfer, TransferWithMemo hexBytes }
		ProofV3  struct {
			TypedData struct {
				Domain  struct{ ChainID uint64 }
				Message struct {
					Account            hexBytes
					ChallengeID, Realm string
				}
			}
			Digest, Signature hexBytes
			Source            string
		}
		ProofCrossCheck struct {
			ChainID            uint64
			Account            hexBytes
			ChallengeID, Realm string
			V3                 hexBytes
		}
		Session struct {
			OpenSigningPreimage, OpenSerialized hexBytes
			Descriptor                          struct{ Payer hexBytes }
		}
	}
}

type vector struct {
	Name   string
	Fields struct {
		ChainID                                           uint64
		MaxPriorityFeePerGas, MaxFeePerGas, Gas, NonceKey decimal
		Nonce                                             decimal
		ValidBefore, ValidAfter                           uint64
		FeeToken                                          hexBytes
		FeePayerSignature                                 json.RawMessage
		AccessList                                        []struct {
			Address     hexBytes
			StorageKeys []hexBytes
		}
		Calls []struct {
			To, Data hexBytes
			Value    decimal
		}
	}
	PrivateKey, RootPrivateKey, AccessPrivateKey hexBytes
	Sender, AccessAddress                        hexBytes
	SigningPreimage, SigningHash, Signature      hexBytes
	Serialized, Hash                             hexBytes
	ClientSerialized0x76Marker                   hexBytes
	ClientSerialized0x78                         hexBytes
	FeePayerPrivateKey, FeePayer                 hexBytes
	FeePayerFeeToken                             hexBytes
	FeePayerSigningPreimage, FeePayerSigningHash hexBytes
	FeePayerSignature                            struct {
		R, S    hexBytes
		YParity uint8
	}
	KeyAuthorizationRLP                    hexBytes
	KeychainSigningHash, SignatureEnvelope hexBytes
}

type hexBytes []byte

func (h *hexBytes) UnmarshalText(s []byte) (err error) {
	*h, err = hex.DecodeString(strings.TrimPrefix(string(s), "0x"))
	return err
}

type decimal struct{ n big.Int }

func (d *decimal) UnmarshalText(s []byte) error { return d.n.UnmarshalText(s) }

func readVectors(t testing.TB) vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/tempo.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Vectors) != 10 {
		t.Fatalf("%d transactions, want 10", len(v.Vectors))
	}
	return v
}

// transaction is v unsigned, as its sender begins.
func (v *vector) transaction(t testing.TB) tempo.Transaction {
	t.Helper()
	f := &v.Fields
	tx := tempo.Transaction{
		ChainID:              f.ChainID,
		MaxPriorityFeePerGas: f.MaxPriorityFeePerGas.n.Uint64(), MaxFeePerGas: f.MaxFeePerGas.n.Uint64(), Gas: f.Gas.n.Uint64(),
		Nonce: f.Nonce.n.Uint64(), ValidBefore: f.ValidBefore, ValidAfter: f.ValidAfter,
		KeyAuthorization: v.KeyAuthorizationRLP,
	}
	f.NonceKey.n.FillBytes(tx.NonceKey[:])
	copy(tx.FeeToken[:], f.FeeToken)
	if f.FeePayerSignature != nil {
		tx.FeePayer.Kind = tempo.FeePayerPlaceholder
	}
	for _, a := range f.AccessList {
		access := tempo.Access{Address: payment.Address(a.Address)}
		for _, k := range a.StorageKeys {
			access.Keys = append(access.Keys, [32]byte(k))
		}
		tx.AccessList = append(tx.AccessList, access)
	}
	for _, c := range f.Calls {
		value, ok := payment.UnitsFromBig(&c.Value.n)
		if !ok {
			t.Fatalf("value %v", &c.Value.n)
		}
		tx.Calls = append(tx.Calls, tempo.Call{To: payment.Address(c.To), Value: value, Data: c.Data})
	}
	return tx
}

func key(t testing.TB, b []byte) *ecdsa.PrivateKey {
	t.Helper()
	k, err := crypto.ToECDSA(b)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sign(t testing.TB, k *ecdsa.PrivateKey, digest [32]byte) []byte {
	t.Helper()
	sig, err := crypto.Sign(digest[:], k)
	if err != nil {
		t.Fatal(err)
	}
	return sig
}

func same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) || len(want) == 0 {
		t.Errorf("%s = %x, want %x", what, got, want)
	}
}

// must unwraps a value that may not fail.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Every vector from its fields and keys to the bytes that settle.
func TestVectors(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Vectors {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			tx := v.transaction(t)
			same(t, "Preimage", tx.Preimage(), v.SigningPreimage)
			hash := tx.SigningHash()
			same(t, "SigningHash", hash[:], v.SigningHash)

			signed := tx
			if v.SignatureEnvelope != nil {
				signed.Signature = v.SignatureEnvelope
			} else {
				signed = must[tempo.Transaction](t)(tx.WithSignature(sign(t, key(t, v.PrivateKey), hash)))
				same(t, "Signature", signed.Signature, v.Signature)
				sender := must[payment.Address](t)(signed.Sender())
				same(t, "Sender", sender[:], v.Sender)
			}
			if tx.Sponsored() {
				signed = v.sponsor(t, signed)
			}
			same(t, "Encode", signed.Encode(), v.Serialized)
			sum := must[[32]byte](t)(signed.Hash())
			same(t, "Hash", sum[:], v.Hash)

			back := must[tempo.Transaction](t)(tempo.Decode(v.Serialized))
			if !back.Equal(&signed) {
				t.Errorf("Decode = %+v, want %+v", back, signed)
			}
		})
	}
}

// sponsor takes signed through the hand-over and has it signed by the fee
// payer.
func (v *vector) sponsor(t *testing.T, signed tempo.Transaction) tempo.Transaction {
	t.Helper()
	same(t, "Encode with the placeholder", signed.Encode(), v.ClientSerialized0x76Marker)
	handed := signed
	handed.FeePayer = tempo.FeePayer{Kind: tempo.FeePayerSender, Sender: payment.Address(v.Sender)}
	same(t, "Encode with the sender", handed.Encode(), v.ClientSerialized0x78)
	for _, form := range []tempo.Transaction{signed, handed} {
		if _, err := form.Hash(); err == nil {
			t.Error("Hash of what a fee payer did not sign is no error")
		}
		same(t, "Preimage of a form", form.Preimage(), v.SigningPreimage)
	}

	got := must[tempo.Transaction](t)(tempo.Decode(v.ClientSerialized0x78))
	if !got.Equal(&handed) {
		t.Errorf("Decode = %+v, want %+v", got, handed)
	}
	got.FeeToken = payment.Address(v.FeePayerFeeToken)
	digest := got.FeePayerHash(payment.Address(v.Sender))
	same(t, "FeePayerHash", digest[:], v.FeePayerSigningHash)
	final := must[tempo.Transaction](t)(got.WithFeePayer(sign(t, key(t, v.FeePayerPrivateKey), digest)))
	want := v.FeePayerSignature
	if f := final.FeePayer; f.R != [32]byte(want.R) || f.S != [32]byte(want.S) || f.YParity != want.YParity {
		t.Errorf("FeePayer = %+v, want %+v", f, want)
	}
	sender := must[payment.Address](t)(final.Sender())
	same(t, "Sender of the final form", sender[:], v.Sender)
	sponsor := must[payment.Address](t)(final.Sponsor(sender))
	same(t, "Sponsor", sponsor[:], v.FeePayer)
	return final
}

package tempo_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

// upper is the other signature of the same key and digest, with s in the upper
// half of the order.
func upper(sig []byte) []byte {
	high := bytes.Clone(sig)
	s := new(big.Int).SetBytes(sig[32:64])
	s.Sub(crypto.S256().Params().N, s).FillBytes(high[32:64])
	high[64] ^= 27 ^ 28
	return high
}

// A signature with v 0 or 1 stays in the bytes as it came, and hashes as a node
// hashes it, with 27 or 28.
func TestHashNormalisesV(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Vectors {
		raw := bytes.Clone(v.Serialized)
		raw[len(raw)-1] -= 27
		tx := must[tempo.Transaction](t)(tempo.Decode(raw))
		same(t, "Encode", tx.Encode(), raw)
		hash := must[[32]byte](t)(tx.Hash())
		same(t, v.Name+": Hash", hash[:], v.Hash)
		if v.SignatureEnvelope == nil {
			sender := must[payment.Address](t)(tx.Sender())
			same(t, "Sender", sender[:], v.Sender)
		}
	}
	// The last byte of a signature of another kind is no v.
	tx := full()
	tx.Signature = append([]byte{1}, make([]byte, 129)...)
	plain := must[[32]byte](t)(tx.Hash())
	if want := keccak.Sum256(tx.Encode()); plain != want {
		t.Errorf("Hash with P256 = %x, want %x", plain, want)
	}
}

func TestHashNeedsSignatures(t *testing.T) {
	t.Parallel()
	tx := full()
	tx.Signature = nil
	if _, err := tx.Hash(); !errors.Is(err, tempo.ErrTransaction) {
		t.Errorf("Hash unsigned: %v", err)
	}
	for _, f := range []tempo.FeePayer{{Kind: tempo.FeePayerPlaceholder}, {Kind: tempo.FeePayerSender, Sender: payee}} {
		tx := full()
		tx.FeePayer = f
		if hash, err := tx.Hash(); !errors.Is(err, tempo.ErrTransaction) || hash != [32]byte{} {
			t.Errorf("Hash without the sponsor's signature: %x, %v", hash, err)
		}
	}
}

func TestWithSignature(t *testing.T) {
	t.Parallel()
	v := readVectors(t).Vectors[0]
	tx := v.transaction(t)
	small := bytes.Clone(v.Signature)
	small[64] -= 27
	for _, sig := range [][]byte{v.Signature, small} {
		signed := must[tempo.Transaction](t)(tx.WithSignature(sig))
		same(t, "Encode", signed.Encode(), v.Serialized)
	}
	if tx.Signature != nil {
		t.Error("WithSignature changed its receiver")
	}
	zeroed := func(from, to int) []byte {
		sig := bytes.Clone(v.Signature)
		clear(sig[from:to])
		return sig
	}
	order := bytes.Clone(v.Signature)
	crypto.S256().Params().N.FillBytes(order[:32])
	badV := bytes.Clone(v.Signature)
	badV[64] = 29
	for name, sig := range map[string][]byte{
		"none": nil, "short": v.Signature[:64], "long": append(bytes.Clone(v.Signature), 27),
		"upper s": upper(v.Signature), "upper s, small v": upper(small),
		"r 0": zeroed(0, 32), "s 0": zeroed(32, 64), "r is the order": order, "v 29": badV,
	} {
		if got, err := tx.WithSignature(sig); !errors.Is(err, tempo.ErrSignature) || got.Signature != nil {
			t.Errorf("%s: WithSignature: %v", name, err)
		}
		if got, err := tx.WithFeePayer(sig); !errors.Is(err, tempo.ErrSignature) || got.Sponsored() {
			t.Errorf("%s: WithFeePayer: %v", name, err)
		}
		signed := tx
		signed.Signature = sig
		if sender, err := signed.Sender(); !errors.Is(err, tempo.ErrSignature) || !sender.IsZero() {
			t.Errorf("%s: Sender = %v, %v", name, sender, err)
		} else if len(sig) > 0 && strings.Contains(err.Error(), hex.EncodeToString(sig[1:4])) {
			t.Errorf("%s: the error shows the signature", name)
		}
	}
	if _, err := tx.Sponsor(payee); !errors.Is(err, tempo.ErrSignature) {
		t.Errorf("Sponsor of nobody: %v", err)
	}
}

// A hand-over whose slot names another than who signed.
func TestSenderOfSlot(t *testing.T) {
	t.Parallel()
	v := readVectors(t).Vectors[5]
	tx := must[tempo.Transaction](t)(tempo.Decode(v.ClientSerialized0x78))
	sender := must[payment.Address](t)(tx.Sender())
	same(t, "Sender", sender[:], v.Sender)
	tx.FeePayer.Sender = payee
	if sender, err := tx.Sender(); !errors.Is(err, tempo.ErrSignature) || !sender.IsZero() {
		t.Errorf("Sender = %v, %v", sender, err)
	}
}

// Any change of what was signed recovers somebody else.
func TestSenderOfChanged(t *testing.T) {
	t.Parallel()
	v := readVectors(t).Vectors[0]
	k := key(t, v.PrivateKey)
	for _, c := range changes {
		tx := full()
		signed := must[tempo.Transaction](t)(tx.WithSignature(sign(t, k, tx.SigningHash())))
		sender := must[payment.Address](t)(signed.Sender())
		same(t, "Sender", sender[:], v.Sender)
		c.change(&signed)
		if sender, err := signed.Sender(); err == nil && bytes.Equal(sender[:], v.Sender) {
			t.Errorf("%s: Sender is still who signed", c.name)
		}
	}
}

// The vector of an access key: what its signature signs, and that it recovers
// to no account here.
func TestKeychain(t *testing.T) {
	t.Parallel()
	v := readVectors(t).Vectors[9]
	tx := must[tempo.Transaction](t)(tempo.Decode(v.Serialized))
	same(t, "Signature", tx.Signature, v.SignatureEnvelope)
	same(t, "KeyAuthorization", tx.KeyAuthorization, v.KeyAuthorizationRLP)
	hash := tx.SigningHash()
	inner := keccak.Sum256([]byte{4}, hash[:], v.Sender)
	same(t, "what the access key signs", inner[:], v.KeychainSigningHash)
	recovered := append(bytes.Clone(tx.Signature[21:85]), tx.Signature[85]-27)
	pub, err := crypto.SigToPub(inner[:], recovered)
	if err != nil {
		t.Fatal(err)
	}
	address := crypto.PubkeyToAddress(*pub)
	same(t, "the access key", address[:], v.AccessAddress)
	if sender, err := tx.Sender(); !errors.Is(err, tempo.ErrSignature) || !sender.IsZero() {
		t.Errorf("Sender = %v, %v, want an error", sender, err)
	}
}

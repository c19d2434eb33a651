package eip3009_test

import (
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/internal/eip3009"
)

type vectors struct {
	PrivateKey string
	Address    string
	Vectors    []vector
}

type vector struct {
	ID     string
	Domain struct {
		Name, Version     string
		ChainID           uint64
		VerifyingContract string
	}
	PrimaryType                        string
	Message                            json.RawMessage
	DomainSeparator, Digest, Signature string
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/x402.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.TrimPrefix(s, "0x"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func seconds(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func authorization(t *testing.T, message []byte) (a eip3009.Authorization) {
	t.Helper()
	var m struct{ From, To, Value, ValidAfter, ValidBefore, Nonce string }
	if err := json.Unmarshal(message, &m); err != nil {
		t.Fatal(err)
	}
	value, ok := new(big.Int).SetString(m.Value, 10)
	if !ok {
		t.Fatalf("value %q", m.Value)
	}
	a.From, a.To = [20]byte(unhex(t, m.From)), [20]byte(unhex(t, m.To))
	value.FillBytes(a.Value[:])
	a.ValidAfter, a.ValidBefore = seconds(t, m.ValidAfter), seconds(t, m.ValidBefore)
	a.Nonce = [32]byte(unhex(t, m.Nonce))
	return a
}

// The EIP-3009 vectors: separator, digest, signature and the address back. A
// ReceiveWithAuthorization over the same message has a digest that Digest never
// makes.
func TestVectors(t *testing.T) {
	t.Parallel()
	all := readVectors(t)
	key, err := crypto.ToECDSA(unhex(t, all.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, v := range all.Vectors {
		if !strings.HasPrefix(v.ID, "eip3009-") {
			continue
		}
		counts[v.PrimaryType]++
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			d := eip3009.Domain{Name: v.Domain.Name, Version: v.Domain.Version, ChainID: v.Domain.ChainID, Contract: [20]byte(unhex(t, v.Domain.VerifyingContract))}
			separator := d.Separator()
			if got := "0x" + hex.EncodeToString(separator[:]); got != v.DomainSeparator {
				t.Errorf("Separator = %s, want %s", got, v.DomainSeparator)
			}
			digest := eip3009.Digest(separator, authorization(t, v.Message))
			got := "0x" + hex.EncodeToString(digest[:])
			if v.PrimaryType != "TransferWithAuthorization" {
				if got == v.Digest {
					t.Errorf("Digest makes the digest of a %s", v.PrimaryType)
				}
				return
			}
			if got != v.Digest {
				t.Errorf("Digest = %s, want %s", got, v.Digest)
			}
			raw, err := crypto.Sign(digest[:], key)
			if err != nil {
				t.Fatal(err)
			}
			sig, err := eip3009.NormalizeSignature(raw)
			if err != nil {
				t.Fatal(err)
			}
			if got := "0x" + hex.EncodeToString(sig[:]); got != v.Signature {
				t.Errorf("signature = %s, want %s", got, v.Signature)
			}
			from, err := eip3009.Recover(digest, unhex(t, v.Signature))
			if want := [20]byte(unhex(t, all.Address)); err != nil || from != want {
				t.Errorf("Recover = %x, %v, want %x", from, err, want)
			}
		})
	}
	if counts["TransferWithAuthorization"] != 4 || counts["ReceiveWithAuthorization"] != 4 {
		t.Errorf("vectors read: %v", counts)
	}
}

// The low form of a vector's signature that arrives in any of its spellings.
func TestVectorSpellings(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Vectors {
		if v.Signature == "" || v.Digest == "" {
			continue
		}
		want := unhex(t, v.Signature)
		if len(want) != 65 {
			continue
		}
		for _, sig := range spellings(want) {
			got, err := eip3009.NormalizeSignature(sig)
			if err != nil || got != [65]byte(want) {
				t.Errorf("%s: NormalizeSignature(v %d) = %x, %v, want %x", v.ID, sig[64], got, err, want)
			}
		}
	}
}

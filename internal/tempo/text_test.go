package tempo_test

import (
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"github.com/canopy-go/canopy/internal/eip3009"
	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

func TestAttribution(t *testing.T) {
	t.Parallel()
	a := readVectors(t).MPP.Attribution
	if len(a.Cases) != 3 {
		t.Fatalf("%d memos, want 3", len(a.Cases))
	}
	tag := keccak.Sum256([]byte("mpp"))
	same(t, "tag", tag[:4], a.Tag)
	for _, c := range a.Cases {
		memo := tempo.Attribution(c.ServerID, c.ClientID, c.ChallengeID)
		same(t, "Attribution", memo[:], c.Memo)
		if !tempo.Attributed(memo, c.ServerID, c.ChallengeID) {
			t.Errorf("Attributed(%x) = false", memo)
		}
		for _, other := range [][2]string{{c.ServerID + "x", c.ChallengeID}, {c.ServerID, c.ChallengeID + "x"}, {c.ChallengeID, c.ServerID}} {
			if tempo.Attributed(memo, other[0], other[1]) {
				t.Errorf("Attributed(%x, %q, %q) = true", memo, other[0], other[1])
			}
		}
		for i := range memo {
			bad := memo
			bad[i] ^= 1
			if got, want := tempo.Attributed(bad, c.ServerID, c.ChallengeID), i >= 15 && i < 25; got != want {
				t.Errorf("Attributed with byte %d changed = %v, want %v", i, got, want)
			}
		}
	}
	long := strings.Repeat("é", 4096)
	if m := tempo.Attribution(long, long, long); !tempo.Attributed(m, long, long) || m == tempo.Attribution(long, "", long) {
		t.Errorf("Attribution of long texts = %x", m)
	}
}

func TestProofDigest(t *testing.T) {
	t.Parallel()
	v := readVectors(t).MPP
	p := v.ProofV3
	account := payment.Address(p.TypedData.Message.Account)
	digest := tempo.ProofDigest(p.TypedData.Domain.ChainID, account, p.TypedData.Message.ChallengeID, p.TypedData.Message.Realm)
	same(t, "ProofDigest", digest[:], p.Digest)
	signed := must[[20]byte](t)(eip3009.Recover(digest, p.Signature))
	same(t, "signer", signed[:], account[:])

	c := v.ProofCrossCheck
	digest = tempo.ProofDigest(c.ChainID, payment.Address(c.Account), c.ChallengeID, c.Realm)
	same(t, "ProofDigest", digest[:], c.V3)
}

func FuzzProofDigest(f *testing.F) {
	f.Add(uint64(42431), make([]byte, 20), "challenge-123", "Café — 日本")
	f.Add(^uint64(0), []byte{1}, "", strings.Repeat("x", 300))
	f.Fuzz(func(t *testing.T, chain uint64, account []byte, id, realm string) {
		var a payment.Address
		copy(a[:], account)
		field := func(name, typ string) apitypes.Type { return apitypes.Type{Name: name, Type: typ} }
		want, _, err := apitypes.TypedDataAndHash(apitypes.TypedData{
			Types: apitypes.Types{
				"EIP712Domain": {field("name", "string"), field("version", "string"), field("chainId", "uint256")},
				"Proof":        {field("account", "address"), field("challengeId", "string"), field("realm", "string")},
			},
			PrimaryType: "Proof",
			Domain:      apitypes.TypedDataDomain{Name: "MPP", Version: "3", ChainId: (*math.HexOrDecimal256)(payment.UnitsOf(chain).Big())},
			Message:     apitypes.TypedDataMessage{"account": common.Address(a).Hex(), "challengeId": id, "realm": realm},
		})
		if err != nil {
			t.Fatal(err)
		}
		got := tempo.ProofDigest(chain, a, id, realm)
		same(t, "ProofDigest", got[:], want)
	})
}

func TestSource(t *testing.T) {
	t.Parallel()
	v := readVectors(t).MPP.ProofV3
	account := payment.Address(v.TypedData.Message.Account)
	if got := tempo.Source(42431, account); got != v.Source {
		t.Errorf("Source = %q, want %q", got, v.Source)
	}
	lower := strings.ToLower(v.Source)
	for _, s := range []string{v.Source, lower} {
		chain, got, err := tempo.ParseSource(s)
		if err != nil || chain != 42431 || got != account {
			t.Errorf("ParseSource(%q) = %d, %v, %v", s, chain, got, err)
		}
	}
	for _, s := range []string{
		"", "did:pkh:eip155:", v.Source + " ", " " + v.Source, v.Source + "0", v.Source[:len(v.Source)-1],
		strings.Replace(v.Source, "0xf3", "0xF3", 1), // a wrong checksum
		strings.Replace(lower, "42431", "042431", 1), strings.Replace(lower, "42431", "", 1),
		strings.Replace(lower, "42431", "0", 1), strings.Replace(lower, "42431", "+42431", 1),
		strings.Replace(lower, "eip155", "solana", 1), strings.Replace(lower, "did:pkh:", "", 1), "did:pkh:eip155:42431",
	} {
		if chain, got, err := tempo.ParseSource(s); err == nil || chain != 0 || !got.IsZero() {
			t.Errorf("ParseSource(%q) = %d, %v, %v, want an error", s, chain, got, err)
		}
	}
}

func FuzzParseSource(f *testing.F) {
	f.Add("did:pkh:eip155:42431:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266")
	f.Add("did:pkh:eip155:1:0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266")
	f.Fuzz(func(t *testing.T, s string) {
		chain, account, err := tempo.ParseSource(s)
		if err == nil && !strings.EqualFold(tempo.Source(chain, account), s) {
			t.Errorf("ParseSource(%q) = %d, %v", s, chain, account)
		}
	})
}

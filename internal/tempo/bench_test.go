package tempo_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

// charge is what one charge signs: a transfer with memo on a lane.
func charge() tempo.Transaction {
	transfer := tempo.Transfer{
		Token: pathUSD, To: payee, Amount: payment.UnitsOf(10_000), HasMemo: true,
		Memo: tempo.Attribution("api.example.com", "canopy", "Oirt9HXC42uaoJTJIjomgoPWUXjhWkpvXEJs8aYL4pE"),
	}
	return tempo.Transaction{
		ChainID: 42431, MaxPriorityFeePerGas: 1_000_000_000, MaxFeePerGas: 25_000_000_000, Gas: 300_000,
		Calls:    []tempo.Call{transfer.Call()},
		NonceKey: [32]byte{0: 0x5a, 31: 1}, Nonce: 3, ValidBefore: 1_767_225_600, FeeToken: pathUSD,
	}
}

// BenchmarkSignFloor is the cost below which no transaction can be signed.
func BenchmarkSignFloor(b *testing.B) {
	k := key(b, readVectors(b).Vectors[0].PrivateKey)
	digest := make([]byte, 32)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := crypto.Sign(digest, k); err != nil {
			b.Fatal(err)
		}
	}
}

// codec is all that a charge does beside the signature itself: memo and call
// data, the digest, the signed bytes, their hash, and reading them back.
func codec(b *testing.B, sig []byte) {
	tx := charge()
	tx.SigningHash()
	signed, err := tx.WithSignature(sig)
	if err != nil {
		b.Fatal(err)
	}
	raw := signed.Encode()
	if _, err := signed.Hash(); err != nil {
		b.Fatal(err)
	}
	back, err := tempo.Decode(raw)
	if err != nil || !back.Equal(&signed) {
		b.Fatal("read back as another", err)
	}
	if _, err := tempo.ParseCall(back.Calls[0]); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkCodec(b *testing.B) {
	sig := []byte(readVectors(b).Vectors[0].Signature)
	b.ReportAllocs()
	for b.Loop() {
		codec(b, sig)
	}
}

// BenchmarkSignedOverFloor interleaves a signed transaction with the bare
// signature and logs the best rounds of both.
func BenchmarkSignedOverFloor(b *testing.B) {
	v := readVectors(b).Vectors[0]
	k, sig, digest := key(b, v.PrivateKey), []byte(v.Signature), make([]byte, 32)
	const rounds = 10
	best := [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		start := time.Now()
		for range rounds {
			crypto.Sign(digest, k)
		}
		mid := time.Now()
		for range rounds {
			crypto.Sign(digest, k)
			codec(b, sig)
		}
		best[0] = min(best[0], mid.Sub(start))
		best[1] = min(best[1], time.Since(mid))
	}
	b.Logf("floor %v, signed transaction %v: %d%%", best[0]/rounds, best[1]/rounds, best[1]*100/best[0])
}

func BenchmarkParts(b *testing.B) {
	v := readVectors(b).Vectors[0]
	signed := charge()
	signed.Signature = v.Signature
	raw := signed.Encode()
	transfer, err := tempo.ParseCall(signed.Calls[0])
	if err != nil {
		b.Fatal(err)
	}
	for name, f := range map[string]func(){
		"Encode":      func() { signed.Encode() },
		"SigningHash": func() { signed.SigningHash() },
		"Hash":        func() { signed.Hash() },
		"Decode":      func() { tempo.Decode(raw) },
		"Call":        func() { transfer.Call() },
		"ParseCall":   func() { tempo.ParseCall(signed.Calls[0]) },
		"Attribution": func() { tempo.Attribution("api.example.com", "canopy", "Oirt9HXC42uaoJTJIjomgoPWUXjhWkpvXEJs8aYL4pE") },
		"ProofDigest": func() {
			tempo.ProofDigest(42431, payee, "Oirt9HXC42uaoJTJIjomgoPWUXjhWkpvXEJs8aYL4pE", "api.example.com")
		},
		"Source": func() { tempo.Source(42431, payee) },
		"Sender": func() { signed.Sender() },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}

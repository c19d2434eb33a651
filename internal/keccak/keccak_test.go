package keccak_test

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/internal/keccak"
)

func TestSum256Known(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"empty", "", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"},
		{"abc", "abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"},
		{"transfer event", "Transfer(address,address,uint256)", "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"},
		{"eip712 domain", "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)", "8b73c3c69bb8fe3d512ecc4cf759cc79239f7b179b0ffacaa9a75d522b39400f"},
		{"TransferWithAuthorization", "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)", "7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			sum := keccak.Sum256([]byte(tc.in))
			if got := hex.EncodeToString(sum[:]); got != tc.want {
				t.Errorf("Sum256(%q) = %s, want %s", tc.in, got, tc.want)
			}
		})
	}
}

func TestSum256None(t *testing.T) {
	t.Parallel()
	if got, want := keccak.Sum256(), keccak.Sum256(nil, []byte{}); got != want {
		t.Errorf("Sum256() = %x, want %x", got, want)
	}
}

// Every length around the edges of the sponge's block and of the staging
// buffer, split into parts at random, against go-ethereum.
func TestSum256Parts(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 2400 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		i := rng.IntN(n + 1)
		j := i + rng.IntN(n-i+1)
		if got, want := keccak.Sum256(b[:i], b[i:j], b[j:]), crypto.Keccak256(b); !bytes.Equal(got[:], want) {
			t.Fatalf("Sum256 of %d bytes split at %d and %d = %x, want %x", n, i, j, got, want)
		}
	}
}

func TestSum256Concurrent(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			b := bytes.Repeat([]byte{byte(g)}, 300)
			want := crypto.Keccak256(b)
			for range 200 {
				if got := keccak.Sum256(b); !bytes.Equal(got[:], want) {
					t.Errorf("Sum256 = %x, want %x", got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

// The addresses of EIP-55 itself.
func TestChecksumSpec(t *testing.T) {
	t.Parallel()
	for _, want := range []string{
		"0x52908400098527886E0F7030069857D2E4169EE7",
		"0x8617E340B3D01FA5F11F306F4090FD50E238070D",
		"0xde709f2102306220921060314715629080e2fb77",
		"0x27b1fdb04752bbc536007a920d24acb045561c26",
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		"0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
		"0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
		"0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			b, err := hex.DecodeString(strings.ToLower(want[2:]))
			if err != nil {
				t.Fatal(err)
			}
			if got := keccak.Checksum([20]byte(b)); got != want {
				t.Errorf("Checksum = %s, want %s", got, want)
			}
		})
	}
}

func FuzzSum256(f *testing.F) {
	f.Add([]byte("a"), []byte(""), []byte(strings.Repeat("x", 1088)))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		if got, want := keccak.Sum256(a, b, c), crypto.Keccak256(a, b, c); !bytes.Equal(got[:], want) {
			t.Errorf("Sum256 = %x, want %x", got, want)
		}
	})
}

func FuzzChecksum(f *testing.F) {
	f.Add(make([]byte, 20))
	f.Fuzz(func(t *testing.T, b []byte) {
		a := common.BytesToAddress(b)
		if got, want := keccak.Checksum(a), a.Hex(); got != want {
			t.Errorf("Checksum = %s, want %s", got, want)
		}
	})
}

func BenchmarkSum256(b *testing.B) {
	var x, y [113]byte
	b.ReportAllocs()
	for b.Loop() {
		keccak.Sum256(x[:], y[:])
	}
}

func BenchmarkChecksum(b *testing.B) {
	a := [20]byte{1, 2, 3, 0xfe, 0xab}
	b.ReportAllocs()
	for b.Loop() {
		keccak.Checksum(a)
	}
}

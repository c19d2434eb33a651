package x402

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/canopy-go/canopy/payment"
)

// The domain separators of the rail's tokens are those of the vectors, and the
// one of Monad that is known from its chain (case 31).
func TestSeparators(t *testing.T) {
	t.Parallel()
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("../internal/eip3009/testdata/x402.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			ID, PrimaryType, DomainSeparator string
			Domain                           struct {
				Name, Version, VerifyingContract string
				ChainID                          uint64
			}
		}
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, v := range file.Vectors {
		if v.PrimaryType != "TransferWithAuthorization" {
			continue
		}
		n++
		address, err := payment.ParseAddress(v.Domain.VerifyingContract)
		if err != nil {
			t.Fatal(err)
		}
		tok := r.token(payment.EVMChain(v.Domain.ChainID), address)
		if tok == nil || tok.asset.Name != v.Domain.Name || tok.asset.Version != v.Domain.Version {
			t.Errorf("%s: the table has %+v", v.ID, tok)
			continue
		}
		if got := "0x" + hex.EncodeToString(tok.separator[:]); got != v.DomainSeparator {
			t.Errorf("%s: %s, want %s", v.ID, got, v.DomainSeparator)
		}
	}
	if n != 4 {
		t.Errorf("%d vectors", n)
	}
	usdc := payment.KnownAssets().On("eip155:143")[0]
	tok := r.token(usdc.Chain, usdc.Address)
	if got := hex.EncodeToString(tok.separator[:]); got != "fe22123edc0dd4aeb912eb7948c5f0e531592c2053b3067612f427db342c93c6" {
		t.Errorf("Monad: %s", got)
	}
}

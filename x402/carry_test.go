package x402_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/canopy-go/canopy/internal/eip1559"
	"github.com/canopy-go/canopy/internal/permit"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/signer"
	"github.com/canopy-go/canopy/x402"
)

// carried is what the ledger would permit for a transfer of a cent, with its
// authorization signed.
func carried(t testing.TB) payment.CarryGrant {
	t.Helper()
	o, err := rail(t).Transfer(t.Context(), payment.Transfer{To: payment.Address{19: 7}, Amount: payment.Cent, Chain: payment.Base})
	if err != nil {
		t.Fatal(err)
	}
	g := grant(t, o)
	g.Terms = o.Terms("", "", "", [32]byte{})
	g.Terms.Validity = time.Minute
	g.ValidBefore = noon.Add(time.Minute)
	key := payment.CarryKey(g.PaymentID, 1)
	return payment.CarryGrant{
		Grant: g, Authorization: authorize(t, g), Key: key, Permit: permit.Mint(key, g.ValidBefore),
		Carry: payment.Carry{Nonce: 7, GasLimit: 200_000, MaxFee: 30_000_000, MaxTip: 1_000_000},
	}
}

func carry(t testing.TB, g payment.CarryGrant) []byte {
	t.Helper()
	raw, hash, err := rail(t).Carry(t.Context(), g, key(t))
	if err != nil {
		t.Fatal(err)
	}
	if want := eip1559.Hash(raw); hash != "0x"+hex.EncodeToString(want[:]) {
		t.Errorf("hash %s, want %x", hash, want)
	}
	return raw
}

// TestCarry holds the transaction to go-ethereum's reading of it: a call of the
// token that moves the cent, and nothing else.
func TestCarry(t *testing.T) {
	t.Parallel()
	g := carried(t)
	raw := carry(t, g)
	if err := rail(t).ReadCarry(raw, g); err != nil {
		t.Error(err)
	}
	var tx types.Transaction
	if err := tx.UnmarshalBinary(raw); err != nil {
		t.Fatal(err)
	}
	from, err := types.Sender(types.NewLondonSigner(big.NewInt(8453)), &tx)
	switch {
	case err != nil || from != common.Address(g.Grant.Payer):
		t.Errorf("from %s, %v", from, err)
	case tx.Type() != 2 || *tx.To() != common.Address(g.Grant.Terms.Asset.Address) || tx.Value().Sign() != 0 || len(tx.AccessList()) != 0:
		t.Errorf("type %d to %s with %s and %v", tx.Type(), tx.To(), tx.Value(), tx.AccessList())
	case tx.Nonce() != 7 || tx.Gas() != 200_000 || tx.GasFeeCap().Int64() != 30_000_000 || tx.GasTipCap().Int64() != 1_000_000:
		t.Errorf("nonce %d, gas %d, fees %s and %s", tx.Nonce(), tx.Gas(), tx.GasFeeCap(), tx.GasTipCap())
	}
	doc := document(t, g.Authorization)
	at := strings.Index(doc, `"signature":"0x`) + len(`"signature":"0x`)
	sig := doc[at : at+130]
	word := func(s string) string { return strings.Repeat("0", 64-len(s)) + s }
	addr := func(a payment.Address) string { return word(hex.EncodeToString(a[:])) }
	want := "e3ee160e" + addr(g.Grant.Payer) + addr(payment.Address{19: 7}) + word("2710") + word("") +
		word(big.NewInt(g.Grant.ValidBefore.Unix()).Text(16)) + hex.EncodeToString(g.Grant.Slot.NonceID[:]) +
		word(sig[128:]) + sig[:64] + sig[64:128]
	if got := hex.EncodeToString(tx.Data()); got != want {
		t.Errorf("the call is\n%s\nwant\n%s", got, want)
	}
	if again := carry(t, g); !bytes.Equal(again, raw) {
		t.Error("the same grant gives other bytes")
	}
	g2 := g
	g2.Carry.MaxFee *= 2
	if _, _, err := rail(t).Carry(t.Context(), g2, key(t)); err == nil || !strings.Contains(err.Error(), "other bytes") {
		t.Errorf("one permit signs two transactions: %v", err)
	}
}

// TestCarryRefuses signs nothing that is not g's.
func TestCarryRefuses(t *testing.T) {
	t.Parallel()
	other, err := signer.FromHex(strings.Repeat("11", 32))
	if err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(*payment.CarryGrant, *payment.Signer){
		"no permit":         func(g *payment.CarryGrant, _ *payment.Signer) { g.Permit = payment.Permit{} },
		"the slot's permit": func(g *payment.CarryGrant, _ *payment.Signer) { g.Permit = g.Grant.Permit },
		"another's permit": func(g *payment.CarryGrant, _ *payment.Signer) {
			g.Permit = permit.Mint(payment.CarryKey(g.Grant.PaymentID, 2), noon.Add(time.Minute))
		},
		"another signer":         func(_ *payment.CarryGrant, s *payment.Signer) { *s = other },
		"no gas":                 func(g *payment.CarryGrant, _ *payment.Signer) { g.Carry.GasLimit = 0 },
		"more gas than it needs": func(g *payment.CarryGrant, _ *payment.Signer) { g.Carry.GasLimit++ },
		"no fee":                 func(g *payment.CarryGrant, _ *payment.Signer) { g.Carry.MaxFee, g.Carry.MaxTip = 0, 0 },
		"a tip above the fee":    func(g *payment.CarryGrant, _ *payment.Signer) { g.Carry.MaxTip = g.Carry.MaxFee + 1 },
		"no authorization":       func(g *payment.CarryGrant, _ *payment.Signer) { g.Authorization = payment.Authorization{} },
		"another validity": func(g *payment.CarryGrant, _ *payment.Signer) {
			g.Grant.ValidBefore = g.Grant.ValidBefore.Add(time.Second)
		},
		"another amount": func(g *payment.CarryGrant, _ *payment.Signer) {
			g.Grant.Terms.Amount = payment.UnitsOf(10_001)
			g.Grant.Terms.Recipients = []payment.Recipient{{Address: payment.Address{19: 7}, Amount: payment.UnitsOf(10_001)}}
		},
		"another payee": func(g *payment.CarryGrant, _ *payment.Signer) {
			g.Grant.Terms.Recipients = []payment.Recipient{{Address: payment.Address{19: 8}, Amount: g.Grant.Terms.Amount}}
		},
		"another nonce": func(g *payment.CarryGrant, _ *payment.Signer) { g.Grant.Slot.NonceID[0]++ },
	} {
		g := carried(t)
		s := payment.Signer(key(t))
		bend(&g, &s)
		if raw, _, err := rail(t).Carry(t.Context(), g, s); err == nil {
			t.Errorf("%s: signed %x", name, raw)
		}
	}
}

// TestReadCarry finds every difference between what was permitted and what was
// signed.
func TestReadCarry(t *testing.T) {
	t.Parallel()
	g := carried(t)
	raw := carry(t, g)
	for i := range raw {
		bent := slices.Clone(raw)
		bent[i] ^= 1
		if err := rail(t).ReadCarry(bent, g); err == nil {
			t.Errorf("byte %d is another, and nothing was said", i)
		}
	}
	good, _, err := eip1559.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(*eip1559.Transaction){
		"chain": func(t *eip1559.Transaction) { t.ChainID = 1 }, "nonce": func(t *eip1559.Transaction) { t.Nonce++ },
		"fee": func(t *eip1559.Transaction) { t.MaxFee++ }, "tip": func(t *eip1559.Transaction) { t.MaxTip++ },
		"gas": func(t *eip1559.Transaction) { t.GasLimit++ }, "contract": func(t *eip1559.Transaction) { t.To[0]++ },
		"call":        func(t *eip1559.Transaction) { t.Input = append([]byte{0xa9, 0x05, 0x9c, 0xbb}, t.Input[4:]...) },
		"payee":       func(t *eip1559.Transaction) { t.Input = bytes.Clone(t.Input); t.Input[4+63]++ },
		"amount":      func(t *eip1559.Transaction) { t.Input = bytes.Clone(t.Input); t.Input[4+95]++ },
		"more call":   func(t *eip1559.Transaction) { t.Input = append(bytes.Clone(t.Input), make([]byte, 32)...) },
		"its payment": func(t *eip1559.Transaction) { t.Input = bytes.Clone(t.Input); t.Input[4+5*32]++ },
	} {
		tx := good
		bend(&tx)
		k := payment.CarryKey(g.Grant.PaymentID, 1)
		sig, err := key(t).Sign(t.Context(), permit.Mint(k, g.Grant.ValidBefore), tx.Digest())
		if err != nil {
			t.Fatal(err)
		}
		if err := rail(t).ReadCarry(tx.Encode([65]byte(sig)), g); !errors.Is(err, x402.ErrMismatch) {
			t.Errorf("another %s, signed by the payer: %v", name, err)
		}
	}
	other, err := signer.FromHex(strings.Repeat("11", 32))
	if err != nil {
		t.Fatal(err)
	}
	sig, err := other.Sign(t.Context(), permit.Mint("x", time.Now().Add(time.Hour)), good.Digest())
	if err != nil {
		t.Fatal(err)
	}
	if err := rail(t).ReadCarry(good.Encode([65]byte(sig)), g); !errors.Is(err, payment.ErrForeignSignature) {
		t.Errorf("signed by another: %v", err)
	}
	// The authorization too has to be the payer's, or the gas is for nothing.
	sig, err = other.Sign(t.Context(), permit.Mint("x", time.Now().Add(time.Hour)), [32]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	forged := g
	doc := document(t, g.Authorization)
	at := strings.Index(doc, `"signature":"0x`) + len(`"signature":"0x`)
	forged.Authorization.Value = b64(doc[:at] + hex.EncodeToString(sig) + doc[at+130:])
	forged.Permit = permit.Mint(g.Key, g.Grant.ValidBefore)
	raw, _, err = rail(t).Carry(t.Context(), forged, key(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := rail(t).ReadCarry(raw, forged); !errors.Is(err, payment.ErrForeignSignature) {
		t.Errorf("an authorization of somebody else: %v", err)
	}
}

// FuzzReadCarry: only the one transaction is it.
func FuzzReadCarry(f *testing.F) {
	g := carried(f)
	raw := carry(f, g)
	f.Add(raw)
	f.Add(raw[:len(raw)-1])
	f.Add([]byte{2, 0xc0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := rail(t).ReadCarry(b, g); (err == nil) != bytes.Equal(b, raw) {
			t.Errorf("%x: %v", b, err)
		}
	})
}

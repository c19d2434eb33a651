package x402_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"github.com/canopy-go/canopy/payment"
)

// wire is a payment as a facilitator's own code would read it.
type wire struct {
	X402Version int
	Scheme      string
	Network     string
	Accepted    struct {
		Scheme, Network, Amount, Asset, PayTo string
	}
	Payload struct {
		Signature     string
		Authorization struct {
			From, To, Value, ValidAfter, ValidBefore, Nonce string
		}
	}
}

// oracle reads a with encoding/json, hashes it with go-ethereum's typed data
// under asset's domain, and recovers who signed.
func oracle(a payment.Authorization, asset payment.Asset) (w wire, signer common.Address, err error) {
	doc, err := base64.StdEncoding.DecodeString(a.Value)
	if err != nil {
		return w, signer, err
	}
	if err := json.Unmarshal(doc, &w); err != nil {
		return w, signer, err
	}
	n, _ := asset.Chain.Number()
	m := w.Payload.Authorization
	data := apitypes.TypedData{
		Types: apitypes.Types{
			"EIP712Domain": {{Name: "name", Type: "string"}, {Name: "version", Type: "string"}, {Name: "chainId", Type: "uint256"}, {Name: "verifyingContract", Type: "address"}},
			"TransferWithAuthorization": {
				{Name: "from", Type: "address"}, {Name: "to", Type: "address"}, {Name: "value", Type: "uint256"},
				{Name: "validAfter", Type: "uint256"}, {Name: "validBefore", Type: "uint256"}, {Name: "nonce", Type: "bytes32"},
			},
		},
		PrimaryType: "TransferWithAuthorization",
		Domain: apitypes.TypedDataDomain{
			Name: asset.Name, Version: asset.Version, ChainId: math.NewHexOrDecimal256(int64(n)), VerifyingContract: asset.Address.String(),
		},
		Message: apitypes.TypedDataMessage{"from": m.From, "to": m.To, "value": m.Value, "validAfter": m.ValidAfter, "validBefore": m.ValidBefore, "nonce": m.Nonce},
	}
	digest, _, err := apitypes.TypedDataAndHash(data)
	if err != nil {
		return w, signer, err
	}
	sig, err := hex.DecodeString(strings.TrimPrefix(w.Payload.Signature, "0x"))
	if err != nil || len(sig) != 65 || sig[64] < 27 {
		return w, signer, fmt.Errorf("signature %s", w.Payload.Signature)
	}
	sig[64] -= 27
	pub, err := crypto.SigToPub(digest, sig)
	if err != nil {
		return w, signer, err
	}
	return w, crypto.PubkeyToAddress(*pub), nil
}

// checkOracle holds a against the grant by the oracle's reading.
func checkOracle(t *testing.T, a payment.Authorization, g payment.Grant) {
	t.Helper()
	w, signer, err := oracle(a, g.Terms.Asset)
	if err != nil {
		t.Fatal(err)
	}
	m := w.Payload.Authorization
	for _, c := range []struct{ what, got, want string }{
		{"signer", signer.Hex(), g.Payer.String()},
		{"from", m.From, g.Payer.String()},
		{"to", m.To, g.Terms.Payee().String()},
		{"value", m.Value, g.Terms.Amount.String()},
		{"validAfter", m.ValidAfter, "0"},
		{"validBefore", m.ValidBefore, fmt.Sprint(g.ValidBefore.Unix())},
		{"nonce", m.Nonce, "0x" + hex.EncodeToString(g.Slot.NonceID[:])},
		{"version", fmt.Sprint(w.X402Version), fmt.Sprint(g.Version)},
	} {
		if c.got != c.want {
			t.Errorf("%s is %s, want %s", c.what, c.got, c.want)
		}
	}
	if g.Version == 2 && (w.Accepted.Amount != m.Value || !strings.EqualFold(w.Accepted.PayTo, m.To) || !strings.EqualFold(w.Accepted.Asset, g.Terms.Asset.Address.String()) || w.Accepted.Network != string(g.Terms.Asset.Chain)) {
		t.Errorf("accepted is %+v", w.Accepted)
	}
}

// entryFor is R for another token.
func entryFor(a payment.Asset, amount payment.Units) string {
	return fmt.Sprintf(`{"scheme":"exact","network":%q,"asset":%q,"amount":%q,"payTo":%q,"maxTimeoutSeconds":60,"extra":{"name":%q,"version":%q}}`,
		a.Chain, a.Address, amount, payee, a.Name, a.Version)
}

// Cases 31 and 32, golden vectors: every pinned token is signed for under its
// own domain.
func TestOracle(t *testing.T) {
	t.Parallel()
	n := 0
	for _, asset := range payment.KnownAssets().All() {
		if asset.NoAuthorization {
			continue
		}
		n++
		g := grant(t, offer(t, v2(entryFor(asset, payment.UnitsOf(10000)))))
		if g.Terms.Asset != asset {
			t.Fatalf("%v: offered %+v", asset, g.Terms.Asset)
		}
		checkOracle(t, authorize(t, g), g)
	}
	if n < 20 {
		t.Errorf("%d tokens", n)
	}
	g := grant(t, offer(t, v1(R1)))
	checkOracle(t, authorize(t, g), g)
}

package eip3009_test

import (
	"bytes"
	"encoding/hex"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"github.com/canopy-go/canopy/internal/eip3009"
)

// typedData is what go-ethereum's reflective encoder makes of the same.
func typedData(d eip3009.Domain, a eip3009.Authorization) apitypes.TypedData {
	field := func(name, typ string) apitypes.Type { return apitypes.Type{Name: name, Type: typ} }
	number := func(n uint64) string { return new(big.Int).SetUint64(n).String() }
	return apitypes.TypedData{
		Types: apitypes.Types{
			"EIP712Domain":              {field("name", "string"), field("version", "string"), field("chainId", "uint256"), field("verifyingContract", "address")},
			"TransferWithAuthorization": {field("from", "address"), field("to", "address"), field("value", "uint256"), field("validAfter", "uint256"), field("validBefore", "uint256"), field("nonce", "bytes32")},
		},
		PrimaryType: "TransferWithAuthorization",
		Domain: apitypes.TypedDataDomain{
			Name: d.Name, Version: d.Version, VerifyingContract: common.Address(d.Contract).Hex(),
			ChainId: (*math.HexOrDecimal256)(new(big.Int).SetUint64(d.ChainID)),
		},
		Message: apitypes.TypedDataMessage{
			"from": common.Address(a.From).Hex(), "to": common.Address(a.To).Hex(), "value": new(big.Int).SetBytes(a.Value[:]).String(),
			"validAfter": number(a.ValidAfter), "validBefore": number(a.ValidBefore), "nonce": hexutil.Encode(a.Nonce[:]),
		},
	}
}

// separators by their contracts: where want is given it was read from a chain
// or a specification; all are compared with go-ethereum's encoder.
func TestSeparatorOfTokens(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		token         string
		name, version string
		chain         uint64
		contract      string
		want          string
	}{
		{"USDC on Ethereum", "USD Coin", "2", 1, "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", "06c37168a7db5138defc7866392bb87a741f9b3d104deb5094588ce041cae335"},
		{"USDC on Base", "USD Coin", "2", 8453, "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f"},
		{"USDC on Base Sepolia", "USDC", "2", 84532, "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818"},
		{"USDC on Avalanche", "USD Coin", "2", 43114, "0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E", ""},
		{"USDC on Polygon", "USD Coin", "2", 137, "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", ""},
		{"USDC on Arbitrum", "USD Coin", "2", 42161, "0xaf88d065e77c8cC2239327C5EDb3A432268e5831", ""},
		{"USDC on Arbitrum Sepolia", "USD Coin", "2", 421614, "0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d", ""},
		{"USDC on Monad", "USDC", "2", 143, "0x754704Bc059F8C67012fEd69BC8A327a5aafb603", "fe22123edc0dd4aeb912eb7948c5f0e531592c2053b3067612f427db342c93c6"},
		{"USDT0 on Stable", "USDT0", "1", 988, "0x779Ded0c9e1022225f8E0630b35a9b54bE713736", ""},
		{"USDT0 on Stable testnet", "USDT0", "1", 2201, "0x78Cf24370174180738C5B8E352B6D14c83a6c9A9", ""},
		{"USD₮0 on Flare", "USD₮0", "1", 14, "0xe7cd86e13AC4309349F30B3435a9d337750fC82D", "4c53d754dcb2f406ecf83695856d8c10b13296a318d9a481043412bf253d43ae"},
		{"USDC on XDC", "USDC", "2", 50, "0xfA2958CB79b0491CC627c1557F441eF849Ca8eb1", ""},
		{"USDC on XDC Apothem", "USDC", "2", 51, "0xb5AB69F7bBada22B28e79C8FFAECe55eF1c771D4", ""},
		{"USDC on Celo", "USDC", "2", 42220, "0xcebA9300f2b948710d2653dD7B07f33A8B32118C", ""},
		{"USDT on Celo", "Tether USD", "1", 42220, "0x48065fbBE25f71C9282ddf5e1cD6D6A887483D5e", ""},
		{"USAT on Celo", "Tether America USD", "1", 42220, "0xD2ab3C9A02DBBAB236BfEC45D1d755DF4267F771", ""},
		{"USDC on Celo Sepolia", "USDC", "2", 11142220, "0x01C5C0122039549AD1493B8220cABEdD739BC44E", ""},
		{"USDC on Sei", "USDC", "2", 1329, "0xe15fC38F6D8c56aF07bbCBe3BAf5708A2Bf42392", ""},
		{"USDC on Sei testnet", "USDC", "2", 1328, "0x4fCF1784B31630811181f670Aea7A7bEF803eaED", ""},
		{"USDC.e on ADI", "USDC.e", "2", 36900, "0x9cb8142aEBBcdc60AF7c97Af897A67A8f3CA71C2", ""},
		{"USDC on HPP", "Bridged USDC", "2", 190415, "0x401eCb1D350407f13ba348573E5630B83638E30D", ""},
		{"USDC on HPP Sepolia", "Bridged USDC", "2", 181228, "0x401eCb1D350407f13ba348573E5630B83638E30D", ""},
	} {
		t.Run(tc.token, func(t *testing.T) {
			t.Parallel()
			d := eip3009.Domain{Name: tc.name, Version: tc.version, ChainID: tc.chain, Contract: common.HexToAddress(tc.contract)}
			got := d.Separator()
			if tc.want != "" && hex.EncodeToString(got[:]) != tc.want {
				t.Errorf("Separator = %x, want %s", got, tc.want)
			}
			td := typedData(d, eip3009.Authorization{})
			want, err := td.HashStruct("EIP712Domain", td.Domain.Map())
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got[:], want) {
				t.Errorf("Separator = %x, want %x", got, want)
			}
		})
	}
}

func FuzzDigest(f *testing.F) {
	f.Add("USD Coin", "2", uint64(8453), make([]byte, 20), make([]byte, 40), make([]byte, 64), uint64(0), uint64(1740672154))
	f.Add("USD₮0", "1", uint64(14), []byte{1}, []byte{2, 3}, []byte{4}, ^uint64(0), uint64(1)<<63)
	f.Fuzz(func(t *testing.T, name, version string, chain uint64, contract, parties, rest []byte, after, before uint64) {
		if name == "" || version == "" {
			return // go-ethereum leaves empty fields out of the domain
		}
		d := eip3009.Domain{Name: name, Version: version, ChainID: chain}
		a := eip3009.Authorization{ValidAfter: after, ValidBefore: before}
		copy(d.Contract[:], contract)
		copy(a.To[:], parties[copy(a.From[:], parties):])
		copy(a.Nonce[:], rest[copy(a.Value[:], rest):])

		want, _, err := apitypes.TypedDataAndHash(typedData(d, a))
		if err != nil {
			t.Fatal(err)
		}
		if got := eip3009.Digest(d.Separator(), a); !bytes.Equal(got[:], want) {
			t.Errorf("Digest of %+v, %+v = %x, want %x", d, a, got, want)
		}
	})
}

func BenchmarkDigest(b *testing.B) {
	d := eip3009.Domain{Name: "USD Coin", Version: "2", ChainID: 8453}
	separator := d.Separator()
	a := eip3009.Authorization{ValidBefore: 1740672154}
	b.ReportAllocs()
	for b.Loop() {
		a.Nonce = eip3009.Digest(separator, a)
	}
}

func BenchmarkSeparator(b *testing.B) {
	d := eip3009.Domain{Name: "USD Coin", Version: "2", ChainID: 8453}
	b.ReportAllocs()
	for b.Loop() {
		d.Separator()
	}
}

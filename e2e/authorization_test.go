//go:build e2e

package e2e

import (
	"crypto/rand"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// authorization is an EIP-3009 authorization, signed here by hand so that the peers are tested without the
// client that is tested against them.
type authorization struct {
	from, to                       common.Address
	value, validAfter, validBefore uint64
	nonce                          [32]byte
}

// domain is an EIP-712 domain.
type domain struct {
	name, version string
	chainID       uint64
	contract      common.Address
}

func newNonce(t testing.TB) (nonce [32]byte) {
	t.Helper()
	if _, err := rand.Read(nonce[:]); err != nil {
		t.Fatal(err)
	}
	return nonce
}

func (c *Chain) domain() domain { return domain{"USD Coin", "2", c.ID, c.Token} }

func (d domain) separator() [32]byte {
	return keccak(
		hash("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
		hash(d.name), hash(d.version), word(d.chainID), common.LeftPadBytes(d.contract[:], 32),
	)
}

// digest returns what is signed; primary is TransferWithAuthorization or ReceiveWithAuthorization.
func (a authorization) digest(d domain, primary string) [32]byte {
	return d.digest(keccak(
		hash(primary+"(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"),
		common.LeftPadBytes(a.from[:], 32), common.LeftPadBytes(a.to[:], 32),
		word(a.value), word(a.validAfter), word(a.validBefore), a.nonce[:],
	))
}

func (d domain) cancelDigest(authorizer common.Address, nonce [32]byte) [32]byte {
	return d.digest(keccak(
		hash("CancelAuthorization(address authorizer,bytes32 nonce)"),
		common.LeftPadBytes(authorizer[:], 32), nonce[:],
	))
}

func (d domain) digest(message [32]byte) [32]byte {
	separator := d.separator()
	return keccak([]byte{0x19, 0x01}, separator[:], message[:])
}

// sign returns r, s and v (27 or 28), with s low.
func (a Account) sign(t testing.TB, digest [32]byte) []byte {
	t.Helper()
	sig, err := crypto.Sign(digest[:], a.Key)
	if err != nil {
		t.Fatal(err)
	}
	sig[64] += 27
	return sig
}

// highS returns the other signature of the same digest, which the token refuses.
func highS(sig []byte) []byte {
	s := new(big.Int).Sub(crypto.S256().Params().N, new(big.Int).SetBytes(sig[32:64]))
	out := append([]byte(nil), sig...)
	s.FillBytes(out[32:64])
	out[64] = 27 + 28 - sig[64]
	return out
}

// packBytes encodes the call of a method that takes the signature as bytes.
func (a authorization) packBytes(method string, sig []byte) []byte {
	return pack(method+"(address,address,uint256,uint256,uint256,bytes32,bytes)",
		a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, sig)
}

// packVRS encodes the call of a method that takes the signature as v, r and s.
func (a authorization) packVRS(method string, sig []byte) []byte {
	return pack(method+"(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)",
		a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce,
		uint64(sig[64]), [32]byte(sig[:32]), [32]byte(sig[32:64]))
}

func hash(text string) []byte { return crypto.Keccak256([]byte(text)) }

func word(n uint64) []byte { return common.LeftPadBytes(new(big.Int).SetUint64(n).Bytes(), 32) }

func keccak(parts ...[]byte) [32]byte { return crypto.Keccak256Hash(parts...) }

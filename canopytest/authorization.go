package canopytest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"time"

	"github.com/canopy-go/canopy/internal/eip3009"
	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/payment"
)

// Authorization is a signed TransferWithAuthorization of EIP-3009. Whoever has
// it can settle it. It prints without its signature.
type Authorization struct {
	Token       payment.Address
	From, To    payment.Address
	Value       payment.Units
	ValidAfter  payment.Units // seconds since 1970, exclusive
	ValidBefore payment.Units // seconds since 1970, exclusive
	Nonce       [32]byte
	Signature   []byte // r, s, v
}

// Errors of the token, in the words of FiatTokenV2. The chain checks in this
// order.
var (
	ErrToken       = errors.New("canopytest: no token that takes authorizations at this address")
	ErrNotYetValid = errors.New("canopytest: FiatTokenV2: authorization is not yet valid")
	ErrExpired     = errors.New("canopytest: FiatTokenV2: authorization is expired")
	ErrNonceUsed   = errors.New("canopytest: FiatTokenV2: authorization is used or canceled")
	ErrSignature   = errors.New("canopytest: FiatTokenV2: invalid signature")
	ErrRecipient   = errors.New("canopytest: ERC20: transfer to the zero address")
	ErrBalance     = errors.New("canopytest: ERC20: transfer amount exceeds balance")
)

// String tells everything but the signature.
func (a Authorization) String() string {
	return "authorization of " + a.Value.String() + " from " + a.From.String() + " to " + a.To.String() +
		" nonce 0x" + hex.EncodeToString(a.Nonce[:]) + " before " + a.ValidBefore.String()
}

// GoString is String.
func (a Authorization) GoString() string { return a.String() }

// Expires is when a stops being valid, saturated at the year 9999.
func (a Authorization) Expires() time.Time {
	const end = 253402300799
	if n, ok := a.ValidBefore.Uint64(); ok && n < end {
		return time.Unix(int64(n), 0)
	}
	return time.Unix(end, 0)
}

// Digest is the EIP-712 hash that a's signature is over, with the domain of
// asset. It is laid out here by hand, from the standard, so that it is a check
// on any other implementation.
func (a Authorization) Digest(asset payment.Asset) [32]byte {
	number, _ := asset.Chain.Number()
	chain := payment.UnitsOf(number).Bytes()
	domainType := keccak.Sum256([]byte("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"))
	name := keccak.Sum256([]byte(asset.Name))
	version := keccak.Sum256([]byte(asset.Version))
	domain := keccak.Sum256(domainType[:], name[:], version[:], chain[:], padded(asset.Address))

	structType := keccak.Sum256([]byte("TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"))
	value, after, before := a.Value.Bytes(), a.ValidAfter.Bytes(), a.ValidBefore.Bytes()
	message := keccak.Sum256(structType[:], padded(a.From), padded(a.To), value[:], after[:], before[:], a.Nonce[:])
	return keccak.Sum256([]byte{0x19, 0x01}, domain[:], message[:])
}

// padded is an address as the ABI encodes it.
func padded(a payment.Address) []byte {
	var b [32]byte
	copy(b[12:], a[:])
	return b[:]
}

// signedBy reports whether a's signature is From's over the domain of asset.
// The token itself takes only v 27 or 28 and a low s; off the chain, lenient,
// verifiers take v 0 or 1 and a high s too.
func (a Authorization) signedBy(asset payment.Asset, lenient bool) bool {
	canonical, err := eip3009.NormalizeSignature(a.Signature)
	if err != nil || !lenient && !bytes.Equal(canonical[:], a.Signature) {
		return false
	}
	signer, err := eip3009.Recover(a.Digest(asset), a.Signature)
	return err == nil && payment.Address(signer) == a.From
}

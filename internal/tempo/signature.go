package tempo

import (
	"errors"
	"fmt"

	"github.com/canopy-go/canopy/internal/eip3009"
	"github.com/canopy-go/canopy/payment"
)

// ErrSignature is wrapped by every refused signature. Its text never holds the
// signature.
var ErrSignature = errors.New("tempo: invalid signature")

// Sizes of signatures, and the first bytes of the typed ones. A secp256k1
// signature is 65 bytes without a type.
const (
	sizeSecp256k1 = 65
	sizeP256      = 1 + 4*32 + 1 // type, r, s, x, y, prehash
	minWebAuthn   = 1 + 4*32 + 1 // type, at least one byte of data, r, s, x, y
	sizeKeychain  = 1 + 20       // type, account; a signature without keychain follows

	typeP256       = 1
	typeWebAuthn   = 2
	typeKeychainV1 = 3
	typeKeychainV2 = 4
)

// signatureForm reports whether sig has the form of a sender's signature.
func signatureForm(sig []byte) bool {
	if inner, ok := keychain(sig); ok {
		return primitiveForm(inner)
	}
	return primitiveForm(sig)
}

func primitiveForm(sig []byte) bool {
	if len(sig) == sizeSecp256k1 {
		v := sig[64]
		return v <= 1 || v == 27 || v == 28
	}
	switch {
	case len(sig) == 0:
		return false
	case sig[0] == typeP256:
		return len(sig) == sizeP256 && sig[len(sig)-1] <= 1
	case sig[0] == typeWebAuthn:
		return len(sig) >= minWebAuthn
	}
	return false
}

// keychain returns the signature inside a keychain's.
func keychain(sig []byte) ([]byte, bool) {
	if len(sig) > sizeKeychain && len(sig) != sizeSecp256k1 && (sig[0] == typeKeychainV1 || sig[0] == typeKeychainV2) {
		return sig[sizeKeychain:], true
	}
	return nil, false
}

// endsInV reports whether the last byte of sig is the v of a secp256k1
// signature.
func endsInV(sig []byte) bool {
	if inner, ok := keychain(sig); ok {
		sig = inner
	}
	return len(sig) == sizeSecp256k1
}

// WithSignature returns t signed by its sender: 65 bytes r, s, v, with v as 0,
// 1, 27 or 28 and s in the lower half of the order.
func (t *Transaction) WithSignature(sig []byte) (Transaction, error) {
	n, err := lowS(sig)
	if err != nil {
		return Transaction{}, err
	}
	u := *t
	u.Signature = n[:]
	return u, nil
}

// WithFeePayer returns t signed by its sponsor, whose signature is as of
// WithSignature.
func (t *Transaction) WithFeePayer(sig []byte) (Transaction, error) {
	n, err := lowS(sig)
	if err != nil {
		return Transaction{}, err
	}
	u := *t
	u.FeePayer = FeePayer{Kind: FeePayerSigned, YParity: n[64] - 27, R: [32]byte(n[:32]), S: [32]byte(n[32:64])}
	return u, nil
}

// Sender recovers who signed t. Only plain secp256k1 signatures recover to
// anybody: others are ErrSignature, as is a slot of the fee payer that names
// another sender.
func (t *Transaction) Sender() (payment.Address, error) {
	sender, err := recoverAddress(t.SigningHash(), t.Signature)
	if err != nil {
		return payment.Address{}, err
	}
	if t.FeePayer.Kind == FeePayerSender && t.FeePayer.Sender != sender {
		return payment.Address{}, fmt.Errorf("%w: not of the sender in the slot of the fee payer", ErrSignature)
	}
	return sender, nil
}

// Sponsor recovers who signed to pay the fee of t, given its sender.
func (t *Transaction) Sponsor(sender payment.Address) (payment.Address, error) {
	if t.FeePayer.Kind != FeePayerSigned {
		return payment.Address{}, fmt.Errorf("%w: no fee payer signed", ErrSignature)
	}
	var sig [sizeSecp256k1]byte
	copy(sig[:], t.FeePayer.R[:])
	copy(sig[32:], t.FeePayer.S[:])
	sig[64] = t.FeePayer.YParity
	return recoverAddress(t.FeePayerHash(sender), sig[:])
}

func recoverAddress(digest [32]byte, sig []byte) (payment.Address, error) {
	n, err := lowS(sig)
	if err != nil {
		return payment.Address{}, err
	}
	a, err := eip3009.Recover(digest, n[:])
	if err != nil {
		return payment.Address{}, fmt.Errorf("%w: %v", ErrSignature, err)
	}
	return a, nil
}

// lowS brings v to 27 or 28 and refuses s in the upper half, which a node
// refuses too.
func lowS(sig []byte) ([sizeSecp256k1]byte, error) {
	n, err := eip3009.NormalizeSignature(sig)
	if err != nil {
		return n, fmt.Errorf("%w: %v", ErrSignature, err)
	}
	if [32]byte(n[32:64]) != [32]byte(sig[32:64]) {
		return [sizeSecp256k1]byte{}, fmt.Errorf("%w: s is in the upper half", ErrSignature)
	}
	return n, nil
}

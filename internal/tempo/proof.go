package tempo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/payment"
)

var (
	proofDomainType = keccak.Sum256([]byte("EIP712Domain(string name,string version,uint256 chainId)"))
	proofName       = keccak.Sum256([]byte("MPP"))
	proofVersion    = keccak.Sum256([]byte("3"))
	proofType       = keccak.Sum256([]byte("Proof(address account,string challengeId,string realm)"))
)

// ProofDigest is what account signs to answer a challenge that asks for
// nothing: the EIP-712 digest of the third version of the proof, the only one
// that sellers accept.
func ProofDigest(chainID uint64, account payment.Address, challengeID, realm string) [32]byte {
	var b [4 * 32]byte
	copy(b[0:], proofDomainType[:])
	copy(b[32:], proofName[:])
	copy(b[64:], proofVersion[:])
	binary.BigEndian.PutUint64(b[120:], chainID)
	separator := keccak.Sum256(b[:])

	id, where := sumString(challengeID), sumString(realm)
	b = [4 * 32]byte{}
	copy(b[0:], proofType[:])
	copy(b[44:], account[:])
	copy(b[64:], id[:])
	copy(b[96:], where[:])
	message := keccak.Sum256(b[:])
	prefix := [2]byte{0x19, 0x01}
	return keccak.Sum256(prefix[:], separator[:], message[:])
}

// sourcePrefix begins the DID of an account of an EVM chain.
const sourcePrefix = "did:pkh:eip155:"

// ErrSource is wrapped by every error of ParseSource.
var ErrSource = errors.New("tempo: not the source of a payment")

// Source names the account that a credential is of, with the checksum of
// EIP-55.
func Source(chainID uint64, account payment.Address) string {
	var room [96]byte
	b := append(room[:0], sourcePrefix...)
	b = strconv.AppendUint(b, chainID, 10)
	b = append(b, ':')
	return string(append(b, account.String()...))
}

// ParseSource reads what Source writes. Hex of one case carries no checksum,
// mixed case must be right.
func ParseSource(s string) (chainID uint64, account payment.Address, err error) {
	rest, ok := strings.CutPrefix(s, sourcePrefix)
	chain, address, colon := strings.Cut(rest, ":")
	if !ok || !colon {
		return 0, payment.Address{}, fmt.Errorf("%w: not %s, a chain, a colon and an address", ErrSource, sourcePrefix)
	}
	id, err := payment.ParseChainID("eip155:" + chain)
	if err != nil {
		return 0, payment.Address{}, fmt.Errorf("%w: %w", ErrSource, err)
	}
	if account, err = payment.ParseAddress(address); err != nil {
		return 0, payment.Address{}, fmt.Errorf("%w: %w", ErrSource, err)
	}
	chainID, _ = id.Number()
	return chainID, account, nil
}

package tempo

import "github.com/canopy-go/canopy/internal/keccak"

// memoTag begins a memo of attribution: keccak256("mpp")[:4] and version 1.
var memoTag = [5]byte{0xef, 0x1e, 0xd7, 0x12, 0x01}

// Attribution is the memo that ties a transfer to the challenge it answers:
// tag, ten bytes of the hash of the realm, ten of the client's (zeros where
// clientID is empty), seven of the challenge's id.
func Attribution(realm, clientID, challengeID string) [32]byte {
	var memo [32]byte
	copy(memo[:], memoTag[:])
	sum := sumString(realm)
	copy(memo[5:15], sum[:])
	if clientID != "" {
		sum = sumString(clientID)
		copy(memo[15:25], sum[:])
	}
	sum = sumString(challengeID)
	copy(memo[25:], sum[:])
	return memo
}

// Attributed reports whether memo ties a transfer to that challenge, whoever
// the client.
func Attributed(memo [32]byte, realm, challengeID string) bool {
	want := Attribution(realm, "", challengeID)
	copy(want[15:25], memo[15:25])
	return memo == want
}

func sumString(s string) [32]byte {
	var room [256]byte
	return keccak.Sum256(append(room[:0], s...))
}

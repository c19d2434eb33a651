package payment

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/canopy-go/canopy/internal/plaintext"
)

// Transfer is a direct payment of dollars to an address, without a seller.
type Transfer struct {
	To      Address
	Amount  USD
	Chain   ChainID // Base where empty
	Key     string  // makes a repeated call the same payment; empty for none
	Purpose string  // for people
	Memo    string  // for the payee, where the chain carries one
}

// TransferError says which field of a Transfer cannot be carried out, and why,
// whatever the policy says. Nothing was signed.
type TransferError struct {
	Field string // To, Amount, Chain, Key, Purpose or Memo
	Err   error
}

// Error names the field.
func (e *TransferError) Error() string { return "Transfer." + e.Field + ": " + e.Err.Error() }

// Unwrap is Err.
func (e *TransferError) Unwrap() error { return e.Err }

// memoBytes is how long a memo is where it is written in hex.
const memoBytes = 32

// PlainMemo is the one way to write the memo s of 32 bytes, which can be written
// in several: as text where it is text that is seen, filled up with zeros, and
// else as 0x and 64 small hex digits. What is no such memo is returned as it is.
// Equal memos are one purchase, however they are written.
func PlainMemo(s string) string {
	digits, ok := strings.CutPrefix(s, "0x")
	b, err := hex.DecodeString(digits)
	if !ok || err != nil || len(b) != memoBytes {
		return s
	}
	text := strings.TrimRight(string(b), "\x00")
	if text == "" || !utf8.ValidString(text) || strings.HasPrefix(strings.ToLower(text), "0x") {
		return strings.ToLower(s)
	}
	for _, c := range text {
		if c != ' ' && plaintext.Clean(string(c), utf8.UTFMax) == "" {
			return strings.ToLower(s)
		}
	}
	return text
}

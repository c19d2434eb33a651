package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// CodePolicyNotPinned denies a payment that another policy judged than the one
// that is pinned.
const CodePolicyNotPinned = "policy_not_pinned"

// Pin is an operator's word on which policy decides: payments that another one
// judged are denied, whatever process asks, from the commit on. A document that
// somebody changes decides nothing until it is pinned again.
type Pin struct {
	Policy   payment.Hash // policy.Policy.Hash; zero where the pin was taken out
	Document string       // its text, for people; at most MaxPinned bytes
	At       time.Time
	By       string
	Reason   string
}

// MaxPinned bounds a pinned document.
const MaxPinned = 1 << 20

// Pinner is an optional power of a Store: it keeps which policy is pinned, and
// those that were. Every store of this module has it.
type Pinner interface {
	// Pin pins a policy, or with a zero hash takes the pin out. By is required.
	Pin(ctx context.Context, p Pin) error

	// Pinned is the pin that holds; its hash is zero where none does.
	Pinned(ctx context.Context) (Pin, error)

	// Pins lists every act of Pin, newest first.
	Pins(ctx context.Context) ([]Pin, error)
}

// CheckPin refuses what cannot be pinned.
func CheckPin(p Pin) error {
	switch {
	case p.By == "":
		return errors.New("ledger: a pin names who made it")
	case len(p.Document) > MaxPinned:
		return fmt.Errorf("ledger: the document has more than %d bytes", MaxPinned)
	case len(p.By) > 200 || len(p.Reason) > 1000:
		return errors.New("ledger: a name has 200 bytes at most, and a reason 1,000")
	}
	return nil
}

// Denies reports whether a payment that policy judged is denied.
func (p Pin) Denies(policy payment.Hash) bool { return !p.Policy.IsZero() && p.Policy != policy }

// Text is why, in one line.
func (p Pin) Text(policy payment.Hash) string {
	return fmt.Sprintf("The policy of this program (%x) is not the one that is pinned (%x)", policy[:8], p.Policy[:8])
}

// pinned denies what another policy judged than the pinned one.
func (s *reserving) pinned() error {
	want, err := s.tx.PinnedPolicy()
	if pin := (Pin{Policy: want}); err == nil && pin.Denies(s.verdict.Policy) {
		s.deny(CodePolicyNotPinned, pin.Text(s.verdict.Policy), time.Time{})
	}
	return err
}

package x402

import (
	"fmt"
	"strings"

	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/payment"
)

// ChallengeError says why a 402 that speaks x402 is refused as a whole.
type ChallengeError struct {
	// Code is one of several_headers, unreadable_header, unreadable_body,
	// duplicate_key, too_deep, too_large, unsupported_version, no_terms and
	// header_body_conflict.
	Code string

	// Detail is for people.
	Detail string
}

// Error is the code and the detail.
func (e *ChallengeError) Error() string {
	return "x402: challenge refused: " + e.Code + ": " + e.Detail
}

// Is reports whether target is payment.ErrNoTerms and e says that.
func (e *ChallengeError) Is(target error) bool {
	return target == payment.ErrNoTerms && e.Code == "no_terms"
}

// Skipped is one entry of accepts that cannot be paid.
type Skipped struct {
	Index int // in accepts

	// Code is one of malformed, unknown_scheme, unknown_flow, unknown_method,
	// unknown_network, chain_not_configured, bad_asset, bad_checksum,
	// unknown_asset, no_authorization, domain_mismatch, bad_amount,
	// zero_amount, bad_payee, zero_payee, token_payee, burn_payee,
	// bad_timeout, short_timeout, echo_too_large and too_many.
	Code string

	// Detail is what the seller wrote, cleaned and bounded; for people.
	Detail string
}

// SkippedError lists the entries of a challenge that cannot be paid. It comes
// beside the offers that can, or alone where there is none.
type SkippedError struct{ Entries []Skipped }

// Error lists the entries.
func (e *SkippedError) Error() string {
	var b strings.Builder
	b.WriteString("x402: offers skipped: ")
	for i, s := range e.Entries {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "accepts[%d]: %s", s.Index, s.Code)
		if s.Detail != "" {
			b.WriteString(" (" + s.Detail + ")")
		}
	}
	return b.String()
}

// Has reports whether an entry was skipped for that reason.
func (e *SkippedError) Has(code string) bool {
	for _, s := range e.Entries {
		if s.Code == code {
			return true
		}
	}
	return false
}

// skip is why an entry is skipped; its zero value is that it is not.
type skip struct{ code, detail string }

func skipped(code, said string) skip { return skip{code, plaintext.Clean(said, 80)} }

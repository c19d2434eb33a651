package x402

import (
	"strings"
	"sync/atomic"

	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/payment"
)

// spellings keeps the checksum spelling of addresses met lately: payers, payees
// and tokens come again and again. It is bounded, each address having one place
// in it, and safe for concurrent use.
type spellings [64]atomic.Pointer[spelling]

type spelling struct {
	address payment.Address
	text    string
}

// of is a with the checksum of EIP-55.
func (s *spellings) of(a payment.Address) string {
	place := &s[(a[0]^a[10]^a[19])%64]
	if p := place.Load(); p != nil && p.address == a {
		return p.text
	}
	p := &spelling{a, a.String()}
	place.Store(p)
	return p.text
}

// address reads an address as payment.ParseAddress does. The code is for what
// is no address at all.
func (r *Rail) address(v jsonscan.Value, code string) (payment.Address, skip) {
	s := text(v)
	a, err := payment.ParseAddressLoose(s)
	if err != nil {
		return a, skipped(code, v.Raw())
	}
	if s == r.spell.of(a) {
		return a, skip{}
	}
	if digits := s[2:]; digits != strings.ToLower(digits) && digits != strings.ToUpper(digits) {
		return a, skipped("bad_checksum", s)
	}
	return a, skip{}
}

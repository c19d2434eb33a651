package mpp

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

// Transfer returns the offer that carries out a direct transfer on a Tempo chain:
// one transaction of our own, whose fee is paid in the token. The token is the
// chain's USDC.e, else its pathUSD, else its only one. t.Memo is 0x and 64 hex
// digits, or visible text of at most 32 bytes of UTF-8 that does not begin with
// 0x; without one the memo is a hash of the payment's ID. What is wrong with t is
// a *payment.TransferError; payment.ErrNotMine means that t.Chain is no Tempo
// chain of this rail. Nothing is signed or sent.
func (r *Rail) Transfer(_ context.Context, t payment.Transfer) (payment.Offer, error) {
	token, err := r.dollar(t.Chain)
	if err != nil {
		return payment.Offer{}, err
	}
	if tempo.IsContract(t.To) {
		return payment.Offer{}, &payment.TransferError{Field: "To", Err: fmt.Errorf("%s is a contract of the chain itself, not a payee", t.To)}
	}
	amount, ok := token.asset.Units(t.Amount)
	if !ok || amount.IsZero() {
		return payment.Offer{}, &payment.TransferError{Field: "Amount", Err: fmt.Errorf("%s is not an amount to pay", t.Amount)}
	}
	m, err := newMemo(t.Memo)
	if err != nil {
		return payment.Offer{}, &payment.TransferError{Field: "Memo", Err: err}
	}
	p := plan{mode: modeTransfer, limits: r.fees.limits(1, false), memos: []memo{m}}
	bound, ok := p.limits.bound(token.asset)
	if !ok {
		return payment.Offer{}, fmt.Errorf("mpp: transfer: the fee of %d gas cannot be counted", p.limits.gas)
	}
	return payment.Offer{
		Rail: Name, Scheme: SchemeTransfer, Asset: token.asset, Amount: amount, FeeBound: bound,
		Recipients: []payment.Recipient{{Address: t.To, Amount: amount}},
		Slot:       payment.SlotLane, Network: string(t.Chain), Version: 1, Resend: true, Echo: p.encode(),
	}, nil
}

// errMemo says which memos there are.
var errMemo = errors.New("a memo is 0x and 64 hex digits, or text of at most 32 bytes that does not begin with 0x")

// newMemo is the memo of a new transfer. It is stricter than memoOf, by which
// what is on record keeps its meaning.
func newMemo(s string) (memo, error) {
	if len(s) >= 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		if _, err := hex.DecodeString(s[2:]); err != nil || s[1] != 'x' || len(s) != 2+64 {
			return memo{}, fmt.Errorf("%.80q begins as hex does, and is not 32 bytes of it: %w", s, errMemo)
		}
		return memoOf(s)
	}
	if !utf8.ValidString(s) {
		return memo{}, fmt.Errorf("it is not UTF-8: %w", errMemo)
	}
	for _, c := range s {
		if c != ' ' && plaintext.Clean(string(c), utf8.UTFMax) == "" {
			return memo{}, fmt.Errorf("it has the character %U, which is not seen: %w", c, errMemo)
		}
	}
	return memoOf(s)
}

// memoOf is the memo of a transfer as its caller states it.
func memoOf(s string) (memo, error) {
	m := memo{kind: memoFixed}
	switch hexed, is := strings.CutPrefix(s, "0x"); {
	case s == "":
		m.kind = memoPayment
	case is && len(hexed) == 64:
		if _, err := hex.Decode(m.fixed[:], []byte(hexed)); err != nil {
			return m, fmt.Errorf("it is not hex: %w", errMemo)
		}
	case len(s) > len(m.fixed):
		return m, fmt.Errorf("it has %d bytes: %w", len(s), errMemo)
	default:
		copy(m.fixed[:], s)
	}
	return m, nil
}

// dollar is the token that transfers on chain use.
func (r *Rail) dollar(chain payment.ChainID) (*token, error) {
	var all []*token
	for _, t := range r.tokens {
		if t.tempo && t.asset.Chain == chain && r.serves(chain) {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return nil, payment.ErrNotMine
	}
	if len(all) == 1 {
		return all[0], nil
	}
	for _, symbol := range [...]string{"USDC.e", "pathUSD"} {
		var named []*token
		for _, t := range all {
			if t.asset.Symbol == symbol {
				named = append(named, t)
			}
		}
		if len(named) == 1 {
			return named[0], nil
		}
	}
	return nil, &payment.TransferError{Field: "Chain", Err: fmt.Errorf("%s has several dollars, and not one of them alone is its USDC.e or pathUSD", chain.Name())}
}

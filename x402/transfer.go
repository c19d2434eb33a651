package x402

import (
	"context"
	"fmt"

	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/payment"
)

// Transfer returns the offer that carries out a direct transfer: one EIP-3009
// authorization of the chain's dollar to t.To. A chain's dollar is its USDC, of
// several the one that payment.KnownAssets has, or else its only token. What is
// wrong with t is a *payment.TransferError; payment.ErrNotMine means that this
// rail has no such dollar on t.Chain. Nothing is signed or sent.
func (r *Rail) Transfer(_ context.Context, t payment.Transfer) (payment.Offer, error) {
	if !r.serves(t.Chain) {
		return payment.Offer{}, payment.ErrNotMine
	}
	asset, err := r.dollar(t.Chain)
	if err != nil {
		return payment.Offer{}, err
	}
	amount, ok := asset.Units(t.Amount)
	if !ok || amount.IsZero() {
		return payment.Offer{}, &payment.TransferError{Field: "Amount", Err: fmt.Errorf("%s is not an amount to pay", t.Amount)}
	}
	if t.Memo != "" {
		return payment.Offer{}, &payment.TransferError{Field: "Memo", Err: fmt.Errorf("a transfer of %s carries none: transfers on Tempo do", asset)}
	}
	return payment.Offer{
		Rail: Name, Scheme: exact, Slot: payment.SlotEVM, Asset: asset, Amount: amount,
		Recipients: []payment.Recipient{{Address: t.To, Amount: amount}},
		Network:    string(t.Chain), Version: 2, Resend: true,
		Echo: r.ownTerms(asset, t.To, amount),
	}, nil
}

const usdc = "USDC"

// ownTimeout is the maxTimeoutSeconds of our own terms. It bounds nothing: the
// policy does.
const ownTimeout = "600"

// ownTerms is the Echo of a transfer: the terms that a seller of it would
// state, which a facilitator wants to see.
func (r *Rail) ownTerms(asset payment.Asset, to payment.Address, amount payment.Units) []byte {
	b := make([]byte, 0, 512)
	b = append(b, `2"accepted":{"scheme":"exact","network":`...)
	b = jsonscan.AppendString(b, string(asset.Chain))
	b = append(b, `,"amount":"`...)
	b = append(b, amount.String()...)
	b = append(b, `","asset":"`...)
	b = append(b, r.spell.of(asset.Address)...)
	b = append(b, `","payTo":"`...)
	b = append(b, r.spell.of(to)...)
	b = append(b, `","maxTimeoutSeconds":`+ownTimeout+`,"extra":{"name":`...)
	b = jsonscan.AppendString(b, asset.Name)
	b = append(b, `,"version":`...)
	b = jsonscan.AppendString(b, asset.Version)
	return append(b, "}}"...)
}

// dollar is the token that transfers on chain use. Of several that are called
// USDC it is the one that payment.KnownAssets has.
func (r *Rail) dollar(chain payment.ChainID) (payment.Asset, error) {
	var all, named, known []payment.Asset
	pinned := payment.KnownAssets()
	for _, t := range r.tokens {
		if t.asset.Chain != chain || t.asset.NoAuthorization {
			continue
		}
		all = append(all, t.asset)
		if t.asset.Symbol != usdc {
			continue
		}
		named = append(named, t.asset)
		if a, ok := pinned.Lookup(chain, t.asset.Address); ok && a.Symbol == usdc {
			known = append(known, t.asset)
		}
	}
	for _, some := range [][]payment.Asset{known, named, all} {
		if len(some) == 1 {
			return some[0], nil
		}
		if len(some) > 1 {
			return payment.Asset{}, &payment.TransferError{Field: "Chain", Err: fmt.Errorf("%s has several dollars, and not one of them alone is its USDC", chain.Name())}
		}
	}
	return payment.Asset{}, payment.ErrNotMine
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// beforeAuthorized is how far before its authorization a payment's use is looked
// for.
const beforeAuthorized = time.Hour

// asksOf asks the nodes of e's chain, where some are named, and tells why e
// cannot be called unused; despite says that it can where they cannot tell.
func (a *app) asksOf(ctx context.Context, f *config.File, e ledger.Entry, despite bool) error {
	chains, err := f.ConnectChains()
	if err != nil {
		return exit{codeUsage, err}
	}
	for _, c := range chains {
		rec, ok := c.(canopy.Reconciler)
		if !ok || c.ID() != e.Slot.Chain || e.Slot.Kind == payment.SlotProof {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, reachTime)
		defer cancel()
		shown, err := usedOn(ctx, rec, e)
		reconcile := a.command("reconcile")
		switch {
		case shown != "":
			return fmt.Errorf("payment %s is not unused: %s. Run %s, which ends it by what the chain shows", e.ID, shown, reconcile)
		case err != nil && !despite:
			return fmt.Errorf("whether payment %s was used, %s cannot tell: %s. Run %s later, which ends it; or, where you know it otherwise, add --despite-chain",
				e.ID, c.ID().Name(), show(err.Error(), 400), reconcile)
		case err != nil:
			a.note("%s could not tell: %s", c.ID().Name(), show(err.Error(), 400))
		}
	}
	return nil
}

// usedOn is what the chain shows that e's slot was used for, empty where it was
// not, and an error where that is not known. Of one that needs an operator the use
// is known: there it is the transfer that was agreed.
func usedOn(ctx context.Context, rec canopy.Reconciler, e ledger.Entry) (string, error) {
	at, err := rec.Finalized(ctx)
	if err != nil {
		return "", err
	}
	used := false
	if e.Slot.Kind != payment.SlotExpiring && e.State != ledger.NeedsOperator {
		is, err := rec.Used(ctx, []payment.Slot{e.Slot}, at)
		switch {
		case err != nil:
			return "", err
		case len(is) != 1:
			return "", errors.New("no answer about its slot")
		case !is[0]:
			return "", final(at, e)
		}
		used = true
	}
	s, err := useOf(ctx, rec, e, at)
	switch {
	case s != nil && s.CarriesOut(e.Terms):
		return fmt.Sprintf("%s in block %d is its transfer", show(s.TxHash, 100), s.Block), nil
	case e.State == ledger.NeedsOperator && err == nil:
		return "", final(at, e)
	case s != nil:
		return fmt.Sprintf("%s in block %d used its authorization", show(s.TxHash, 100), s.Block), nil
	case used:
		return "the chain shows that its authorization was used", nil
	case err != nil:
		return "", err
	}
	return "", final(at, e)
}

// useOf is the use of e's slot that a node shows, before all others one that
// carries out its terms, or nil.
func useOf(ctx context.Context, rec canopy.Reconciler, e ledger.Entry, at payment.Block) (*payment.Settlement, error) {
	first, err := rec.BlockAt(ctx, e.AuthorizedAt.Add(-beforeAuthorized), at)
	if err != nil {
		return nil, err
	}
	uses, err := rec.Uses(ctx, e.Terms.Asset, e.Slot.From, min(first, at.Number), at)
	if err != nil {
		return nil, err
	}
	var found *payment.Settlement
	for i, s := range uses {
		if s.Slot == e.Slot && (found == nil || s.CarriesOut(e.Terms)) {
			found = &uses[i]
		}
	}
	return found, nil
}

// final is an error where e could still move after block at.
func final(at payment.Block, e ledger.Entry) error {
	if at.Time.Before(e.ValidBefore) {
		return fmt.Errorf("it is final up to %s only, and the payment could move until %s", moment(at.Time), moment(e.ValidBefore))
	}
	return nil
}

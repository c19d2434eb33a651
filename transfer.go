package canopy

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// TransferError says which field of a Transfer cannot be carried out, and why,
// whatever the policy says.
type TransferError = payment.TransferError

// unfit is a TransferError as Pay and Preview return it.
func unfit(field string, err error) error {
	return fmt.Errorf("canopy: %w", &TransferError{Field: field, Err: err})
}

// Pay pays dollars to an address, without a seller. The three outcomes are
// values: the Result's Status is allowed where the payment was made, by the word
// of who submitted it or by the chain's, pending_approval where a person is
// asked, and denied. An error means that it was not decided, and then nothing
// was signed, as with a *TransferError, ErrKeyConflict and ErrClockSkew, or is an
// *InDoubtError (the same Pay asks again with the same bytes) or an
// *InFlightError.
//
// A Transfer with a key is one payment however often it is asked for. Without a
// key an equal one is denied as a duplicate for the policy's duplicate_window,
// and answers while it is in doubt. A pending payment is carried out by the
// equal Pay again, once approved, or by Resume. A payment that is on its way in
// another call is waited for.
func (c *Client) Pay(ctx context.Context, t Transfer) (Result, error) {
	o, err := c.transferOffer(ctx, &t)
	if err != nil {
		return Result{}, err
	}
	own, err := c.submits(o.offer.Rail, o.offer.Asset.Chain)
	if err != nil {
		return Result{}, err
	}
	began := c.cfg.Now()
	if err := c.judgeTransfer(ctx, &o, t); err != nil {
		return Result{}, err
	}
	if r, denied := c.unpayable(o); denied {
		return r, nil
	}
	funded, err := c.funded(ctx, o)
	if err != nil {
		return Result{}, err
	}
	funded, gas := c.gassed(ctx, funded, own)
	return c.transfer(ctx, ledger.Request{
		Payment: o.payment, Verdict: funded.verdict, Payer: c.Address(),
		Key: t.Key, Fingerprint: transferPrint(o.terms), Began: began,
		Offer: o.offer, Validity: o.terms.Validity, Slot: slotFor(o.offer, c.Address()), Gas: gas,
	})
}

// Resume carries on with a direct transfer of this agent: it pays one that was
// approved, asks again for one in doubt with the same bytes, waits for one that
// is on its way, and tells what became of any other. It never makes another
// payment. ledger.ErrNotFound is wrapped where there is no such transfer.
func (c *Client) Resume(ctx context.Context, id PaymentID) (Result, error) {
	if !id.Valid() {
		return Result{}, fmt.Errorf("canopy: resume: %q is not a payment's id: %w", clip(string(id)), ledger.ErrNotFound)
	}
	e, err := c.cfg.Store.Entry(ctx, id)
	switch {
	case err == nil && e.Agent != c.cfg.Agent:
		err = ledger.ErrNotFound
	case err == nil && !e.Terms.IsTransfer():
		return Result{}, fmt.Errorf("canopy: resume: payment %s is for a request: call Fetch again", id)
	}
	if err != nil {
		return Result{}, fmt.Errorf("canopy: resume: payment %s: %w", clip(string(id)), err)
	}
	if e.State != ledger.Approved {
		return c.standing(ctx, e, nil)
	}
	ctx = resumed(ctx, &e)
	amount, _ := e.Terms.Asset.Value(e.Terms.Amount)
	t := Transfer{To: e.Terms.Payee(), Amount: amount, Chain: e.Terms.Asset.Chain, Purpose: e.Purpose, Memo: e.Terms.Target}
	o, err := c.transferOffer(ctx, &t)
	if err != nil {
		return Result{}, err
	}
	own, err := c.submits(o.offer.Rail, o.offer.Asset.Chain)
	if err != nil {
		return Result{}, err
	}
	if err := c.judgeTransfer(ctx, &o, t); err != nil {
		return Result{}, err
	}
	if r, denied := c.unpayable(o); denied {
		return r, nil
	}
	// What was approved is carried out, to the letter; only the verdict is new.
	if o.terms.Validity = e.Terms.Validity; o.terms.Hash() != e.TermsHash {
		return Result{}, fmt.Errorf("canopy: resume: payment %s was approved on terms that this client's rails no longer have: pay anew", id)
	}
	o.payment.Terms = e.Terms
	funded, err := c.funded(ctx, o)
	if err != nil {
		return Result{}, err
	}
	funded, gas := c.gassed(ctx, funded, own)
	return c.transfer(ctx, ledger.Request{
		Payment: o.payment, Verdict: funded.verdict, Payer: c.Address(),
		Key: e.Key, Fingerprint: e.Fingerprint, Began: c.cfg.Now(), Only: id,
		Offer: o.offer, Validity: e.Terms.Validity, Slot: slotFor(o.offer, c.Address()), Gas: gas,
	})
}

// transferOffer completes t, and asks the rails for the offer that carries it
// out.
func (c *Client) transferOffer(ctx context.Context, t *Transfer) (offered, error) {
	switch {
	case t.Amount <= 0 || t.Amount == payment.MaxUSD:
		return offered{}, unfit("Amount", fmt.Errorf("%s is not an amount to pay", t.Amount))
	case t.To.IsZero():
		return offered{}, unfit("To", errors.New("it is missing, or the zero address, which nobody holds"))
	case len(t.Purpose) > maxPurpose:
		return offered{}, unfit("Purpose", fmt.Errorf("it has %d bytes, and %d at most", len(t.Purpose), maxPurpose))
	case t.Key != "":
		if err := checkKey(t.Key); err != nil {
			return offered{}, unfit("Key", err)
		}
	}
	if t.Chain == "" {
		t.Chain = payment.Base
	}
	if len(c.rails) == 0 {
		return offered{}, errors.New("canopy: " + noRail)
	}
	for _, rail := range c.cfg.Rails {
		tr, ok := rail.(Transferer)
		if !ok {
			continue
		}
		offer, err := tr.Transfer(ctx, *t)
		if errors.Is(err, payment.ErrNotMine) {
			continue
		}
		var wrong *TransferError
		if errors.As(err, &wrong) {
			return offered{}, fmt.Errorf("canopy: %w", wrong)
		}
		if err != nil {
			return offered{}, fmt.Errorf("canopy: transfer on %s: %w", t.Chain.Name(), err)
		}
		t.Memo = payment.PlainMemo(t.Memo) // two spellings are one purchase
		return offered{rail: c.rails[rail.Name()], offer: offer}, nil
	}
	return offered{}, unfit("Chain", fmt.Errorf("no rail of this client transfers on %s", t.Chain.Name()))
}

// transferer is the rail of that name, where it transfers, or nil.
func (c *Client) transferer(name string) Transferer {
	for _, rail := range c.cfg.Rails {
		if tr, ok := rail.(Transferer); ok && rail.Name() == name {
			return tr
		}
	}
	return nil
}

// judgeTransfer completes o with its terms and the policy's verdict. The memo is
// part of the terms: it may be what says whose the money is.
func (c *Client) judgeTransfer(ctx context.Context, o *offered, t Transfer) (err error) {
	o.terms = o.offer.Terms("", "", t.Memo, [32]byte{})
	o.payment = payment.Payment{Agent: c.cfg.Agent, Terms: o.terms, Purpose: t.Purpose}
	if o.verdict, err = c.verdict(ctx, &o.payment, c.cfg.Now()); err != nil {
		return err
	}
	o.terms.Validity = o.verdict.MaxValidity
	if o.offer.Validity > 0 {
		o.terms.Validity = min(o.terms.Validity, o.offer.Validity)
	}
	o.payment.Terms = o.terms
	return nil
}

// unpayable is the denial that a transfer gets whatever the ledger holds.
func (c *Client) unpayable(o offered) (Result, bool) {
	if c.cfg.Treasury.Signer == nil {
		return o.refused("no_signer", "this client has no key to pay with"), true
	}
	if err := o.terms.Check(c.Address()); err != nil {
		return o.refused("bad_terms", badTerms(err)), true
	}
	return Result{}, false
}

// refused is the denial of a transfer of which nothing is recorded.
func (o offered) refused(code, text string) Result {
	r := denial(code, text)
	r.of(o.terms)
	return r
}

// of says what r is about.
func (r *Result) of(t payment.Terms) {
	r.Amount, _ = t.Asset.Value(t.Amount)
	r.Fee, r.Rail, r.Chain = t.FeeBound, t.Rail, t.Asset.Chain
	r.Recipient, r.Recipients = t.Payee(), payees(t.Asset, t.Recipients)
}

// badTerms is what payment.Terms.Check says, for people.
func badTerms(err error) string { return strings.TrimPrefix(err.Error(), "payment: ") }

// transferPrint is what a key stands for: chain, asset, payee, amount and memo.
func transferPrint(t payment.Terms) payment.Hash {
	buf := make([]byte, 0, 160)
	for _, s := range [...]string{"canopy.transfer.v1", string(t.Asset.Chain)} {
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(s)))
		buf = append(buf, s...)
	}
	to, amount := t.Payee(), t.Amount.Bytes()
	buf = append(buf, t.Asset.Address[:]...)
	buf = append(buf, to[:]...)
	buf = append(buf, amount[:]...)
	return sha256.Sum256(append(buf, t.Target...))
}

// transfer reserves r and carries out what was decided.
func (c *Client) transfer(ctx context.Context, r ledger.Request) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("canopy: cancelled before anything was signed: %w", err)
	}
	e, err := c.commit(ctx, r)
	var joined *ledger.JoinedError
	if errors.As(err, &joined) {
		return c.standing(ctx, e, &r)
	}
	if err != nil {
		return Result{}, fmt.Errorf("canopy: nothing was signed: %w", err)
	}
	switch e.State {
	case ledger.Authorized:
		return c.carryOut(ctx, e)
	case ledger.PendingApproval:
		c.notify(ctx, e)
		return c.pendingResult(ctx, e), nil
	}
	out := resultOf(e)
	out.Status = Denied
	out.setReasons(e.Reasons)
	c.log(ctx, levelInfo, "payment denied", &e, slog.String("code", out.Code))
	return out, nil
}

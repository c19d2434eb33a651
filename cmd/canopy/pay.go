package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/mpp"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/x402"
)

// transferFlags are what pay and preview say of a transfer.
type transferFlags struct{ chain, key, purpose, memo string }

// transferWords are what the command line calls the fields of a Transfer.
var transferWords = map[string]string{"To": "TO", "Amount": "USD", "Chain": "--chain", "Key": "--key", "Purpose": "--purpose", "Memo": "--memo"}

// chainNames are the chains that have a token to pay with and a name.
var chainNames = []string{payment.Base.Name(), payment.BaseSepolia.Name(), payment.Tempo.Name(), payment.TempoTest.Name()}

func (a *app) chainVar(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "chain", "base", "`CHAIN` to pay on, by name or as eip155:8453")
	c.RegisterFlagCompletionFunc("chain", a.completeChains)
}

// transferOf reads a transfer from the command line.
func transferOf(c *cobra.Command, args []string, f transferFlags) (t canopy.Transfer, err error) {
	switch t.To, err = payment.ParseAddress(args[0]); {
	case err != nil:
		return t, usage(c, fmt.Errorf("TO: %w", err))
	case t.To.IsZero():
		return t, usage(c, errors.New("TO: nobody holds the zero address: it is 0x and the 40 hex digits of the payee's"))
	}
	if t.Amount, err = payment.ParseUSD(args[1]); err != nil || t.Amount == 0 {
		return t, usage(c, notDollars(args[1]))
	}
	if err := keyFlag(c, f.key); err != nil {
		return t, err
	}
	if t.Chain, err = payment.ChainByName(f.chain); err != nil {
		return t, usage(c, fmt.Errorf("--chain: %q is not a chain: there are %s, or such as eip155:8453", show(f.chain, 40), strings.Join(chainNames, ", ")))
	}
	t.Key, t.Purpose, t.Memo = f.key, f.purpose, f.memo
	return t, nil
}

// keyFlag says what is wrong with --key, where it is given.
func keyFlag(c *cobra.Command, key string) error {
	switch {
	case !c.Flags().Changed("key"):
		return nil
	case key == "":
		return usage(c, errors.New("--key: it is empty: leave it out, or give 1 to 256 bytes"))
	case len(key) > 256:
		return usage(c, fmt.Errorf("--key: a key has 1 to 256 bytes, not %d", len(key)))
	case strings.ContainsFunc(key, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return usage(c, errors.New("--key: a key has no control characters"))
	}
	return nil
}

func notDollars(s string) error {
	return fmt.Errorf("USD: %q is no amount to pay: write dollars from 0.000001 to a trillion, such as 7.50", show(s, 40))
}

// amountFirst says that a USD below zero is none: to the flags it is a flag.
func amountFirst(c *cobra.Command, err error) error {
	var no *pflag.NotExistError
	if errors.As(err, &no) {
		if s := no.GetSpecifiedShortnames(); s != "" && strings.Trim(s, "0123456789.,$") == "" {
			err = notDollars("-" + s)
		}
	}
	return usage(c, err)
}

// transferFailed is err of Pay or Preview with the words and the exit code of the
// command line.
func (a *app) transferFailed(c *cobra.Command, f *config.File, t canopy.Transfer, err error) error {
	var doubt *canopy.InDoubtError
	var wrong *canopy.TransferError
	switch {
	case errors.As(err, &doubt):
		if !a.json {
			a.explainDoubt(doubt)
			err = nil
		}
		return exit{codeInDoubt, err}
	case errors.As(err, &wrong):
		return usage(c, fmt.Errorf("%s: %w%s", transferWords[wrong.Field], wrong.Err, missing(f, t, wrong)))
	}
	return err
}

// missing is what the configuration needs to pay on t's chain, where it does not
// know that.
func missing(f *config.File, t canopy.Transfer, wrong *canopy.TransferError) string {
	if wrong.Field != "Chain" || errors.Is(wrong, mpp.ErrNoNode) || errors.Is(wrong, x402.ErrNoFacilitator) {
		return ""
	}
	named := slices.ContainsFunc(f.Chains, func(c config.Chain) bool { return c.ID == t.Chain })
	known := len(f.Assets.On(t.Chain)) > 0
	entry := fmt.Sprintf("a [[chain]] with id = %q", t.Chain)
	switch {
	case named && known:
		return ""
	case named:
		entry = fmt.Sprintf("an [[asset]] with chain = %q, the token to pay with", t.Chain)
	case !known:
		entry += ", and an [[asset]], the token to pay with"
	}
	return fmt.Sprintf(": %s needs %s", f.Path, entry)
}

// explainDoubt tells of a transfer in doubt, and what to do next.
func (a *app) explainDoubt(doubt *canopy.InDoubtError) {
	fmt.Fprintln(a.err, show(doubt.Error(), 2000))
	if doubt.Message != "" {
		fmt.Fprintf(a.err, "who submits it says: %s\n", show(doubt.Message, 500))
	}
	a.note("%s", a.doubtful(doubt, "command again submits"))
}

// doubtful says what to do about a payment in doubt: what it holds, what the same
// again does, and until when nothing else should pay.
func (a *app) doubtful(doubt *canopy.InDoubtError, again string) string {
	held, until := "", ""
	if doubt.Result.Cost() > 0 {
		held = "The money stays held. "
	}
	if doubt.SafeAfter.After(a.now()) {
		until = "Pay by no other means before " + moment(doubt.SafeAfter) + "."
	} else {
		until = "It was to be paid by no other means before " + moment(doubt.SafeAfter) + ": canopy reconcile asks the chain what became of it."
	}
	return fmt.Sprintf("%sThe same %s the same bytes while they are valid.\n%s See canopy ledger show %s.", held, again, until, doubt.Result.PaymentID)
}

func (a *app) payCommand() *cobra.Command {
	var f transferFlags
	c := &cobra.Command{
		Use:   "pay TO USD",
		Short: "Pay dollars to an address, without a seller",
		Long: `Pay sends dollars of the treasury to an address, inside the policy. The transfer
is signed here. On an EVM chain it is submitted, without gas, through the
facilitator that the [[chain]] names, or else by a transaction of the treasury's
own, which costs at most max_gas of the chain's coin; on Tempo it is broadcast by
the chain's rpc, and its fee is paid in the token, within the bounds of [mpp]. It
moves money once: a lost answer is asked for again by the same command.

With --key the same command is the same payment however often it runs. Without
one, an equal transfer is refused as a duplicate for duplicate_window. Where a
person is asked first, the same command pays once it is approved.`,
		Example: `  canopy pay 0x2096a1dd90dd45F9b6C2FB2C3CF0e0d1c7C4287C 7.50 --key invoice-17
  canopy pay 0x2096a1dd90dd45F9b6C2FB2C3CF0e0d1c7C4287C 0.10 --chain base-sepolia --json
  canopy pay 0x2096a1dd90dd45F9b6C2FB2C3CF0e0d1c7C4287C 2 --chain tempo --memo "invoice 17"`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			t, err := transferOf(c, args, f)
			if err != nil {
				return err
			}
			file, err := a.load()
			if err != nil {
				return err
			}
			client, err := a.client(c.Context(), file)
			if err != nil {
				return err
			}
			defer client.Close()
			r, err := client.Pay(c.Context(), t)
			if err != nil {
				return a.transferFailed(c, file, t, err)
			}
			a.code = codeOf(r.Status)
			if r.Warning != "" {
				a.note("warning: %s", show(r.Warning, 300))
			}
			if a.json {
				return a.printJSON(shape.Pay(r))
			}
			a.printTransfer(t, r)
			return nil
		},
	}
	c.SetFlagErrorFunc(amountFirst)
	c.ValidArgsFunction = cobra.NoFileCompletions
	a.chainVar(c, &f.chain)
	c.Flags().StringVar(&f.key, "key", "", "`KEY` that makes repeated calls one payment")
	c.Flags().StringVar(&f.purpose, "purpose", "", "`TEXT`: what it is for, for people")
	memoVar(c, &f.memo)
	return c
}

func memoVar(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "memo", "", "`MEMO` for the payee, where the chain carries one: 0x and 64 hex digits, or text of at most 32 bytes that does not begin with 0x")
}

// costOf is what r costs, with its parts where there is a fee.
func costOf(r canopy.Result) string {
	if r.Fee == 0 {
		return r.Amount.String()
	}
	return fmt.Sprintf("%s (%s)", r.Cost(), withFee(r.Amount, r.Fee))
}

// feeHint says why a limit that was reached names more than the amount.
func (a *app) feeHint(r canopy.Result) {
	if r.Fee > 0 && r.Status != canopy.Allowed {
		a.note("The figures count the fee at its bound of %s, which gas and gas_price in [mpp] of %s set.", r.Fee, config.Find(a.config))
	}
}

// gasBound is what a transaction of ours may cost beside; empty where there is
// none.
func gasBound(r canopy.Result) string {
	if r.Gas.IsZero() {
		return ""
	}
	return "at most " + r.Gas.Coin() + " of the chain's own coin, by a transaction of ours"
}

func (a *app) printTransfer(t canopy.Transfer, r canopy.Result) {
	tx := r.TxHash
	if tx != "" && r.Settlement == canopy.SettlementClaimed {
		tx += " (by the word of who submitted it, until the chain confirms it)"
	}
	a.fields(
		"payment", string(r.PaymentID), "outcome", r.Status.String(), "cost", costOf(r), "gas", gasBound(r), "to", t.To.String(), "chain", t.Chain.Name(),
		"tx", tx, "approval", string(r.ApprovalID),
	)
	for _, reason := range r.Reasons {
		frees := ""
		if !reason.Until.IsZero() {
			frees = "; it frees on " + moment(reason.Until)
		}
		a.printf("because  %s%s\n", show(reason.Said(), 400), frees)
	}
	a.feeHint(r)
	switch {
	case r.Status == canopy.Denied:
		a.transferHint(r.Reasons, t)
	case r.Status == canopy.PendingApproval:
		a.note("A person is asked: canopy approvals show %s. Once approved, the same command pays.", r.ApprovalID)
	case r.Status == canopy.Allowed:
		a.note("canopy ledger show %s tells its story.", r.PaymentID)
	}
}

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/payment"
)

// transferFlags are what pay and preview say of a transfer.
type transferFlags struct{ chain, key, purpose, memo string }

// chainNames are the chains that have a token to pay with and a name.
var chainNames = []string{payment.Base.Name(), payment.BaseSepolia.Name(), payment.Tempo.Name(), payment.TempoTest.Name()}

func (a *app) chainVar(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "chain", "base", "`CHAIN` to pay on, by name or as eip155:8453")
	c.RegisterFlagCompletionFunc("chain", a.completeChains)
}

// transferOf reads a transfer from the command line.
func transferOf(c *cobra.Command, args []string, f transferFlags) (t canopy.Transfer, err error) {
	if t.To, err = payment.ParseAddress(args[0]); err != nil {
		return t, usage(c, fmt.Errorf("TO: %w", err))
	}
	if t.Amount, err = payment.ParseUSD(args[1]); err != nil {
		return t, usage(c, fmt.Errorf("USD: %w", err))
	}
	if t.Chain, err = payment.ChainByName(f.chain); err != nil {
		return t, usage(c, fmt.Errorf("--chain: %q is not a chain: there are %s, or such as eip155:8453", show(f.chain, 40), strings.Join(chainNames, ", ")))
	}
	t.Key, t.Purpose, t.Memo = f.key, f.purpose, f.memo
	return t, nil
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
				return outcome(err)
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
	a.chainVar(c, &f.chain)
	c.Flags().StringVar(&f.key, "key", "", "`KEY` that makes repeated calls one payment")
	c.Flags().StringVar(&f.purpose, "purpose", "", "`TEXT`: what it is for, for people")
	memoVar(c, &f.memo)
	return c
}

func memoVar(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "memo", "", "`MEMO` for the payee, where the chain carries one: 0x and 64 hex digits, or text of at most 32 bytes")
}

// outcome gives a payment's error its exit code.
func outcome(err error) error {
	var doubt *canopy.InDoubtError
	if errors.As(err, &doubt) {
		return exit{codeInDoubt, err}
	}
	return err
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
	cost := withFee(r.Amount, r.Fee)
	if r.Status == canopy.Denied && r.Amount == 0 {
		cost = t.Amount.String()
	}
	tx := r.TxHash
	if tx != "" && r.Settlement == canopy.SettlementClaimed {
		tx += " (by the word of who submitted it, until the chain confirms it)"
	}
	a.fields(
		"payment", string(r.PaymentID), "outcome", r.Status.String(), "cost", cost, "gas", gasBound(r), "to", t.To.String(), "chain", t.Chain.Name(),
		"tx", tx, "approval", string(r.ApprovalID),
	)
	for _, reason := range r.Reasons {
		a.printf("because  %s\n", show(reason.Text, 400))
	}
	switch {
	case r.Status == canopy.PendingApproval:
		a.note("A person is asked: canopy approvals show %s. Once approved, the same command pays.", r.ApprovalID)
	case r.Status == canopy.Allowed:
		a.note("canopy ledger show %s tells its story.", r.PaymentID)
	}
}

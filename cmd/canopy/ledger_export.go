package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

func (a *app) ledgerExportCommand() *cobra.Command {
	var format, since, until string
	c := &cobra.Command{
		Use:   "export",
		Short: "Print every payment, oldest first, for other programs",
		Long: `Export prints the payments of the ledger, oldest first, on standard output: as
JSON, one payment a line with its events, or as CSV. It holds no key of an
account and no signature. cost_usd is what was judged, with the bound of its fee;
spent_usd is what counts in the caps, with the fee that was paid once that is known.`,
		Example: `  canopy ledger export > payments.jsonl
  canopy ledger export --format csv --since 2026-05-01 --agent trader > may.csv`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if format != "jsonl" && format != "csv" {
				return usage(c, errors.New("--format is jsonl or csv"))
			}
			q := ledger.Query{Agent: a.agent, Oldest: true}
			if q.Since, err = instant(since); err != nil {
				return usage(c, fmt.Errorf("--since: %w", err))
			}
			if q.Until, err = instant(until); err != nil {
				return usage(c, fmt.Errorf("--until: %w", err))
			}
			s, err := a.store()
			if err != nil {
				return err
			}
			defer s.Close()
			if format == "csv" {
				return a.exportCSV(c, s, q)
			}
			return a.exportJSON(c, s, q)
		},
	}
	c.Flags().StringVar(&format, "format", "jsonl", "`FORMAT`: jsonl or csv")
	c.Flags().StringVar(&since, "since", "", "only from `TIME` on, such as 24h (ago), 2026-05-08 or 2026-05-08T18:00:00Z")
	c.Flags().StringVar(&until, "until", "", "only before `TIME`")
	return c
}

func (a *app) exportJSON(c *cobra.Command, s ledger.Store, q ledger.Query) error {
	w := bufio.NewWriter(a.out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for e, err := range s.Entries(c.Context(), q) {
		if err != nil {
			return errors.Join(err, w.Flush())
		}
		events, err := s.Events(c.Context(), e.ID)
		if err != nil {
			return errors.Join(err, w.Flush())
		}
		if err := enc.Encode(shape.LedgerDetailOf(e, events)); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
	}
	return w.Flush()
}

// csvColumns are what an export as CSV has of a payment.
var csvColumns = []string{
	"transaction_id", "created_at", "agent", "state", "cost_usd", "amount_usd", "fee_usd", "rail", "chain", "token", "payee", "payer",
	"method", "url", "host", "purpose", "authorized_at", "valid_before", "spent_at", "tx_hash", "http_status", "delivered", "assumed", "approval_id", "reason",
	"spent_usd", "memo", "key", "realm", "further_payees",
}

func (a *app) exportCSV(c *cobra.Command, s ledger.Store, q ledger.Query) error {
	w := csv.NewWriter(a.out)
	w.Write(csvColumns) // Flush tells errors
	for e, err := range s.Entries(c.Context(), q) {
		if err != nil {
			w.Flush()
			return errors.Join(err, w.Error())
		}
		w.Write(csvRow(e))
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

func csvRow(e ledger.Entry) []string {
	t := e.Terms
	amount, _ := t.Asset.Value(t.Amount)
	status, reason, url, memo := "", "", t.Origin+t.Target, ""
	if t.IsTransfer() {
		url, memo = "", t.Target
	}
	if e.HTTP != 0 {
		status = strconv.Itoa(e.HTTP)
	}
	if len(e.Reasons) > 0 {
		reason = e.Reasons[0].Text
	}
	row := []string{
		string(e.ID), stamp(e.CreatedAt), e.Agent, e.State.String(), number(e.Cost.String()), number(amount.String()), number(t.FeeBound.String()),
		t.Rail, string(t.Asset.Chain), t.Asset.Address.String(), t.Payee().String(), e.Payer.String(),
		t.Method, url, e.Host, e.Purpose, stamp(e.AuthorizedAt), stamp(e.ValidBefore), stamp(e.SpentAt), e.Receipt.TxHash, status,
		strconv.FormatBool(e.Delivered), strconv.FormatBool(e.Assumed), string(e.ApprovalID), reason,
		number(e.Spent.String()), memo, e.Key, e.Realm, furtherPayees(t),
	}
	for i, cell := range row {
		row[i] = cellOf(cell)
	}
	return row
}

// furtherPayees are t's recipients after the first, each with what it gets.
func furtherPayees(t payment.Terms) string {
	var out []string
	for _, r := range t.Recipients[min(1, len(t.Recipients)):] {
		value, _ := t.Asset.Value(r.Amount)
		out = append(out, r.Address.String()+" "+number(value.String()))
	}
	return strings.Join(out, "; ")
}

// cellOf is text for a cell of a table: on one line, and never a formula, which
// spreadsheets would carry out.
func cellOf(s string) string {
	s = show(s, 1000)
	if s != "" && (s[0] == '=' || s[0] == '+' || s[0] == '-' || s[0] == '@') {
		return "'" + s
	}
	return s
}

// number is an amount of dollars without its sign for people.
func number(s string) string {
	if len(s) > 0 && s[0] == '$' {
		return s[1:]
	}
	return s
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

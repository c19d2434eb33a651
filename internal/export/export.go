// Package export writes payments for other programs. What it writes holds no key
// and no signature.
package export

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// JSON writes each payment that q selects as a line of JSON, with its events.
func JSON(ctx context.Context, out io.Writer, s ledger.Store, q ledger.Query) error {
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for e, err := range s.Entries(ctx, q) {
		if err != nil {
			return errors.Join(err, w.Flush())
		}
		events, err := s.Events(ctx, e.ID)
		if err != nil {
			return errors.Join(err, w.Flush())
		}
		if err := enc.Encode(shape.LedgerDetailOf(e, events)); err != nil {
			return err
		}
	}
	return w.Flush()
}

// columns are what an export as CSV has of a payment.
var columns = []string{
	"transaction_id", "created_at", "agent", "state", "cost_usd", "amount_usd", "fee_usd", "rail", "chain", "token", "payee", "payer",
	"method", "url", "host", "purpose", "authorized_at", "valid_before", "spent_at", "tx_hash", "http_status", "delivered", "assumed", "approval_id", "reason",
	"spent_usd", "memo", "key", "realm", "further_payees",
}

// CSV writes the payments that q selects as a table.
func CSV(ctx context.Context, out io.Writer, s ledger.Store, q ledger.Query) error {
	w := csv.NewWriter(out)
	w.Write(columns) // Flush tells errors
	for e, err := range s.Entries(ctx, q) {
		if err != nil {
			w.Flush()
			return errors.Join(err, w.Error())
		}
		if err := w.Write(row(e)); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func row(e ledger.Entry) []string {
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
		reason = e.Reasons[0].Said()
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
	s = plaintext.Clean(s, 1000)
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

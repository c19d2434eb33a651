package shape

import (
	"errors"
	"strings"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// Failure is the result of every tool but canopy_fetch where there is no answer
// and no decision.
type Failure struct {
	Status        string       `json:"status"` // error
	Error         string       `json:"error"`
	Code          string       `json:"code,omitempty"`
	TransactionID payment.ID   `json:"transactionId,omitempty"`
	AmountUSD     *payment.USD `json:"amountUsd,omitempty"`
	SafeAfter     *Time        `json:"safeAfter,omitempty"`
	FeeUSD        *payment.USD `json:"feeUsd,omitempty"` // the bound
	CostUSD       *payment.USD `json:"costUsd,omitempty"`
}

// Error is the shape of err.
func Error(err error) Failure { return failureOf(err) }

// words are err's in one line.
func words(err error) string {
	return plaintext.Clean(strings.ReplaceAll(err.Error(), "\n", "; "), maxText)
}

func failureOf(err error) Failure {
	f := Failure{Status: "error", Error: words(err)}
	var doubt *canopy.InDoubtError
	var paid *canopy.PaidError
	var flight *canopy.InFlightError
	switch {
	case errors.As(err, &doubt):
		f.of(doubt.Result, CodeInDoubt)
		f.SafeAfter = after(doubt.SafeAfter)
	case errors.As(err, &paid):
		f.of(paid.Result, CodePaid)
		f.SafeAfter = after(paid.SafeAfter)
		if paid.Delivered {
			f.Code = CodeDelivered
		}
	case errors.As(err, &flight):
		f.of(flight.Result, CodeInFlight)
	case errors.Is(err, canopy.ErrKeyConflict):
		f.Code = CodeKeyConflict
	case errors.Is(err, canopy.ErrBodyNotReplayable):
		f.Code = CodeBody
	case errors.Is(err, canopy.ErrClockSkew):
		f.Code = CodeClockSkew
	case errors.Is(err, ledger.ErrMissing):
		f.Code = CodeMissing
	case errors.Is(err, ledger.ErrReadOnly):
		f.Code = CodeReadOnly
	}
	return f
}

// of says which payment f is about.
func (f *Failure) of(r canopy.Result, code string) {
	f.Code, f.TransactionID = code, r.PaymentID
	f.AmountUSD, f.FeeUSD, f.CostUSD = money(r)
}

package shape

import (
	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/payment"
)

// Reconciliation is the result of canopy reconcile.
type Reconciliation struct {
	Looked    int          `json:"looked"`
	Recovered int          `json:"recovered"`
	Settled   int          `json:"settled"`
	Released  int          `json:"released"`
	Cancelled int          `json:"cancelled"`
	Operator  int          `json:"needsOperator"`
	Waiting   int          `json:"waiting"`
	Unwatched int          `json:"unwatched"`
	Changed   []Changed    `json:"changed"`
	Foreign   []ForeignUse `json:"foreign"`
	Problems  []string     `json:"problems"`
	Proofs    int          `json:"proofs"`       // that ended
	Known     int          `json:"knownForeign"` // uses that an earlier round told of
	Frozen    *string      `json:"frozen"`       // why everybody on the ledger is; null where not
}

// Changed is a payment that reconciliation moved.
type Changed struct {
	TransactionID payment.ID  `json:"transactionId"`
	State         string      `json:"state"`
	CostUSD       payment.USD `json:"costUsd"`
	TxHash        *string     `json:"txHash"`

	AmountUSD *payment.USD `json:"amountUsd"`
	FeeUSD    *payment.USD `json:"feeUsd"`   // the bound
	SpentUSD  payment.USD  `json:"spentUsd"` // what counts in the caps
}

// ForeignUse is a use of our key that the ledger does not know.
type ForeignUse struct {
	ChainID *uint64         `json:"chainId"`
	Token   payment.Address `json:"token"`
	From    payment.Address `json:"from"`
	TxHash  string          `json:"txHash"`
	Block   uint64          `json:"block"`
	At      *Time           `json:"at"`

	TransactionID *payment.ID `json:"transactionId"` // of ours that was released before; null where the ledger never signed it
	ReleasedBy    *string     `json:"releasedBy"`    // operator or chain
}

// ReconciliationOf is the shape of r.
func ReconciliationOf(r canopy.Reconciliation) Reconciliation {
	out := Reconciliation{
		Looked: r.Looked, Recovered: r.Recovered, Settled: r.Settled, Released: r.Released, Cancelled: r.Cancelled,
		Operator: r.Operator, Waiting: r.Waiting, Unwatched: r.Unwatched, Proofs: r.Proofs, Known: r.Known,
		Changed: make([]Changed, len(r.Changed)), Foreign: make([]ForeignUse, len(r.Foreign)), Problems: make([]string, len(r.Problems)),
	}
	for i, p := range r.Changed {
		out.Changed[i] = Changed{p.PaymentID, p.State.String(), p.Cost(), said(p.TxHash, 100), &p.Amount, &p.Fee, p.Spent}
	}
	for i, s := range r.Foreign {
		out.Foreign[i] = ForeignUse{Token: s.Slot.Token, From: s.Slot.From, TxHash: s.TxHash, Block: s.Block, At: at(s.Time)}
		if s.Slot.Token.IsZero() {
			out.Foreign[i].Token = s.Token
		}
		if n, ok := s.Slot.Chain.Number(); ok {
			out.Foreign[i].ChainID = &n
		}
		if l, ok := r.LateUse(s); ok {
			by := l.ReleasedBy.String()
			out.Foreign[i].TransactionID, out.Foreign[i].ReleasedBy = &l.PaymentID, &by
		}
	}
	for i, p := range r.Problems {
		out.Problems[i] = plaintext.Clean(p.Error(), maxText)
	}
	return out
}

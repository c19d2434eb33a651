package approvals

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// Message is what a webhook is told of one approval. It is built from the terms
// as they are stored. Words of the seller and of the agent are cleaned of
// control and invisible characters and bounded; whoever shows them shows them
// as somebody else's.
type Message struct {
	Type      string      `json:"type"` // approval. and requested, approved, denied or expired
	Timestamp time.Time   `json:"timestamp"`
	Data      MessageData `json:"data"`
}

// MessageData is the approval of a Message.
type MessageData struct {
	ApprovalID    payment.ApprovalID `json:"approvalId"`
	TransactionID payment.ID         `json:"transactionId"`
	Status        string             `json:"status"` // pending, approved, denied or expired
	Agent         string             `json:"agent"`
	Reason        string             `json:"reason"`            // why a person is asked
	Purpose       string             `json:"purpose,omitempty"` // the agent's words

	AmountUSD  payment.USD        `json:"amountUsd"` // what the recipients get
	FeeUSD     payment.USD        `json:"feeUsd"`    // at most
	CostUSD    payment.USD        `json:"costUsd"`   // both: what limits are held to
	Rail       string             `json:"rail"`
	Chain      payment.ChainID    `json:"chain"`
	Asset      string             `json:"asset"` // symbol and address
	Recipients []MessageRecipient `json:"recipients"`
	Method     string             `json:"method,omitempty"` // empty for a direct transfer
	URL        string             `json:"url,omitempty"`    // host in ASCII
	Memo       string             `json:"memo,omitempty"`   // of a direct transfer

	CreatedAt time.Time    `json:"createdAt"`
	ExpiresAt time.Time    `json:"expiresAt"`
	DecidedAt *time.Time   `json:"decidedAt,omitempty"`
	DecidedBy string       `json:"decidedBy,omitempty"`
	Comment   string       `json:"comment,omitempty"`
	TermsHash payment.Hash `json:"termsHash"` // an answer names it: what was shown is what is ruled on
	Page      string       `json:"page,omitempty"`
}

// MessageRecipient is one that would be paid.
type MessageRecipient struct {
	Address   string      `json:"address"`
	AmountUSD payment.USD `json:"amountUsd"`
}

// How much of others' words a message carries.
const (
	maxWords = 500
	maxURL   = 2000
)

// messageOf tells of a. It refuses one whose terms are not those of its hash:
// nobody is to be shown what is not what would be paid.
func messageOf(a Approval, page string, now time.Time) (Message, error) {
	t := &a.Terms
	if t.Hash() != a.TermsHash {
		return Message{}, fmt.Errorf("approvals: %s: %w", a.ID, ledger.ErrTermsChanged)
	}
	kind := map[ledger.ApprovalStatus]string{
		ledger.ApprovalPending: "requested", ledger.ApprovalGranted: "approved", ledger.ApprovalRefused: "denied", ledger.ApprovalLapsed: "expired",
	}[a.Status]
	value := func(u payment.Units) payment.USD {
		usd, ok := t.Asset.Value(u)
		if !ok {
			return payment.MaxUSD
		}
		return usd
	}
	m := Message{Type: "approval." + kind, Timestamp: now.UTC().Truncate(time.Second), Data: MessageData{
		ApprovalID: a.ID, TransactionID: a.Payment, Status: a.Status.String(), Agent: plaintext.Clean(a.Agent, maxWords),
		Reason: plaintext.Clean(a.Reason, maxWords), Purpose: plaintext.Clean(a.Purpose, maxWords),
		AmountUSD: value(t.Amount), FeeUSD: t.FeeBound, CostUSD: a.Cost,
		Rail: t.Rail, Chain: t.Asset.Chain, Asset: t.Asset.String(),
		CreatedAt: a.CreatedAt, ExpiresAt: a.ExpiresAt, DecidedBy: plaintext.Clean(a.By, maxWords), Comment: plaintext.Clean(a.Comment, maxWords),
		TermsHash: a.TermsHash, Page: page,
	}}
	for _, r := range t.Recipients {
		m.Data.Recipients = append(m.Data.Recipients, MessageRecipient{r.Address.String(), value(r.Amount)})
	}
	if t.IsTransfer() {
		m.Data.Memo = plaintext.Clean(t.Target, maxWords)
	} else {
		m.Data.Method, m.Data.URL = t.Method, plaintext.Clean(t.Origin+t.Target, maxURL)
	}
	if !a.DecidedAt.IsZero() {
		m.Data.DecidedAt = &a.DecidedAt
	}
	return m, nil
}

// encode is m as it is sent.
func (m Message) encode() ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("approvals: %s: %w", m.Data.ApprovalID, err)
	}
	return b, nil
}

package shape

import (
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// Payee is a recipient and what it gets.
type Payee struct {
	Address   payment.Address `json:"address"`
	AmountUSD *payment.USD    `json:"amountUsd"`
}

// Terms are what was judged, and what an authorization signs.
type Terms struct {
	Rail        string          `json:"rail"`
	Scheme      string          `json:"scheme"`
	ChainID     *uint64         `json:"chainId"`
	Token       payment.Address `json:"token"`
	Symbol      string          `json:"symbol"`
	AmountUSD   *payment.USD    `json:"amountUsd"`
	FeeUSD      payment.USD     `json:"feeUsd"` // the bound
	AmountUnits payment.Units   `json:"amountUnits"`
	Recipients  []Payee         `json:"recipients"`
	Method      *string         `json:"method"` // null for a direct transfer
	URL         *string         `json:"url"`
	Memo        *string         `json:"memo"` // of a direct transfer, where it has one
	BodySHA256  *payment.Hash   `json:"bodySha256"`
	Hash        payment.Hash    `json:"hash"`
	CostUSD     *payment.USD    `json:"costUsd"`
}

func termsOf(t payment.Terms, hash payment.Hash) Terms {
	out := Terms{
		Rail: t.Rail, Scheme: t.Scheme, Token: t.Asset.Address, Symbol: t.Asset.Symbol,
		FeeUSD: t.FeeBound, AmountUnits: t.Amount, Recipients: make([]Payee, len(t.Recipients)), Hash: hash, CostUSD: counted(t.Cost()),
	}
	if n, ok := t.Asset.Chain.Number(); ok {
		out.ChainID = &n
	}
	if usd, ok := t.Asset.Value(t.Amount); ok {
		out.AmountUSD = &usd
	}
	for i, r := range t.Recipients {
		out.Recipients[i].Address = r.Address
		if usd, ok := t.Asset.Value(r.Amount); ok {
			out.Recipients[i].AmountUSD = &usd
		}
	}
	if t.IsTransfer() {
		out.Memo = orNull(t.Target)
	} else {
		digest := payment.Hash(t.BodyDigest)
		out.Method, out.URL, out.BodySHA256 = &t.Method, said(t.Origin+t.Target, 8<<10), &digest
	}
	return out
}

// ApprovalItem is one approval in a list, with the terms that a person rules
// on.
type ApprovalItem struct {
	ApprovalID    payment.ApprovalID `json:"approvalId"`
	TransactionID payment.ID         `json:"transactionId"`
	Status        string             `json:"status"`
	Agent         string             `json:"agent"`
	CostUSD       payment.USD        `json:"costUsd"`
	Reason        string             `json:"reason"`  // why a person is asked
	Purpose       *string            `json:"purpose"` // the agent's words
	CreatedAt     *Time              `json:"createdAt"`
	ExpiresAt     *Time              `json:"expiresAt"`
	DecidedAt     *Time              `json:"decidedAt"`
	DecidedBy     *string            `json:"decidedBy"`
	Via           *string            `json:"via"`
	Comment       *string            `json:"comment"`
	UsedAt        *Time              `json:"usedAt"`
	Override      bool               `json:"override,omitempty"`  // an approver let it go over a cap
	Approvers     []string           `json:"approvers,omitempty"` // who may rule, where the policy names them
	Quorum        int                `json:"quorum,omitempty"`    // how many of them it takes
	Votes         []Vote             `json:"votes,omitempty"`
	Terms         Terms              `json:"terms"`
}

// Vote is one person's answer.
type Vote struct {
	By      string  `json:"by"`
	Via     string  `json:"via"`
	Approve bool    `json:"approve"`
	At      *Time   `json:"at"`
	Comment *string `json:"comment"`
}

// votesOf are those of an approval that names approvers, oldest first.
func votesOf(a ledger.Approval) []Vote {
	if len(a.Approvers) == 0 {
		return nil
	}
	var out []Vote
	for _, v := range a.Votes {
		out = append(out, Vote{v.By, v.Via, v.Approve, at(v.At), said(v.Comment, maxText)})
	}
	return out
}

// quorumOf is 0 where no approvers are named.
func quorumOf(a ledger.Approval) int {
	if len(a.Approvers) == 0 {
		return 0
	}
	return a.Quorum
}

// ApprovalItemOf is the shape of a.
func ApprovalItemOf(a ledger.Approval) ApprovalItem {
	return ApprovalItem{
		ApprovalID: a.ID, TransactionID: a.Payment, Status: a.Status.String(), Agent: a.Agent, CostUSD: a.Cost,
		Reason: plaintext.Clean(a.Reason, maxText), Purpose: said(a.Purpose, maxText),
		CreatedAt: at(a.CreatedAt), ExpiresAt: at(a.ExpiresAt), DecidedAt: at(a.DecidedAt),
		DecidedBy: orNull(a.By), Via: orNull(a.Via), Comment: said(a.Comment, maxText), UsedAt: at(a.UsedAt),
		Override: a.Override, Approvers: a.Approvers, Quorum: quorumOf(a), Votes: votesOf(a),
		Terms: termsOf(a.Terms, a.TermsHash),
	}
}

// LedgerEntry is one payment in the ledger.
type LedgerEntry struct {
	TransactionID payment.ID          `json:"transactionId"`
	Agent         string              `json:"agent"`
	State         string              `json:"state"`
	CostUSD       payment.USD         `json:"costUsd"`
	SpentUSD      payment.USD         `json:"spentUsd"` // what counts in the caps
	Host          *string             `json:"host"`
	Realm         *string             `json:"realm"` // as the seller calls itself
	Purpose       *string             `json:"purpose"`
	Key           *string             `json:"key"`
	ApprovalID    *payment.ApprovalID `json:"approvalId"`
	CreatedAt     *Time               `json:"createdAt"`
	AuthorizedAt  *Time               `json:"authorizedAt"`
	ValidBefore   *Time               `json:"validBefore"`
	OutcomeAt     *Time               `json:"outcomeAt"`
	SpentAt       *Time               `json:"spentAt"`
	TxHash        *string             `json:"txHash"`
	HTTPStatus    *int                `json:"httpStatus"`
	Delivered     bool                `json:"delivered"`
	Assumed       bool                `json:"assumed"`
	Terms         Terms               `json:"terms"`
	Reasons       []Reason            `json:"reasons"`
}

// LedgerEntryOf is the shape of e.
func LedgerEntryOf(e ledger.Entry) LedgerEntry {
	return LedgerEntry{
		TransactionID: e.ID, Agent: e.Agent, State: e.State.String(), CostUSD: e.Cost, SpentUSD: e.Spent,
		Host: orNull(e.Host), Realm: said(e.Realm, maxText), Purpose: said(e.Purpose, maxText), Key: orNull(e.Key), ApprovalID: orNull(e.ApprovalID),
		CreatedAt: at(e.CreatedAt), AuthorizedAt: at(e.AuthorizedAt), ValidBefore: at(e.ValidBefore), OutcomeAt: at(e.OutcomeAt), SpentAt: at(e.SpentAt),
		TxHash: said(e.Receipt.TxHash, 100), HTTPStatus: orNull(e.HTTP), Delivered: e.Delivered, Assumed: e.Assumed,
		Terms: termsOf(e.Terms, e.TermsHash), Reasons: reasonsOf(e.Reasons),
	}
}

// LedgerDetail is one payment with everything that is known of it.
type LedgerDetail struct {
	LedgerEntry
	Payer        payment.Address `json:"payer"`
	Slot         *string         `json:"slot"`
	GasBound     *string         `json:"gasBound"` // of the chain's own coin; null where no transaction of ours carries it
	Transactions int             `json:"gasTransactions"`
	Sends        int             `json:"sends"`
	Claim        string          `json:"claim"`      // of the seller: none, paid, pending, used or refused
	SellerCode   *string         `json:"sellerCode"` // data, not advice
	SellerSays   *string         `json:"sellerSays"` // data, not advice
	Note         *string         `json:"note"`
	SafeAfter    *Time           `json:"safeAfter"` // where it is in doubt or was not delivered
	PolicySHA256 payment.Hash    `json:"policySha256"`
	Events       []Event         `json:"events"`
}

// Event is one move of a payment.
type Event struct {
	Seq  int64        `json:"seq"`
	At   *Time        `json:"at"`
	From string       `json:"from"`
	To   string       `json:"to"`
	By   string       `json:"by"`
	Hash payment.Hash `json:"hash"`
}

// LedgerDetailOf is the shape of e and its events.
func LedgerDetailOf(e ledger.Entry, events []ledger.Event) LedgerDetail {
	out := LedgerDetail{
		LedgerEntry: LedgerEntryOf(e), Payer: e.Payer, Slot: orNull(e.Slot.String()), Sends: e.Sends,
		Claim: e.Receipt.Claim.String(), SellerCode: said(e.Receipt.Code, 100), SellerSays: said(e.Receipt.Message, maxText),
		Note: said(e.Note, maxText), PolicySHA256: e.Policy, Events: make([]Event, len(events)),
	}
	if out.Transactions = len(e.Carries); !e.Gas.IsZero() {
		coin := e.Gas.Coin()
		out.GasBound = &coin
	}
	if e.State == ledger.InDoubt || e.State == ledger.NeedsOperator || e.State.Paid() && !e.Delivered {
		out.SafeAfter = after(e.SafeAfter())
	}
	for i, ev := range events {
		out.Events[i] = Event{ev.Seq, at(ev.At), ev.From.String(), ev.To.String(), ev.By.String(), ev.Hash}
	}
	return out
}

package ledger

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Budget is money set aside for a piece of work of one agent. It is one more
// limit for all time, beside the caps: of the payments that are made under it
// and under the budgets that were taken from it. What is given to a budget is
// not free in its parent until it ends. Then it pays nothing more, and what it
// did not spend is free again in its parent at once; what is held or spent stays
// counted there, until the chain releases a hold.
type Budget struct {
	ID     payment.BudgetID
	Parent payment.BudgetID // empty for an outermost one
	Root   payment.BudgetID // the outermost one that it is part of, or itself: its run
	Name   string           // for people
	Agent  string
	Limit  payment.USD

	// Owner is the process that the budget ends with. It is empty where an
	// operator granted it: that one ends by its time, by an operator or with its
	// parent.
	Owner  string
	Secret payment.Hash // of the token by which another process joins it; zero for none
	By     string       // who granted it

	CreatedAt time.Time
	ExpiresAt time.Time // zero for never

	// Path is the hash of all of the above and of the parent's Path: payments
	// record it, so that a limit cannot change unseen.
	Path payment.Hash

	EndedAt time.Time // zero while it is open
	Why     string    // it ended
}

// Bounds of budgets.
const (
	MaxBudgetDepth    = 16   // how deep they nest
	MaxBudgetChildren = 1000 // open ones of one budget, and open outermost ones of one agent
	maxBudgetName     = 100  // bytes
)

// NewBudget is what a budget is made of.
type NewBudget struct {
	ID     payment.BudgetID // set by the caller
	Agent  string
	Parent payment.BudgetID // empty for an outermost one
	Within payment.BudgetID // where it is set, Parent must be it or be part of it
	Name   string
	Limit  payment.USD

	// Granted says that the budget ends with no process. It has a Secret then,
	// the HashBudgetToken of its token, and who grants it, By.
	Granted   bool
	Secret    payment.Hash
	By        string
	ExpiresAt time.Time // zero for never

	Now time.Time
}

// BudgetUse is a budget and what counts against it.
type BudgetUse struct {
	Budget
	Spent    payment.USD // spent and held, under it and under all that was taken from it
	Held     payment.USD // the part of Spent that is held
	Given    payment.USD // what open budgets that were taken from it may still spend
	Left     payment.USD // what is free: 0 once it has ended
	Payments int64
}

// Budgeter is an optional power of a Store: it keeps budgets. Every store of this
// module has it.
type Budgeter interface {
	// MakeBudget sets money aside. It is a *BudgetShortError where the parent has
	// less left, ErrBudget where there is no such parent of the agent or it is not
	// within, and ErrBudgetEnded where the parent has ended.
	MakeBudget(ctx context.Context, n NewBudget) (Budget, error)

	// EndBudget ends a budget and all that was taken from it. One that has ended
	// already is returned as it stands. ErrNotFound where there is none.
	EndBudget(ctx context.Context, id payment.BudgetID, why string, now time.Time) (Budget, error)

	// JoinBudget is the budget that a token is of. ErrBudgetToken where it is of
	// none of this agent, ErrBudgetEnded where that has ended, and ErrBudget where
	// within is set and it is not part of that.
	JoinBudget(ctx context.Context, agent, token string, within payment.BudgetID, now time.Time) (Budget, error)

	// Budgets tells what is left of budgets now: the open ones, oldest first, and
	// before them those of q that have ended.
	Budgets(ctx context.Context, q BudgetQuery) ([]BudgetUse, error)
}

// BudgetQuery selects budgets.
type BudgetQuery struct {
	Agent string // "" for every agent
	Ended int    // how many that have ended are told too, the newest ones
	Now   time.Time
}

// Codes of the reasons that budgets give, beside policy.CodeBudgetExceeded.
const CodeBudgetEnded = "budget_ended"

// Errors about budgets.
var (
	ErrBudget      = errors.New("ledger: there is no such budget of this agent on this ledger")
	ErrBudgetEnded = errors.New("ledger: the budget has ended")
	ErrBudgetToken = errors.New("ledger: this is not the token of a budget of this agent on this ledger")
)

// BudgetShortError says that less is left of a budget than was asked of it.
type BudgetShortError struct {
	Name  string // of the budget
	Left  payment.USD
	Asked payment.USD
}

// Error tells how much is left.
func (e *BudgetShortError) Error() string {
	return fmt.Sprintf("ledger: budget %s has %s left, and %s was asked of it", clip(e.Name), e.Left, e.Asked)
}

// CheckBudgetName refuses what is no name of a budget: one line of text, 1 to 100
// bytes.
func CheckBudgetName(name string) error {
	if name == "" || len(name) > maxBudgetName || !utf8.ValidString(name) || strings.TrimSpace(name) != name ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("ledger: %q is no name of a budget: one line of text, 1 to %d bytes", clip(name), maxBudgetName)
	}
	return nil
}

// budgetToken is what every token begins with; its budget's id and 256 random
// bits follow.
const budgetToken = "canopy_budget_"

// BudgetToken is the token of a budget, with a secret of 256 random bits in text.
func BudgetToken(id payment.BudgetID, secret string) string {
	return budgetToken + strings.TrimPrefix(string(id), "bgt_") + "_" + secret
}

// HashBudgetToken is what is kept of a token.
func HashBudgetToken(token string) payment.Hash {
	return sha256.Sum256([]byte("canopy.budget.token.v1\x00" + token))
}

// GrantBudget makes a budget that ends with no process, and the token by which
// others join it, which is told this once. The ID, Granted and Secret of n are
// set here.
func GrantBudget(ctx context.Context, s Budgeter, n NewBudget) (Budget, string, error) {
	n.ID = payment.NewBudgetID(n.Now)
	token := BudgetToken(n.ID, rand.Text()+rand.Text()) // 260 bits
	n.Granted, n.Secret = true, HashBudgetToken(token)
	b, err := s.MakeBudget(ctx, n)
	if err != nil {
		return Budget{}, "", err
	}
	return b, token, nil
}

// budgetOf is the budget that a token says it is of, and false where it is none
// by its form.
func budgetOf(token string) (payment.BudgetID, bool) {
	rest, ok := strings.CutPrefix(token, budgetToken)
	id, secret, cut := strings.Cut(rest, "_")
	b := payment.BudgetID("bgt_" + id)
	return b, ok && cut && secret != "" && len(token) <= 200 && b.Valid()
}

// holds reports whether token is b's. It takes the same time for all that are
// not.
func (b *Budget) holds(token string) bool {
	got := HashBudgetToken(token)
	return subtle.ConstantTimeCompare(got[:], b.Secret[:]) == 1 && !b.Secret.IsZero()
}

// limit is that of a payment under b itself: what b has not given to others.
func (b *Budget) limit(given payment.USD) policy.Limit {
	l := policy.Limit{Scope: budgetScope(b), Window: foreverWindow, USD: b.Limit, Text: b.Limit.String() + " of budget " + b.Name}
	if given > 0 {
		l.USD -= min(given, l.USD)
		l.Text = fmt.Sprintf("%s, what budget %s of %s has not given to others", l.USD, b.Name, b.Limit)
	}
	return l
}

// Use is what counts against a further payment under the budget, as the ledger
// judges it in the step that reserves.
func (u BudgetUse) Use() policy.Use {
	return policy.Use{Limit: u.limit(u.Given), USD: u.Spent, Count: u.Payments, Held: u.Held}
}

// Ended is the reason of a payment under a budget that has ended.
func (b *Budget) Ended() policy.Reason {
	return policy.Reason{Status: payment.Denied, Code: CodeBudgetEnded, Text: fmt.Sprintf("Budget %s has ended: %s", b.Name, b.Why), Scope: budgetScope(b).Key()}
}

// path is what Path must be under a parent's.
func (b *Budget) path(parent payment.Hash) payment.Hash {
	var space [512]byte
	buf := appendText(space[:0], "canopy.budget.v1")
	buf = append(buf, parent[:]...)
	for _, s := range [...]string{string(b.ID), string(b.Parent), b.Name, b.Agent, b.Owner, b.By} {
		buf = appendText(buf, s)
	}
	buf = append(buf, b.Secret[:]...)
	buf = binary.BigEndian.AppendUint64(buf, uint64(b.Limit))
	buf = binary.BigEndian.AppendUint64(buf, uint64(b.CreatedAt.UnixMicro()))
	expires := int64(0)
	if !b.ExpiresAt.IsZero() {
		expires = b.ExpiresAt.UnixMicro()
	}
	return sha256.Sum256(binary.BigEndian.AppendUint64(buf, uint64(expires)))
}

package sqlite

import (
	"crypto/sha256"
	"database/sql/driver"
	"fmt"
	"math"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// openUntil is what payments.counts holds while an entry has no end.
const openUntil = math.MaxInt64

// derived are the columns of payments that follow from the entry, as they are
// stored; nil where the payment takes no part.
type derived struct {
	held, slot, owner, answers, transfer, counts, shared, run driver.Value
}

// derive is what the columns of e must be.
func derive(e *ledger.Entry) derived {
	d := derived{shared: int64(0)}
	if e.Shared {
		d.shared = int64(1)
	}
	if e.HoldsKey() {
		d.held = e.Key
	}
	if e.HoldsSlot() {
		d.slot = string(slotKey(e.SlotKey()))
	}
	if e.State == ledger.Authorized {
		d.owner = e.Owner
	}
	if e.Run != "" && !e.AuthorizedAt.IsZero() {
		d.run = e.Run
	}
	if until, ok := e.AnswersUntil(); ok {
		d.answers = until.UnixMicro()
	}
	if e.Terms.IsTransfer() && !e.AuthorizedAt.IsZero() && !e.State.Freed() {
		d.transfer = e.AuthorizedAt.UnixMicro()
	}
	if until, open, counts := e.CountedUntil(); open && counts {
		d.counts = int64(openUntil)
	} else if counts {
		d.counts = until.UnixMicro()
	}
	return d
}

// slotKey stands for a slot in its unique index.
func slotKey(slot string) []byte {
	h := sha256.Sum256([]byte(slot))
	return h[:16]
}

// blob makes the value of a column that derived keeps comparable as a string.
func blob(v driver.Value) driver.Value {
	if s, ok := v.(string); ok {
		return []byte(s)
	}
	return v
}

// entryColumns are read by entryOf, in this order, after n.
const entryColumns = `n, id, state, version, created, cost, shared, agent, host, fingerprint, body`

// entryOf makes an entry of a row of entryColumns.
func entryOf(row []driver.Value) (n int64, e *ledger.Entry, err error) {
	e = &ledger.Entry{}
	var id string
	var state, created, cost int64
	var fingerprint, body []byte
	err = scan(row, &n, &id, &state, &e.Version, &created, &cost, &e.Shared, &e.Agent, &e.Host, &fingerprint, &body)
	if err != nil {
		return 0, nil, err
	}
	e.ID, e.State, e.Spent = payment.ID(id), ledger.State(state), payment.USD(cost)
	e.CreatedAt = fromMicro(created)
	if copy(e.Fingerprint[:], fingerprint) != len(e.Fingerprint) {
		return 0, nil, fmt.Errorf("payment %q: %w", id, ErrDamaged)
	}
	if err := decodeEntry(body, e); err != nil {
		return 0, nil, fmt.Errorf("payment %q: %w", id, err)
	}
	return n, e, nil
}

// beside writes what of e is in columns of its own.
func beside(e *ledger.Entry) func(*writer) {
	return func(w *writer) {
		w.string(string(e.ID))
		w.uint(uint64(e.State))
		w.int(e.Version)
		w.int(e.CreatedAt.UnixMicro())
		w.int(int64(e.Spent))
		w.bool(e.Shared)
		w.string(e.Agent)
		w.string(e.Host)
		w.fixed(e.Fingerprint[:])
	}
}

// encodeEntry is the body of e: all but what is in columns of its own.
func encodeEntry(e *ledger.Entry) []byte {
	w := &writer{make([]byte, 0, 512+len(e.Echo))}
	w.uint(entryVersion)
	w.int(int64(e.Cost))
	w.time(e.SignBefore)
	w.uint(uint64(e.Variants))
	w.units(e.Gas)
	w.carries(e.Carries)
	w.string(e.Run)
	w.uint(uint64(len(e.Budgets)))
	for _, id := range e.Budgets {
		w.string(string(id))
	}
	w.hash(e.Path)
	w.terms(&e.Terms)
	w.fixed(e.TermsHash[:])
	w.fixed(e.Payer[:])
	w.string(e.Purpose)
	w.string(e.Key)
	w.slot(&e.Slot)
	w.time(e.ValidBefore)
	w.string(e.ChallengeID)
	w.string(e.Realm)
	w.int(int64(e.Protocol))
	w.bytes(e.Echo)
	w.bool(e.Resend)
	w.int(int64(e.Sends))
	w.bool(e.Watched)
	w.time(e.AuthorizedAt)
	w.time(e.OutcomeAt)
	w.time(e.OutcomeSeen)
	w.bool(e.Recovered)
	w.time(e.SpentAt)
	w.string(e.Owner)
	w.uint(uint64(e.Receipt.Claim))
	w.string(e.Receipt.TxHash)
	w.string(e.Receipt.Code)
	w.string(e.Receipt.Message)
	w.units(e.Receipt.Amount)
	w.time(e.Receipt.Block)
	w.int(int64(e.HTTP))
	w.bool(e.Delivered)
	w.string(e.Note)
	w.bool(e.Assumed)
	w.string(string(e.ApprovalID))
	w.reasons(e.Reasons)
	w.hash(e.Policy)
	w.int(int64(e.DuplicateWindow))
	w.fixed(e.Head[:])
	return w.seal(beside(e))
}

func decodeEntry(b []byte, e *ledger.Entry) error {
	r := unseal(b, beside(e))
	version := r.uint()
	switch version {
	case entryVersion, thirdEntry, secondEntry:
		e.Cost = payment.USD(r.int())
		e.SignBefore = r.time()
		e.Variants = int(r.uint())
		if version != secondEntry {
			e.Gas = r.units()
			e.Carries = r.carries()
		}
		if version == entryVersion {
			e.Run = r.string()
			for range r.count(1) {
				e.Budgets = append(e.Budgets, payment.BudgetID(r.string()))
			}
			e.Path = r.hash()
		}
	case firstEntry:
	default:
		r.fail()
	}
	r.terms(&e.Terms)
	r.fixed(e.TermsHash[:])
	r.fixed(e.Payer[:])
	e.Purpose = r.string()
	e.Key = r.string()
	r.slot(&e.Slot)
	e.ValidBefore = r.time()
	e.ChallengeID = r.string()
	e.Realm = r.string()
	e.Protocol = int(r.int())
	e.Echo = r.bytes()
	e.Resend = r.bool()
	e.Sends = int(r.int())
	e.Watched = r.bool()
	e.AuthorizedAt = r.time()
	e.OutcomeAt = r.time()
	e.OutcomeSeen = r.time()
	e.Recovered = r.bool()
	e.SpentAt = r.time()
	e.Owner = r.string()
	e.Receipt.Claim = payment.Claim(r.uint())
	e.Receipt.TxHash = r.string()
	e.Receipt.Code = r.string()
	e.Receipt.Message = r.string()
	e.Receipt.Amount = r.units()
	e.Receipt.Block = r.time()
	e.HTTP = int(r.int())
	e.Delivered = r.bool()
	e.Note = r.string()
	e.Assumed = r.bool()
	e.ApprovalID = payment.ApprovalID(r.string())
	e.Reasons = r.reasons()
	e.Policy = r.hash()
	e.DuplicateWindow = time.Duration(r.int())
	r.fixed(e.Head[:])
	if version == firstEntry {
		e.Cost, e.SignBefore = e.Spent, e.ValidBefore
		if e.AuthorizedAt.IsZero() || e.State.Freed() {
			e.Spent = 0
		}
	}
	return r.end()
}

func (w *writer) slot(s *payment.Slot) {
	w.uint(uint64(s.Kind))
	if s.Kind == payment.SlotNone {
		return
	}
	w.string(string(s.Chain))
	w.fixed(s.Token[:])
	w.fixed(s.From[:])
	w.fixed(s.NonceID[:])
	w.uint(s.Nonce)
	w.string(string(s.Payment))
}

func (r *reader) slot(s *payment.Slot) {
	if s.Kind = payment.SlotKind(r.uint()); s.Kind == payment.SlotNone {
		return
	}
	s.Chain = payment.ChainID(r.string())
	r.fixed(s.Token[:])
	r.fixed(s.From[:])
	r.fixed(s.NonceID[:])
	s.Nonce = r.uint()
	s.Payment = payment.ID(r.string())
}

// encodeApproval is the body of a: all of it.
func encodeApproval(a *ledger.Approval) []byte {
	w := &writer{make([]byte, 0, 512)}
	w.uint(approvalVersion)
	w.string(string(a.Payment))
	w.string(a.Agent)
	w.terms(&a.Terms)
	w.fixed(a.TermsHash[:])
	w.int(int64(a.Cost))
	w.string(a.Reason)
	w.string(a.Purpose)
	w.uint(uint64(a.Status))
	w.time(a.CreatedAt)
	w.time(a.ExpiresAt)
	w.time(a.DecidedAt)
	w.string(a.By)
	w.string(a.Via)
	w.string(a.Comment)
	w.time(a.UsedAt)
	w.int(a.Version)
	w.uint(uint64(len(a.Approvers)))
	for _, name := range a.Approvers {
		w.string(name)
	}
	w.int(int64(a.Quorum))
	w.bool(a.Chat)
	w.bool(a.Override)
	w.uint(uint64(len(a.Votes)))
	for _, v := range a.Votes {
		w.string(v.By)
		w.string(v.Via)
		w.bool(v.Approve)
		w.time(v.At)
		w.string(v.Comment)
	}
	return w.seal(func(w *writer) { w.string(string(a.ID)) })
}

func decodeApproval(id string, b []byte) (*ledger.Approval, error) {
	a := &ledger.Approval{ID: payment.ApprovalID(id)}
	r := unseal(b, func(w *writer) { w.string(id) })
	version := r.uint()
	if version != approvalVersion && version != firstApproval {
		r.fail()
	}
	a.Payment = payment.ID(r.string())
	a.Agent = r.string()
	r.terms(&a.Terms)
	r.fixed(a.TermsHash[:])
	a.Cost = payment.USD(r.int())
	a.Reason = r.string()
	a.Purpose = r.string()
	a.Status = ledger.ApprovalStatus(r.uint())
	a.CreatedAt = r.time()
	a.ExpiresAt = r.time()
	a.DecidedAt = r.time()
	a.By = r.string()
	a.Via = r.string()
	a.Comment = r.string()
	a.UsedAt = r.time()
	a.Version = r.int()
	if version == firstApproval {
		a.Quorum = 1
		if !a.DecidedAt.IsZero() {
			a.Votes = []ledger.Vote{{By: a.By, Via: a.Via, Approve: a.Status != ledger.ApprovalRefused, At: a.DecidedAt, Comment: a.Comment}}
		}
		return a, r.end()
	}
	for range r.count(1) {
		a.Approvers = append(a.Approvers, r.string())
	}
	a.Quorum = int(r.int())
	a.Chat = r.bool()
	a.Override = r.bool()
	for range r.count(5) {
		a.Votes = append(a.Votes, ledger.Vote{By: r.string(), Via: r.string(), Approve: r.bool(), At: r.time(), Comment: r.string()})
	}
	return a, r.end()
}

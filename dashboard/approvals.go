package dashboard

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// askedOnPage is how many approvals one page shows.
const askedOnPage = 20

// lookedBack is how many of the newest payments are looked at for what was
// decided lately, and decidedOnPage how many of those are shown.
const (
	lookedBack    = 200
	decidedOnPage = 8
)

// approvalsView is the first page: what waits, and what was decided lately.
type approvalsView struct {
	view
	Asked    []asked
	Sum      string // of all that wait
	Dearest  string // of them; empty where there is one
	From, To int    // of those that wait
	Earlier  int    // where the page before begins, -1 for none
	Later    int
	Decided  []decidedView
}

type decidedView struct {
	ID, Agent, Total, For, State, Mood string
	At                                 moment
}

func (p *Page) approvalsPage(w http.ResponseWriter, r *http.Request, s *session) {
	v := approvalsView{view: p.view(r, s, "Approvals", "approvals"), Earlier: -1, Later: -1}
	if v.err != nil {
		p.broken(w, r, s, v.err)
		return
	}
	l := v.now
	from, _ := strconv.Atoi(r.URL.Query().Get("from"))
	from = max(0, min(from, len(l.pending)-1))
	v.From = from + 1
	v.Sum, v.Dearest = sumOf(l.pending)
	h := p.records()
	for _, ap := range l.pending[from:min(from+askedOnPage, len(l.pending))] {
		a, err := p.asked(r.Context(), s, h, ap)
		if err != nil {
			p.broken(w, r, s, err)
			return
		}
		v.Asked = append(v.Asked, a)
	}
	if v.To = from + len(v.Asked); v.To < len(l.pending) {
		v.Later = v.To
	}
	if from > 0 {
		v.Earlier = max(0, from-askedOnPage)
	}
	var err error
	if v.Decided, err = p.decidedLately(r); err != nil {
		p.broken(w, r, s, err)
		return
	}
	p.render(w, r, http.StatusOK, "approvals", v)
}

// sumOf is what all that wait would cost, and the dearest of several: a dear one
// does not hide among cheap ones.
func sumOf(pending []ledger.Approval) (sum, dearest string) {
	var total, most payment.USD
	for i := range pending {
		cost := pending[i].Terms.Cost()
		total, _ = total.Add(cost)
		most = max(most, cost)
	}
	if len(pending) > 1 {
		dearest = most.String()
	}
	return total.String(), dearest
}

// decidedLately are payments that a person was asked about, among the newest.
func (p *Page) decidedLately(r *http.Request) ([]decidedView, error) {
	var out []decidedView
	for e, err := range p.cfg.Store.Entries(r.Context(), ledger.Query{Limit: lookedBack}) {
		if err != nil {
			return nil, err
		}
		if e.ApprovalID == "" || e.State == ledger.PendingApproval {
			continue
		}
		out = append(out, decidedView{
			string(e.ApprovalID), clean(e.Agent, 100), e.Cost.String(), what(e.Terms), words(e.State.String()), mood(e.State), p.moment(e.CreatedAt),
		})
		if len(out) == decidedOnPage {
			break
		}
	}
	return out, nil
}

// approvalView is one approval, whatever became of it.
type approvalView struct {
	view
	A asked
}

// approvalID is the id of the path; anything else is no approval.
func (p *Page) approvalID(w http.ResponseWriter, r *http.Request, s *session) (payment.ApprovalID, bool) {
	id := payment.ApprovalID(r.PathValue("id"))
	if !id.Valid() {
		p.fail(w, r, s, http.StatusNotFound, "That is not an approval's id.", "They look like appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2C.")
		return "", false
	}
	return id, true
}

func (p *Page) approvalPage(w http.ResponseWriter, r *http.Request, s *session) {
	id, ok := p.approvalID(w, r, s)
	if !ok {
		return
	}
	ap, err := p.cfg.Store.Approvals().Approval(r.Context(), id, p.cfg.Now())
	if err != nil {
		p.broken(w, r, s, err)
		return
	}
	a, err := p.asked(r.Context(), s, p.records(), ap)
	if err != nil {
		p.broken(w, r, s, err)
		return
	}
	p.render(w, r, http.StatusOK, "approval", approvalView{p.view(r, s, "Approval", "approvals"), a})
}

// rule takes a person's answer: on the terms of the form that it came in, and
// once.
func (p *Page) rule(w http.ResponseWriter, r *http.Request, s *session) {
	id, ok := p.approvalID(w, r, s)
	if !ok {
		return
	}
	hash, err := s.spend(r, "rule", string(id), p.cfg.Now())
	if err != nil {
		p.fail(w, r, s, http.StatusForbidden, "That form was sent before, or is too old: nothing was done.", "Read the approval again, then rule on it.")
		return
	}
	answer := r.PostForm.Get("answer")
	if answer != "approve" && answer != "deny" {
		p.fail(w, r, s, http.StatusBadRequest, "The form says neither yes nor no: nothing was done.", "")
		return
	}
	ruled, err := p.desk.Rule(r.Context(), id, approvals.Ruling{
		Approve: answer == "approve", By: s.name, Credential: s.credential.Reveal(), Reason: clean(r.PostForm.Get("reason"), 500), TermsHash: hash,
	})
	if err != nil {
		p.notRuled(w, r, s, ruled, err)
		return
	}
	p.cfg.Logger.Info("dashboard: ruled", "approval", string(id), "approver", s.name, "answer", answer)
	http.Redirect(w, r, "/approvals/"+string(id), http.StatusSeeOther)
}

// notRuled says why an answer was not taken, and what to do then.
func (p *Page) notRuled(w http.ResponseWriter, r *http.Request, s *session, ap ledger.Approval, err error) {
	status, what, how := http.StatusConflict, "", "Nothing was done."
	switch {
	case errors.Is(err, ledger.ErrDecided) && ap.Status != ledger.ApprovalPending:
		what, how = "Somebody was first: it is "+ap.Status.String()+".", "Its page tells who, and when."
		if ap.Status == ledger.ApprovalLapsed {
			what, how = "It expired before your answer.", "Silence is a denial. The agent can ask again."
		}
	case errors.Is(err, ledger.ErrDecided):
		what = "It is decided already."
	case errors.Is(err, ledger.ErrTermsChanged):
		what, how = "The stored terms are not those that you saw, so your answer was not taken.", "Do not approve it. Look into the ledger with canopy ledger verify."
	case errors.Is(err, ledger.ErrVoted):
		what, how = "You have approved it already: somebody else has to as well.", "Your first answer stands."
	case errors.Is(err, ledger.ErrNotNamed):
		status, what = http.StatusForbidden, "The policy does not name you as an approver of this payment."
	case errors.Is(err, ledger.ErrCredential):
		status, what, how = http.StatusForbidden, "Your credential is no longer the one that counts.", "It was rotated or revoked. Log in with the new one."
	case errors.Is(err, ledger.ErrSelf):
		status, what = http.StatusForbidden, "The requester cannot approve its own payment."
	case errors.Is(err, ledger.ErrClockSkew):
		what, how = "The clocks disagree, so no approval is taken now.", "Set the clock right, or run canopy ledger ack. Denying works."
	default:
		p.broken(w, r, s, err)
		return
	}
	p.fail(w, r, s, status, what, how)
}

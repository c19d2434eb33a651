package dashboard

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/canopy-go/canopy/internal/host"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// termsView is what is paid, rendered from terms and from nothing else.
type termsView struct {
	Total, Amount string
	Fee           string // the bound; empty for none
	Payees        []payeeView
	Transfer      bool
	Host          string // in ASCII
	Looks         string // why the host may not be what it looks like
	Method, URL   string
	Memo          string
	Body          string // SHA-256 of the request's body; empty for none
	Rail          string
	Chain         string
	Contract      string // of the token
	Asset         string
	Validity      string
	Hash          string
}

type payeeView struct{ Address, Amount string }

// emptyBody is the SHA-256 of nothing.
const emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func termsOf(t payment.Terms) termsView {
	v := termsView{
		Total: t.Cost().String(), Amount: value(t.Asset, t.Amount), Transfer: t.IsTransfer(),
		Rail: clean(t.Rail, 40) + " " + clean(t.Scheme, 40), Chain: clean(t.Asset.Chain.Name(), 80), Asset: clean(t.Asset.Symbol, 40),
		Contract: t.Asset.Address.String(), Validity: span(t.Validity), Hash: t.Hash().String(),
	}
	if id := string(t.Asset.Chain); id != t.Asset.Chain.Name() {
		v.Chain += " (" + clean(id, 80) + ")"
	}
	if t.FeeBound > 0 {
		v.Fee = t.FeeBound.String()
	}
	for _, r := range t.Recipients {
		v.Payees = append(v.Payees, payeeView{r.Address.String(), value(t.Asset, r.Amount)})
	}
	if v.Transfer {
		v.Memo = clean(t.Target, 400)
		return v
	}
	v.Method, v.URL = clean(t.Method, 40), clean(t.Origin+t.Target, 2000)
	if body := fmt.Sprintf("%x", t.BodyDigest); body != emptyBody {
		v.Body = body
	}
	if o, err := host.ParseOrigin(t.Origin); err == nil {
		v.Host, v.Looks = o.Host, host.Suspicious(o.Host)
		if v.Looks == "" && strings.Contains(o.Host, "xn--") {
			v.Looks = "the name is written with letters that are not ASCII"
		}
	} else {
		v.Host, v.Looks = clean(t.Origin, 300), "it is no origin that a payment is made to"
	}
	return v
}

// voteView is one person's answer.
type voteView struct {
	By, Via, Word, Comment string
	At                     moment
}

// asked is one approval as a person reads it.
type asked struct {
	termsView
	ID, Payment, Agent, Status string
	Why                        []string
	Purpose                    string
	Past                       past
	Caps                       []meter
	Blocked                    string // why it would not be paid even so
	Created, Expires, Decided  moment
	By, Via, Comment           string
	Used                       bool
	Override                   bool // a cap was overridden for it

	Pending   bool
	Intact    bool   // the terms are those that were judged
	Stored    string // the hash that was stored
	Votes     []voteView
	Quorum    int
	Yes       int
	Approvers string
	Barred    string // why this person's yes is not taken
	Token     string // of the form; empty where there is none

	Freeze string // token of the one act that undoes a yes
}

// asked reads an approval, with what a person needs to rule on it.
func (p *Page) asked(ctx context.Context, s *session, h *records, ap ledger.Approval) (asked, error) {
	e, err := p.cfg.Store.Entry(ctx, ap.Payment)
	if err != nil {
		return asked{}, err
	}
	hash := ap.Terms.Hash()
	v := asked{
		termsView: termsOf(ap.Terms), ID: string(ap.ID), Payment: string(ap.Payment), Agent: clean(ap.Agent, 100), Status: ap.Status.String(),
		Purpose: clean(ap.Purpose, 500), Created: p.moment(ap.CreatedAt), Expires: p.moment(ap.ExpiresAt), Decided: p.moment(ap.DecidedAt),
		By: clean(ap.By, 100), Via: clean(ap.Via, 40), Comment: clean(ap.Comment, 500), Used: !ap.UsedAt.IsZero(), Override: ap.Override,
		Pending: ap.Status == ledger.ApprovalPending, Stored: ap.TermsHash.String(),
		Intact: hash == ap.TermsHash && hash == e.TermsHash && ap.Agent == e.Agent && ap.Cost == ap.Terms.Cost(),
		Quorum: max(1, ap.Quorum), Yes: ap.Yes(),
	}
	for _, r := range e.Reasons {
		if r.Decides(payment.PendingApproval) {
			v.Why = append(v.Why, clean(r.Text, 400))
		}
	}
	if len(v.Why) == 0 {
		v.Why = []string{clean(ap.Reason, 400)}
	}
	for _, vote := range ap.Votes {
		word := "no"
		if vote.Approve {
			word = "yes"
		}
		v.Votes = append(v.Votes, voteView{clean(vote.By, 100), clean(vote.Via, 40), word, clean(vote.Comment, 500), p.moment(vote.At)})
	}
	names := make([]string, len(ap.Approvers))
	for i, n := range ap.Approvers {
		names[i] = clean(n, 100)
	}
	v.Approvers = strings.Join(names, ", ")
	if !v.Pending {
		if ap.Status == ledger.ApprovalGranted && ap.UsedAt.IsZero() {
			v.Freeze = s.form(purpose{act: "freeze"}, p.cfg.Now())
		}
		return v, nil
	}
	if v.Past, err = p.pastOf(ctx, h, ap, e.Host); err != nil {
		return v, err
	}
	if err := p.judge(ctx, h, ap, e, &v); err != nil {
		return v, err
	}
	if len(ap.Approvers) > 0 && !ap.Names(s.name) {
		v.Barred = "The policy names " + v.Approvers + " to rule on this. You are " + s.name + "."
		return v, nil
	}
	for _, vote := range ap.Votes {
		if vote.Approve && ledger.FoldApprover(vote.By) == ledger.FoldApprover(s.name) {
			v.Barred = "You have approved it. " + strconv.Itoa(max(1, v.Quorum-v.Yes)) + " more must say yes."
		}
	}
	if !v.Intact {
		return v, nil
	}
	v.Token = s.form(purpose{act: "rule", subject: v.ID, terms: hash}, p.cfg.Now())
	return v, nil
}

// judge tells the caps that the payment counts in, and what would deny it now.
func (p *Page) judge(ctx context.Context, h *records, ap ledger.Approval, e ledger.Entry, v *asked) error {
	pay := payment.Payment{ID: ap.Payment, Agent: ap.Agent, Terms: ap.Terms, Host: e.Host, Purpose: ap.Purpose}
	if o, err := host.ParseOrigin(ap.Terms.Origin); err == nil {
		pay.Host, pay.Port = o.Host, o.Port
	}
	// What is asked about is not asked again: its payees are taken as known.
	known := &policy.Past{}
	for _, r := range ap.Terms.Recipients {
		known.Payees = append(known.Payees, r.Address)
	}
	verdict := p.cfg.Policy.Evaluate(pay, p.cfg.Now(), policy.History{Past: known})
	uses, err := h.use(ctx, verdict.Limits)
	if err != nil {
		return err
	}
	v.Caps = p.meters(uses, ap.Terms.Cost(), true)
	if verdict = verdict.Apply(uses); verdict.Status == payment.Denied {
		v.Blocked = clean(verdict.Reason(), 400)
	}
	if frozen, why, err := p.freezer.Frozen(ctx, ap.Agent); err != nil {
		return err
	} else if frozen {
		v.Blocked = "Payments are frozen: " + clean(why, 300)
	}
	return nil
}

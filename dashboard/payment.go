package dashboard

import (
	"net/http"

	"github.com/canopy-go/canopy/internal/story"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// paymentView is one payment's story.
type paymentView struct {
	view
	ID, Agent, State, Mood, Cost string
	Created                      moment
	Intact                       bool
	Terms                        termsView
	Approval                     string
	Facts                        [][2]string
	Story                        []story.Chapter
	Events                       []eventView
}

type eventView struct {
	Seq          int64
	At           moment
	From, To, By string
	Hash         string
}

func (p *Page) paymentPage(w http.ResponseWriter, r *http.Request, s *session) {
	id := payment.ID(r.PathValue("id"))
	if !id.Valid() {
		p.fail(w, r, s, http.StatusNotFound, "That is not a payment's id.", "They look like 01J9ZC3V5Y8Q2T4W6X8Z0A1B2C.")
		return
	}
	e, err := p.cfg.Store.Entry(r.Context(), id)
	if err != nil {
		p.broken(w, r, s, err)
		return
	}
	events, err := p.cfg.Store.Events(r.Context(), id)
	if err != nil {
		p.broken(w, r, s, err)
		return
	}
	v := paymentView{
		view: p.view(r, s, "Payment", "ledger"), ID: string(e.ID), Agent: clean(e.Agent, 100), State: words(e.State.String()), Mood: mood(e.State),
		Cost: e.Cost.String(), Created: p.moment(e.CreatedAt), Intact: e.Terms.Hash() == e.TermsHash, Terms: termsOf(e.Terms),
		Approval: string(e.ApprovalID), Facts: factsOf(e),
	}
	teller := story.Teller{Now: p.cfg.Now, Zone: p.cfg.Zone, Asks: p.cfg.Asks, Command: p.cfg.Command}
	v.Story = teller.Tell(e, events, p.ruling(r, e))
	for _, ev := range events {
		v.Events = append(v.Events, eventView{ev.Seq, p.moment(ev.At), words(ev.From.String()), words(ev.To.String()), ev.By.String(), ev.Hash.String()[:16]})
	}
	p.render(w, r, http.StatusOK, "payment", v)
}

// ruling tells who ruled on e, where a person was asked.
func (p *Page) ruling(r *http.Request, e ledger.Entry) string {
	if e.ApprovalID == "" {
		return ""
	}
	ap, err := p.cfg.Store.Approvals().Approval(r.Context(), e.ApprovalID, p.cfg.Now())
	if err != nil || ap.By == "" {
		return ""
	}
	text := ap.Status.String() + " by " + ap.By + " (" + ap.Via + ") at " + p.moment(ap.DecidedAt).Text
	if ap.Comment != "" {
		text += ": " + ap.Comment
	}
	return text
}

// factsOf are what the record has beside the terms.
func factsOf(e ledger.Entry) [][2]string {
	var out [][2]string
	add := func(name, value string) {
		if value != "" {
			out = append(out, [2]string{name, clean(value, 500)})
		}
	}
	if !e.AuthorizedAt.IsZero() && e.Spent != e.Cost {
		add("Counts", e.Spent.String())
	}
	add("From", e.Payer.String())
	add("Purpose", e.Purpose)
	add("Key", e.Key)
	if !e.Slot.IsZero() {
		add("Slot", e.Slot.String())
	}
	add("Seller calls itself", e.Realm)
	add("Transaction", e.Receipt.TxHash)
	add("Policy", e.Policy.String())
	return out
}

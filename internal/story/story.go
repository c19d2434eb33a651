// Package story tells payments in plain words, for people.
package story

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// Teller tells stories.
type Teller struct {
	Now  func() time.Time         // required
	Zone *time.Location           // of the instants that are told; time.Local where nil
	Asks map[payment.ChainID]bool // the chains whose nodes are asked

	// Command is a command of the program as it can be typed, such as
	// canopy ledger list for ledger list. That is it where it is nil.
	Command func(words string) string
}

func (t *Teller) command(words string) string {
	if t.Command == nil {
		return "canopy " + words
	}
	return t.Command(words)
}

func (t *Teller) moment(at time.Time) string {
	zone := t.Zone
	if zone == nil {
		zone = time.Local
	}
	return Moment(at.In(zone), t.Now())
}

// Tell tells one payment in plain words: what was decided and why, what was
// signed, what the seller said, what the chain said, what comes next and when.
// ruling is who ruled on it and how; empty where nobody did.
func (t *Teller) Tell(e ledger.Entry, events []ledger.Event, ruling string) []Chapter {
	return []Chapter{
		{"Decided", t.decided(e, ruling)},
		{"Signed", t.signed(e)},
		{"What came back", t.sellerSaid(e, events)},
		{"What the chain says", t.chainSaid(e, events)},
		{"Next", []string{t.Next(e)}},
	}
}

// Chapter is one part of a story.
type Chapter struct {
	Title string
	Lines []string
}

func (t *Teller) decided(e ledger.Entry, ruling string) []string {
	asked := fmt.Sprintf("On %s agent %s asked to pay %s for %s.", t.moment(e.CreatedAt), plaintext.Clean(e.Agent, 100), e.Cost, plaintext.Clean(What(e.Terms), 300))
	out := []string{asked}
	shadows := 0
	for _, r := range e.Reasons {
		word := verdictWord(r.Status)
		if r.Shadow {
			shadows++
			word = map[bool]string{true: "In shadow, it would have been denied", false: "In shadow, a person would have been asked"}[r.Status == payment.Denied]
		}
		out = append(out, fmt.Sprintf("%s (%s): %s.", word, plaintext.Clean(r.Code, 80), strings.TrimSuffix(plaintext.Words(r.Text, 2000), ".")))
	}
	switch {
	case len(e.Reasons) == 0:
		out = append(out, "The policy allowed it.")
	case shadows == len(e.Reasons):
		out = append(out, "The policy is in shadow, and so allowed it.")
	}
	switch n := len(e.Budgets); {
	case n == 1:
		out = append(out, fmt.Sprintf("It counts in budget %s.", e.Budgets[0]))
	case n > 1:
		out = append(out, fmt.Sprintf("It counts in budget %s, and in the %d that was taken from, up to %s.", e.Budgets[n-1], n-1, e.Budgets[0]))
	}
	if ruling != "" {
		out = append(out, "A person ruled on it: "+plaintext.Clean(ruling, 400)+".")
	} else if e.State == ledger.PendingApproval {
		out = append(out, "A person was asked and has not answered.")
	}
	return out
}

func verdictWord(s payment.Status) string {
	switch s {
	case payment.Allowed:
		return "Allowed"
	case payment.PendingApproval:
		return "A person had to be asked"
	}
	return "Denied"
}

func (t *Teller) signed(e ledger.Entry) []string {
	if e.Slot.IsZero() {
		return []string{"Nothing was signed."}
	}
	out := []string{
		fmt.Sprintf("On %s the money was set aside, and signing allowed: %s of %s to %s, from %s.",
			t.moment(e.AuthorizedAt), Amount(e.Terms), e.Terms.Asset.Chain.Name(), Payees(e.Terms), e.Payer),
		fmt.Sprintf("What was signed can move money once, and not after %s.", t.moment(e.ValidBefore)),
	}
	if e.Slot.Kind == payment.SlotProof {
		out[1] = fmt.Sprintf("It is a proof that the account is ours, and moves nothing. It counts as one payment, until %s.", t.moment(e.ValidBefore))
	}
	if e.Variants > 0 {
		out = append(out, fmt.Sprintf("It was signed for a new challenge %s, for the same terms and in the same lane: one of them at most moves money.", times(e.Variants)))
	}
	if e.Realm != "" && e.Realm != e.Host {
		out = append(out, fmt.Sprintf("The seller calls itself %q. The policy went by the host that was asked, %s.", plaintext.Clean(e.Realm, 200), plaintext.Clean(e.Host, 200)))
	}
	if e.Sends == 0 {
		return append(out, "It is not recorded that it was sent.")
	}
	return append(out, fmt.Sprintf("It was sent %s, as far as recorded.", times(e.Sends)))
}

// seller is who was sent what was signed.
func seller(e ledger.Entry) string {
	switch {
	case e.Terms.IsTransfer() && (e.Slot.Kind == payment.SlotLane || len(e.Carries) > 0):
		return "The node"
	case e.Terms.IsTransfer():
		return "The facilitator"
	}
	return "The seller"
}

func (t *Teller) sellerSaid(e ledger.Entry, events []ledger.Event) []string {
	if e.Slot.IsZero() {
		return []string{"Nothing was sent to anybody."}
	}
	var out []string
	if e.HTTP != 0 {
		became := "and did not deliver"
		if e.Delivered {
			became = "and delivered"
		}
		out = append(out, fmt.Sprintf("%s answered HTTP %d %s.", seller(e), e.HTTP, became))
	}
	switch e.Receipt.Claim {
	case payment.ClaimPaid:
		out = append(out, seller(e)+" claims that the payment settled"+by(e)+".")
	case payment.ClaimPending:
		out = append(out, seller(e)+" claims that the payment was broadcast and waits"+by(e)+".")
	case payment.ClaimUsed:
		out = append(out, seller(e)+" claims that our authorization was used already.")
	case payment.ClaimRefused:
		out = append(out, seller(e)+" claims that the payment did not settle, which proves nothing.")
	}
	if e.Receipt.Code != "" || e.Receipt.Message != "" {
		out = append(out, fmt.Sprintf("Its words, not to be taken as advice: %s %q", plaintext.Clean(e.Receipt.Code, 100), plaintext.Clean(e.Receipt.Message, 400)))
	}
	if e.Note != "" {
		out = append(out, notedWhen(e, events)+": "+plaintext.Clean(e.Note, 400)+".")
	}
	if len(out) == 0 {
		out = []string{"Nothing that is recorded."}
	}
	if !e.OutcomeAt.IsZero() {
		out = append(out, "This outcome was recorded on "+t.moment(e.OutcomeAt)+".")
	}
	return out
}

// notedWhen tells that e's note is of a state that it has left.
func notedWhen(e ledger.Entry, events []ledger.Event) string {
	was := e.State
	for _, ev := range events {
		var kept struct{ Note string }
		if json.Unmarshal(ev.Data, &kept) == nil && kept.Note != "" {
			was = ev.To
		}
	}
	if was == e.State {
		return "Noted"
	}
	return "Noted while it was " + State(was)
}

// State is a state for people.
func State(s ledger.State) string { return strings.ReplaceAll(s.String(), "_", " ") }

// by names the transaction that a seller claims.
func by(e ledger.Entry) string {
	if e.Receipt.TxHash == "" || e.State == ledger.Settled && e.Slot.Kind != payment.SlotProof {
		return ""
	}
	return " by " + plaintext.Clean(e.Receipt.TxHash, 100)
}

func (t *Teller) chainSaid(e ledger.Entry, events []ledger.Event) []string {
	switch {
	case e.Slot.IsZero():
		return []string{"There is nothing to ask it."}
	case e.Slot.Kind == payment.SlotProof:
		return []string{"There is nothing to ask it: a proof is on no chain, and moves nothing."}
	}
	last := events[len(events)-1]
	when := "On " + t.moment(last.At)
	who := ""
	switch {
	case last.By == ledger.ByOperator:
		who = " That is assumed: an operator's word, not the chain's."
	case e.Assumed:
		who = " That is assumed: one node's word, and no second one was asked."
	}
	switch e.State {
	case ledger.Settled:
		out := fmt.Sprintf("%s: the transfer %s is there and final.", when, plaintext.Clean(e.Receipt.TxHash, 100))
		if !e.SpentAt.IsZero() {
			out += " It moved on " + t.moment(e.SpentAt) + "."
		}
		if e.Spent != e.Cost {
			out += fmt.Sprintf(" With the fee it cost %s, of the %s that were set aside.", e.Spent, e.Cost)
		}
		return []string{out + who}
	case ledger.ExpiredUnused:
		return []string{when + ": what was signed was never used, and can never be used any more. The money is free again." + who}
	case ledger.Cancelled:
		if e.Slot.Kind == payment.SlotLane {
			return []string{fmt.Sprintf("%s: the transaction %s is there and failed. It moved nothing, and its fee of %s was spent.", when, plaintext.Clean(e.Receipt.TxHash, 100), e.Spent) + who}
		}
		return []string{when + ": our authorization was used up by a cancellation. The money is free again." + who}
	case ledger.NeedsOperator:
		return []string{when + ": our authorization was used, and moved something else than was agreed. Every agent was frozen."}
	}
	switch asks := t.Asks[e.Slot.Chain]; {
	case asks && e.Watched:
		return []string{"Nothing final yet."}
	case asks:
		return []string{"Nothing yet: no [[chain]] named an rpc for it when the payment was made. One does now, and canopy reconcile asks it."}
	case e.Watched:
		return []string{"Nothing final, and it cannot be asked now: no [[chain]] names an rpc for it. One did when the payment was made."}
	}
	return []string{"It is not asked: no [[chain]] names an rpc for it."}
}

// finality tells how long it takes, where that is known.
func finality(e ledger.Entry) string {
	if e.Slot.Chain == payment.Base {
		return " On Base that takes about 20 minutes."
	}
	return ""
}

// Next tells what will happen to e, and when.
func (t *Teller) Next(e ledger.Entry) string {
	held := e.Cost.String()
	resolve := t.command(fmt.Sprintf("ledger resolve %s --unused --reason \"it never moved\"", e.ID)) + ", or --settled TX"
	again := "the same call sends the same bytes again"
	if e.Terms.IsTransfer() {
		again = "the same canopy pay submits the same bytes again"
	}
	switch e.State {
	case ledger.PendingApproval:
		return "A person rules on it: canopy approvals show " + string(e.ApprovalID)
	case ledger.Approved:
		return "The agent's same call again pays it, once."
	case ledger.Authorized:
		return fmt.Sprintf("It is on its way. If its process ended, the next payment or canopy reconcile calls it in doubt. %s stays held.", held)
	case ledger.Claimed, ledger.InDoubt:
		return t.whatEnds(e, held, again, resolve)
	case ledger.NeedsOperator:
		return held + " stays held until an operator decides: " + resolve + ". Then " + t.command(`unfreeze --all --reason "it is explained"`)
	case ledger.Settled:
		if e.Slot.Kind == payment.SlotProof {
			return fmt.Sprintf("Nothing: it ended, moved nothing, and counts as one payment of %s.", e.Spent)
		}
		return "Nothing: it is settled."
	case ledger.Cancelled:
		if e.Spent > 0 {
			return fmt.Sprintf("Nothing: it ended, and only its fee of %s counts.", e.Spent)
		}
	}
	return "Nothing: it ended without money."
}

// whatEnds tells what ends the hold of e, which is claimed or in doubt, by what is
// configured now.
func (t *Teller) whatEnds(e ledger.Entry, held, again, resolve string) string {
	dead := !t.Now().Before(e.ValidBefore)
	asks := t.Asks[e.Slot.Chain]
	stays := held + " stays held"
	if !e.Watched && dead {
		stays = held + " counts as spent"
	}
	switch {
	case e.Slot.Kind == payment.SlotProof && dead:
		return "It moved nothing and cannot be used any more: canopy reconcile ends it, as one payment of $0.00."
	case e.Slot.Kind == payment.SlotProof:
		return fmt.Sprintf("Until %s %s. Then canopy reconcile ends it, as one payment of $0.00: it moves nothing.", t.moment(e.ValidBefore), again)
	case e.Watched && !asks:
		out := fmt.Sprintf("%s stays held until the chain is asked: name an rpc for it in [[chain]] and run canopy reconcile. Or an operator says what became of it: %s", held, resolve)
		if !dead && e.State == ledger.InDoubt {
			out = fmt.Sprintf("Until %s it can still move, and %s. %s", t.moment(e.ValidBefore), again, out)
		}
		return out
	case e.State == ledger.Claimed && asks:
		return fmt.Sprintf("It counts as spent. canopy reconcile confirms it, or gives %s back, once the chain is final past %s.", held, t.moment(e.ValidBefore))
	case e.State == ledger.Claimed:
		return "It counts as spent; no chain is asked to confirm it."
	case asks && !dead:
		return fmt.Sprintf("%s. Until %s it can still move, and %s. Then canopy reconcile asks the chain.", stays, t.moment(e.ValidBefore), again)
	case asks:
		return fmt.Sprintf("%s until the chain is final past %s: then canopy reconcile settles it or gives the money back.%s", stays, t.moment(e.ValidBefore), finality(e))
	case !dead:
		return fmt.Sprintf("It can still be settled until %s; until then %s. Afterwards %s counts as spent, unless an operator knows better, and says so then: %s", t.moment(e.ValidBefore), again, held, resolve)
	}
	return fmt.Sprintf("Its bytes are dead. %s counts as spent, unless an operator knows better: %s. An equal call is a new payment from %s.", held, resolve, t.moment(e.SafeAfter()))
}

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

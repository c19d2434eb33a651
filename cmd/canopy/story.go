package main

import (
	"fmt"
	"strings"

	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// story tells one payment in plain words: what was decided and why, what was
// signed, what the seller said, what the chain said, what comes next and when.
func (a *app) story(e ledger.Entry, events []ledger.Event, ruling string) []chapter {
	return []chapter{
		{"Decided", decided(e, ruling)},
		{"Signed", signed(e)},
		{"What came back", sellerSaid(e)},
		{"What the chain says", chainSaid(e, events)},
		{"Next", []string{a.whatNext(e)}},
	}
}

type chapter struct {
	title string
	lines []string
}

func decided(e ledger.Entry, ruling string) []string {
	asked := fmt.Sprintf("On %s agent %s asked to pay %s for %s.", moment(e.CreatedAt), show(e.Agent, 100), e.Cost, show(what(e.Terms), 300))
	out := []string{asked}
	for _, r := range e.Reasons {
		out = append(out, fmt.Sprintf("%s (%s): %s.", verdictWord(r.Status), show(r.Code, 80), strings.TrimSuffix(plaintext.Words(r.Text, 2000), ".")))
	}
	if len(e.Reasons) == 0 {
		out = append(out, "The policy allowed it.")
	}
	if ruling != "" {
		out = append(out, "A person ruled on it: "+show(ruling, 400)+".")
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

func signed(e ledger.Entry) []string {
	if e.Slot.IsZero() {
		return []string{"Nothing was signed."}
	}
	out := []string{
		fmt.Sprintf("On %s the money was set aside, and signing allowed: %s of %s to %s, from %s.",
			moment(e.AuthorizedAt), amount(e.Terms), e.Terms.Asset.Chain.Name(), payees(e.Terms), e.Payer),
		fmt.Sprintf("What was signed can move money once, and not after %s.", moment(e.ValidBefore)),
	}
	if e.Slot.Kind == payment.SlotProof {
		out[1] = fmt.Sprintf("It is a proof that the account is ours, and moves nothing. It counts as one payment, until %s.", moment(e.ValidBefore))
	}
	if e.Variants > 0 {
		out = append(out, fmt.Sprintf("It was signed for a new challenge %s, for the same terms and in the same lane: one of them at most moves money.", times(e.Variants)))
	}
	if e.Realm != "" && e.Realm != e.Host {
		out = append(out, fmt.Sprintf("The seller calls itself %q. The policy went by the host that was asked, %s.", show(e.Realm, 200), show(e.Host, 200)))
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

func sellerSaid(e ledger.Entry) []string {
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
		out = append(out, fmt.Sprintf("Its words, not to be taken as advice: %s %q", show(e.Receipt.Code, 100), show(e.Receipt.Message, 400)))
	}
	if e.Note != "" {
		out = append(out, "Noted: "+show(e.Note, 400)+".")
	}
	if len(out) == 0 {
		out = []string{"Nothing that is recorded."}
	}
	if !e.OutcomeAt.IsZero() {
		out = append(out, "This outcome was recorded on "+moment(e.OutcomeAt)+".")
	}
	return out
}

// by names the transaction that a seller claims.
func by(e ledger.Entry) string {
	if e.Receipt.TxHash == "" || e.State == ledger.Settled {
		return ""
	}
	return " by " + show(e.Receipt.TxHash, 100)
}

func chainSaid(e ledger.Entry, events []ledger.Event) []string {
	if e.Slot.IsZero() {
		return []string{"There is nothing to ask it."}
	}
	last := events[len(events)-1]
	when := "On " + moment(last.At)
	who := ""
	switch {
	case last.By == ledger.ByOperator:
		who = " That is assumed: an operator's word, not the chain's."
	case e.Assumed:
		who = " That is assumed: one node's word, and no second one was asked."
	}
	switch e.State {
	case ledger.Settled:
		out := fmt.Sprintf("%s: the transfer %s is there and final.", when, show(e.Receipt.TxHash, 100))
		if !e.SpentAt.IsZero() {
			out += " It moved on " + moment(e.SpentAt) + "."
		}
		if e.Spent != e.Cost {
			out += fmt.Sprintf(" With the fee it cost %s, of the %s that were set aside.", e.Spent, e.Cost)
		}
		return []string{out + who}
	case ledger.ExpiredUnused:
		return []string{when + ": what was signed was never used, and can never be used any more. The money is free again." + who}
	case ledger.Cancelled:
		if e.Slot.Kind == payment.SlotLane {
			return []string{fmt.Sprintf("%s: the transaction %s is there and failed. It moved nothing, and its fee of %s was spent.", when, show(e.Receipt.TxHash, 100), e.Spent) + who}
		}
		return []string{when + ": our authorization was used up by a cancellation. The money is free again." + who}
	case ledger.NeedsOperator:
		return []string{when + ": our authorization was used, and moved something else than was agreed. Every agent was frozen."}
	}
	if e.Slot.Kind == payment.SlotProof {
		return []string{"There is nothing to ask it: a proof is on no chain."}
	}
	if e.Watched {
		return []string{"Nothing final yet."}
	}
	return []string{"It was not asked: no [[chain]] named an rpc for it when the payment was made."}
}

// finality tells how long it takes, where that is known.
func finality(e ledger.Entry) string {
	if e.Slot.Chain == payment.Base {
		return " On Base that takes about 20 minutes."
	}
	return ""
}

// whatNext tells what will happen to e, and when.
func (a *app) whatNext(e ledger.Entry) string {
	held := e.Cost.String()
	resolve := a.command(fmt.Sprintf("ledger resolve %s --unused --reason \"it never moved\"", e.ID)) + ", or --settled TX"
	dead := !a.now().Before(e.ValidBefore)
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
	case ledger.Claimed:
		if e.Watched {
			return fmt.Sprintf("It counts as spent. canopy reconcile confirms it, or gives %s back, once the chain is final past %s.", held, moment(e.ValidBefore))
		}
		return "It counts as spent; no chain is asked to confirm it."
	case ledger.InDoubt:
		switch {
		case e.Watched && !dead:
			return fmt.Sprintf("%s stays held. Until %s it can still move, and %s. Then canopy reconcile asks the chain.", held, moment(e.ValidBefore), again)
		case e.Watched:
			return fmt.Sprintf("%s stays held until the chain is final past %s: then canopy reconcile settles it or gives the money back.%s", held, moment(e.ValidBefore), finality(e))
		case !dead:
			return fmt.Sprintf("It can still be settled until %s; until then %s. Afterwards %s counts as spent, unless an operator knows better, and says so then: %s", moment(e.ValidBefore), again, held, resolve)
		}
		return fmt.Sprintf("Its bytes are dead. %s counts as spent, unless an operator knows better: %s. An equal call is a new payment from %s.", held, resolve, moment(e.SafeAfter()))
	case ledger.NeedsOperator:
		return held + " stays held until an operator decides: " + resolve + ". Then " + a.command(`unfreeze --all --reason "it is explained"`)
	case ledger.Settled:
		return "Nothing: it is settled."
	case ledger.Cancelled:
		if e.Spent > 0 {
			return fmt.Sprintf("Nothing: it ended, and only its fee of %s counts.", e.Spent)
		}
	}
	return "Nothing: it ended without money."
}

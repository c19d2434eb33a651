package policy

import (
	"fmt"

	"github.com/canopy-go/canopy/payment"
)

// habits looks at who is asked, when, and whether anything blocks.
func (l *linter) habits(t *table) {
	warn := func(level Level, code string, line int, text string) {
		l.add(Finding{Level: level, Code: code, Table: t.name, Line: line, Text: text})
	}
	if t.shadow {
		bound := "and [org] has no cap in dollars: NOTHING bounds what is spent"
		if worst, by, ok := perDay(l.p.caps, payment.MaxUSD); ok {
			bound = fmt.Sprintf("only [org] bounds what is spent, at %v in a day, by %s", worst, quoteCap(by))
		}
		warn(Warning, "in_shadow", t.parsed.mode.line, `mode = "shadow": nothing of this table is enforced, no cap and no approval; `+bound)
	}
	if t.chat && len(t.approvers) > 0 {
		warn(Warning, "chat_ignored", t.parsed.chat.line, "chat_approval has no effect: approvers are named, and only they rule")
	}
	if len(t.approvers) > 0 && !t.everAsks() {
		warn(Warning, "nobody_asked", t.parsed.approversLine, "approvers are named, and nothing of this table asks: see approve_above")
	}
	for i, c := range t.parsed.totals {
		total := t.totals[i]
		for _, k := range append(t.caps[:len(t.caps):len(t.caps)], l.p.caps...) {
			if k.Counting == total.Counting && wider(k, total) && (total.Counting && k.Count <= total.Count || !total.Counting && k.USD <= total.USD) {
				warn(Warning, "never_asks", c.line, fmt.Sprintf("approve_above_total %s never asks: the cap %s denies such a payment first", quoteCap(total), quoteCap(k)))
				break
			}
		}
	}
}

// everAsks reports whether a payment by t can wait for a person: a Rule may ask
// too.
func (t *table) everAsks() bool {
	return t.asks || len(t.totals) > 0 || t.jumpSet || t.payee.text == askNew || len(t.rules) > 0
}

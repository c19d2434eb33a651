package main

import (
	"context"
	"net/url"
	"strings"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/policy"
)

// hint says what a person can do about a denial.
func (a *app) hint(reasons []canopy.Reason, rawURL string) {
	name := config.Find(a.config)
	said := map[string]bool{}
	for _, r := range reasons {
		if said[r.Code] || r.Shadow {
			continue
		}
		said[r.Code] = true
		switch r.Code {
		case policy.CodeNotAllowed:
			if u, err := url.Parse(rawURL); err == nil && u.Host != "" {
				a.note("To allow it, add \"host:%s\" to allow in %s.", show(u.Host, 300), name)
			}
		case policy.CodeSplitNotAllowed:
			host := "feed.example"
			if u, err := url.Parse(rawURL); err == nil && u.Host != "" {
				host = show(u.Host, 300)
			}
			a.note("Each further recipient needs an entry of its own in allow in %s, \"address:0x…\", or splits:any in the host's: \"host:%s splits:any\".", name, host)
		case policy.CodeChainNotAllowed:
			a.note("allow in %s names the chains that may be paid on, as \"chain:…\".", name)
		case policy.CodeTokenNotAllowed:
			a.note("allow in %s names the tokens that may be paid with, as \"asset:…\".", name)
		case policy.CodeMaxPayment:
			a.note("The limit is max_payment in %s.", name)
		case policy.CodeOutsideHours:
			a.note("hours in %s says when it pays; it opens again at %s.", name, moment(r.Until))
		case policy.CodeNewPayee:
			a.note("new_payee in %s denies who was never paid there: with \"approve\" a person is asked.", name)
		case policy.CodeCapExceeded, policy.CodeCountExceeded:
			a.note("See canopy budget for when there is room again.")
		case policy.CodeFrozen:
			a.frozenHint()
		case ledger.CodePolicyNotPinned:
			a.note("%s was changed since it was pinned. Look at what changed (canopy policy versions --document), then run canopy policy pin.", name)
		case "no_signer":
			a.note("Name a key in [treasury] of %s: canopy init makes one.", name)
		}
	}
}

// freezes are those of the ledger that was opened, as far as it tells.
func (a *app) freezes() map[string]string {
	if a.freezer == nil {
		return nil
	}
	all, _ := a.freezer.Freezes(context.Background())
	return all
}

// everybodyFrozen tells why everybody on the ledger is frozen.
func (a *app) everybodyFrozen() (why string, frozen bool) {
	why, frozen = a.freezes()[""]
	return why, frozen
}

// frozenHint says how to look at a freeze, and what ends it.
func (a *app) frozenHint() {
	all := a.freezes()
	if _, everybody := all[""]; everybody {
		a.note("Everybody on this ledger is frozen. Look first: %s tells of uses of the key that this ledger never signed, and of payments that need an operator. "+
			"Once it is explained, %s lets everybody pay again.", a.command("reconcile"), a.command("unfreeze --all --reason TEXT"))
	}
	if _, alone := all[a.agentName()]; alone {
		a.note("Agent %s is frozen by itself: look why first. %s lets it pay again.", show(a.agentName(), 100), a.command("unfreeze --agent "+shellWord(a.agentName())+" --reason TEXT"))
	}
}

// transferHint is hint for a direct transfer, which only its payee's address lets
// go.
func (a *app) transferHint(reasons []canopy.Reason, t canopy.Transfer) {
	for _, r := range reasons {
		if r.Code == policy.CodeNotAllowed {
			a.note("To allow it, add \"address:%s\" to allow in %s.", t.To, config.Find(a.config))
			break
		}
	}
	a.hint(reasons, "")
}

// command is a command of this program as it can be typed, on the same
// configuration.
func (a *app) command(words string) string {
	if a.config == "" {
		return "canopy " + words
	}
	return "canopy --config " + shellWord(a.config) + " " + words
}

// shellWord is s as one word of a shell.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// document is the configuration that init writes.
type document struct {
	Keystore, PasswordEnv, KeyEnv string
	Org                           string
	Allow, Caps, AllowPrivate     []string
	MaxPayment, ApproveAbove      string
}

// text is the document as TOML, with what a person wants to know beside it.
func (d document) text() []byte {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# What this agent may spend, and how. Strict: canopy config check reads it.")
	line("# Secrets do not stand here: this file names where they are.")
	line("")
	line("[treasury]")
	if d.KeyEnv != "" {
		line("key_env = %s", quote(d.KeyEnv))
	} else {
		line("keystore = %s", quote(d.Keystore))
		line("password_env = %s    # or password_cmd = [\"pass\", \"show\", \"canopy\"]", quote(d.PasswordEnv))
	}
	line("")
	line("[ledger]")
	line("path = \"canopy.db\"")
	if d.Org != "" {
		line("")
		line("[org]")
		line("name = %s", quote(d.Org))
	}
	line("")
	line("[policy.default]")
	line("max_payment = %s    # one payment costs at most this", quote(d.MaxPayment))
	line("caps = %s    # all payments together, in a window", quotes(d.Caps))
	if d.ApproveAbove != "" {
		line("approve_above = %s    # strictly above, a person is asked", quote(d.ApproveAbove))
	}
	line("# Who may be paid; nobody else is. Such as \"host:feed.example\", \"host:*.feed.example\".")
	line("allow = %s", quotes(d.Allow))
	if len(d.AllowPrivate) > 0 {
		line("")
		line("[network]")
		line("allow_private = %s    # private addresses that may be dialled", quotes(d.AllowPrivate))
	}
	b.WriteString(rails)
	if len(d.AllowPrivate) == 0 {
		b.WriteString(private)
	}
	return []byte(b.String())
}

// rails are parts that both rails work without, for a person to fill in.
const rails = `
# Base (x402) and Tempo (MPP) are paid on as this file stands. With nodes to ask,
# two of different people, balances take part in choosing and holds end by the
# chain's word. The URLs are examples; rpc_env names variables with secret ones.
# [[chain]]
# id = "base"    # or "base-sepolia", to try
# rpc = ["https://rpc.example", "https://rpc.example.org"]
# facilitator = "https://facilitator.example"    # submits canopy pay without gas
#
# [[chain]]
# id = "tempo"    # or "tempo-testnet", to try
# rpc = ["https://tempo.example", "https://tempo.example.org"]    # also for canopy pay --chain tempo
#
# [mpp]    # on Tempo a fee costs at most gas times gas_price, beside the amount
# gas = 1200000
# gas_price = "25 gwei"
# lanes = 64    # payments in flight at once
`

const private = `#
# [network]
# allow_private = ["127.0.0.0/8"]    # loopback and private addresses that may be dialled; none is now
`

// quote is s as a TOML string; JSON's escapes are TOML's.
func quote(s string) string {
	b, _ := json.Marshal(s) // a string: it cannot fail
	return string(b)
}

func quotes(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = quote(s)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

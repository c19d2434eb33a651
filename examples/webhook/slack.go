package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/canopy-go/canopy/approvals"
)

// slackMessage is m as blocks for Slack's chat.postMessage: what is asked, of
// whom, why, and two buttons. Text of the seller and of the agent is put in as
// plain text, which Slack renders as it is: no links, no mentions.
func slackMessage(m approvals.Message) ([]byte, error) {
	d := m.Data
	plain := func(s string) map[string]any { return map[string]any{"type": "plain_text", "text": s, "emoji": false} }
	section := func(s string) map[string]any { return map[string]any{"type": "section", "text": plain(s)} }
	if d.Status != "pending" {
		return json.Marshal(map[string]any{"text": "Payment " + d.Status, "blocks": []any{section(fmt.Sprintf("%s by %s", d.Status, d.DecidedBy))}})
	}
	what := "transfer"
	if d.URL != "" {
		what = d.Method + " " + d.URL
	}
	var to []string
	for _, r := range d.Recipients {
		to = append(to, fmt.Sprintf("%s to %s", r.AmountUSD, r.Address))
	}
	button := func(text, style, verb string) map[string]any {
		value, _ := json.Marshal(click{d.ApprovalID, d.TermsHash, verb == "approve"})
		return map[string]any{"type": "button", "text": plain(text), "style": style, "action_id": verb, "value": string(value)}
	}
	blocks := []any{
		map[string]any{"type": "header", "text": plain(fmt.Sprintf("%s wants to pay %s", d.Agent, d.CostUSD))},
		section(what + "\n" + strings.Join(to, "\n") + "\non " + string(d.Chain)),
		section(d.Reason),
	}
	if d.Purpose != "" {
		blocks = append(blocks, section("The agent says: "+d.Purpose))
	}
	blocks = append(blocks, map[string]any{"type": "actions", "elements": []any{button("Approve", "primary", "approve"), button("Deny", "danger", "deny")}})
	return json.Marshal(map[string]any{"text": "A payment waits for approval", "blocks": blocks})
}

// slackSigned reports whether Slack sent body within the last five minutes: it
// signs version, time and body with the app's signing secret.
func slackSigned(secret []byte, h http.Header, body []byte, now time.Time) bool {
	stamp := h.Get("X-Slack-Request-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	return hmac.Equal([]byte(h.Get("X-Slack-Signature")), []byte(slackSignature(secret, stamp, body)))
}

func slackSignature(secret []byte, stamp string, body []byte) string {
	m := hmac.New(sha256.New, secret)
	fmt.Fprintf(m, "v0:%s:%s", stamp, body)
	return "v0=" + hex.EncodeToString(m.Sum(nil))
}

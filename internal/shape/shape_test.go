package shape_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

var (
	noon   = time.Date(2026, 5, 8, 18, 0, 0, 0, time.UTC)
	result = canopy.Result{
		Status: canopy.Allowed, State: ledger.Claimed, PaymentID: "01J9ZC3V5Y8Q2T4W6X8Z0A1B2C", ApprovalID: "appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2D",
		Amount: 10 * payment.Cent, Fee: 2 * payment.Cent, Spent: 11 * payment.Cent, TxHash: "0xab", Reason: "Amount $7.50 exceeds approval threshold of $5", ExpiresAt: noon,
		Code: "approval_threshold", Reasons: []canopy.Reason{
			{Status: payment.PendingApproval, Code: "approval_threshold", Text: "Amount $7.50 exceeds approval threshold of $5", Cost: 750 * payment.Cent, Limit: 5 * payment.Dollar},
			{Status: payment.Denied, Code: "count_exceeded", Text: "full\x1b", Rule: "9 payments / 1h", Scope: "agent:a", MaxCount: 9, Until: noon},
		},
	}
)

// What the reasons of result look like, in camel and in snake case.
const (
	camel = `,"code":"approval_threshold","reasons":[` +
		`{"status":"pending_approval","code":"approval_threshold","text":"Amount $7.50 exceeds approval threshold of $5","costUsd":7.50,"limitUsd":5.00},` +
		`{"status":"denied","code":"count_exceeded","text":"full","rule":"9 payments / 1h","scope":"agent:a","count":0,"maxCount":9,"until":"2026-05-08T18:00:00Z"}]`
	snake = `,"code":"approval_threshold","reasons":[` +
		`{"status":"pending_approval","code":"approval_threshold","text":"Amount $7.50 exceeds approval threshold of $5","cost_usd":7.50,"limit_usd":5.00},` +
		`{"status":"denied","code":"count_exceeded","text":"full","rule":"9 payments / 1h","scope":"agent:a","count":0,"max_count":9,"until":"2026-05-08T18:00:00Z"}]`

	// What it comes to.
	money      = `,"amountUsd":0.10,"feeUsd":0.02,"costUsd":0.12}`
	snakeMoney = `,"amount_usd":0.10,"fee_usd":0.02,"cost_usd":0.12}`
	fees       = `,"feeUsd":0.02,"costUsd":0.12}`
	snakeFees  = `,"fee_usd":0.02,"cost_usd":0.12}`
)

func is(t *testing.T, v any, want string) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("%T (-want +got):\n%s", v, diff)
	}
}

// The shapes that the tools' reference writes down, to the letter.
func TestReference(t *testing.T) {
	t.Parallel()
	dry := result
	dry.DryRun, dry.PaymentID, dry.ApprovalID, dry.TxHash = true, "", "", ""
	pending, denied := result, result
	pending.Status, denied.Status = canopy.PendingApproval, canopy.Denied
	is(t, shape.Pay(result), `{"status":"allowed","txHash":"0xab","transactionId":"01J9ZC3V5Y8Q2T4W6X8Z0A1B2C","costUsd":0.12,"amountUsd":0.10,"feeUsd":0.02,"spentUsd":0.11}`)
	is(t, shape.Pay(pending), `{"status":"pending_approval","approvalId":"appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2D","reason":"Amount $7.50 exceeds approval threshold of $5"`+camel+money)
	is(t, shape.Pay(denied), `{"status":"denied","reason":"Amount $7.50 exceeds approval threshold of $5"`+camel+money)
	is(t, shape.Pay(dry), `{"status":"allowed","txHash":null,"transactionId":null,"costUsd":0.12,"dryRun":true,"amountUsd":0.10,"feeUsd":0.02}`)

	a := canopy.Approval{ID: result.ApprovalID, Payment: result.PaymentID, ExpiresAt: noon, Reason: "why"}
	is(t, shape.ApprovalOf(a, ledger.Entry{State: ledger.PendingApproval}, false),
		`{"status":"pending","decidedAt":null,"expiresAt":"2026-05-08T18:00:00Z","transactionId":"01J9ZC3V5Y8Q2T4W6X8Z0A1B2C","txHash":null,"reason":"why","next":"wait"}`)
	a.Status, a.DecidedAt = ledger.ApprovalGranted, noon.Add(-time.Hour)
	is(t, shape.ApprovalOf(a, ledger.Entry{State: ledger.InDoubt, OutcomeAt: noon, DuplicateWindow: time.Millisecond}, false),
		`{"status":"approved","decidedAt":"2026-05-08T17:00:00Z","expiresAt":"2026-05-08T18:00:00Z","transactionId":"01J9ZC3V5Y8Q2T4W6X8Z0A1B2C","txHash":null,"reason":"why","next":"in_doubt","safeAfter":"2026-05-08T18:00:01Z"}`)
	is(t, shape.RulingOf(a), `{"status":"approved","approval_id":"appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2D","transaction_id":"01J9ZC3V5Y8Q2T4W6X8Z0A1B2C"}`)
	is(t, shape.Refused(errors.New("no"), "chat_approval_disabled"), `{"status":"error","error":"no","code":"chat_approval_disabled"}`)

	is(t, shape.PingOf(canopy.Pong{AgentID: "agt_x", Agent: "Trader", Status: "active", Org: "Acme", Account: payment.Address{1}, Latency: 84 * time.Millisecond}, nil, nil),
		`{"ok":true,"agent":{"id":"agt_x","name":"Trader","status":"active"},"org":{"name":"Acme","treasuryAddress":"0x0100000000000000000000000000000000000000"},"latencyMs":84,"canPay":true}`)
	is(t, shape.PingOf(canopy.Pong{}, nil, errors.New("why")),
		`{"ok":false,"agent":{"id":"","name":"","status":""},"org":{"name":null,"treasuryAddress":null},"latencyMs":0,"error":"why","canPay":false}`)
	is(t, shape.BudgetOf(canopy.Budget{}, []canopy.Reason{{Code: "frozen", Text: "why"}}),
		`{"capUsd":null,"spentUsd":0.00,"remainingUsd":null,"periodHours":null,"periodResetsAt":null,"heldUsd":0.00,"caps":[],"budgets":[],"canPay":false,"reasons":[{"status":"denied","code":"frozen","text":"why"}]}`)
	window := policy.Window{Kind: policy.Rolling, Length: 24 * time.Hour}
	use := policy.Use{
		Limit: policy.Limit{Scope: policy.Scope{Kind: policy.ScopeAgent, Agent: "a"}, Window: window, USD: 10 * payment.Dollar, Text: "$10 / 24h"},
		USD:   570 * payment.Cent, Held: payment.Dollar, Count: 2, ResetsAt: noon.Add(time.Nanosecond),
	}
	is(t, shape.BudgetOf(canopy.Budget{
		HasCap: true, Cap: 10 * payment.Dollar, Spent: 570 * payment.Cent, Held: payment.Dollar, Remaining: 430 * payment.Cent,
		Window: window, Period: 24 * time.Hour, ResetsAt: noon, Caps: []policy.Use{use},
	}, nil), `{"capUsd":10.00,"spentUsd":5.70,"remainingUsd":4.30,"periodHours":24,"periodResetsAt":"2026-05-08T18:00:00Z","heldUsd":1.00,`+
		`"caps":[{"cap":"$10 / 24h","scope":"agent","capUsd":10.00,"spentUsd":5.70,"heldUsd":1.00,"remainingUsd":4.30,"maxCount":null,"count":2,"periodHours":24,"resetsAt":"2026-05-08T18:00:01Z"}],"budgets":[],"canPay":true}`)
}

func TestFetchErrors(t *testing.T) {
	t.Parallel()
	pending, rejected, lapsed, denied := result, result, result, result
	pending.Status, pending.Amount, pending.Reason = canopy.PendingApproval, 750*payment.Cent, "Amount $7.50 exceeds approval threshold of $5"
	rejected.State, lapsed.State, denied.State = ledger.Rejected, ledger.ApprovalExpired, ledger.Denied
	rejected.Reason, lapsed.Reason, denied.Reason = "A person denied it", "Nobody approved it in time", "no"
	fresh := denied
	fresh.PaymentID = ""
	call := shape.FetchCall{Host: "feed.example"}
	for _, tt := range []struct {
		err  error
		call shape.FetchCall
		want string
	}{
		{&canopy.PendingError{Result: pending}, shape.FetchCall{Host: "feed.example", Chat: true}, `{"status":"pending_approval","approval_id":"appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2D","transaction_id":"01J9ZC3V5Y8Q2T4W6X8Z0A1B2C","recipient_name":"feed.example","amount_usd":7.50,"expires_at":"2026-05-08T18:00:00Z","chat_approval_enabled":true,"message":"Payment requires approval. Once the user confirms, call canopy_approve with this approval_id, then re-call canopy_fetch with the same URL."` + snake + `,"fee_usd":0.02,"cost_usd":7.52}`},
		{&canopy.PendingError{Result: pending}, call, `{"status":"pending_approval","approval_id":"appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2D","transaction_id":"01J9ZC3V5Y8Q2T4W6X8Z0A1B2C","recipient_name":"feed.example","amount_usd":7.50,"expires_at":"2026-05-08T18:00:00Z","chat_approval_enabled":false,"message":"Payment requires approval: Amount $7.50 exceeds approval threshold of $5. A person approves it with: canopy approvals approve appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2D. After that, the same fetch again pays."` + snake + `,"fee_usd":0.02,"cost_usd":7.52}`},
		{&canopy.PendingError{Result: pending}, shape.FetchCall{Waited: true}, `{"status":"approval_timeout","approval_id":"appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2D","reason":"Nobody has decided yet: the approval stays pending. Amount $7.50 exceeds approval threshold of $5"` + snake + `,"amount_usd":7.50,"fee_usd":0.02,"cost_usd":7.52}`},
		{&canopy.DeniedError{Result: rejected}, call, `{"status":"denied","approval_id":"appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2D","reason":"A person denied it"` + snake + snakeMoney},
		{&canopy.DeniedError{Result: lapsed}, call, `{"status":"expired","approval_id":"appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2D","reason":"Nobody approved it in time"` + snake + snakeMoney},
		{&canopy.DeniedError{Result: denied}, call, `{"status":"denied","reason":"no","transaction_id":"01J9ZC3V5Y8Q2T4W6X8Z0A1B2C"` + snake + snakeMoney},
		{&canopy.DeniedError{Result: fresh, Err: errors.New("why\x1b[1m not")}, call, `{"status":"denied","reason":"no: why[1m not","transaction_id":null` + snake + snakeMoney},
		{&canopy.InDoubtError{Result: result, Phase: canopy.SentUnknown, SafeAfter: noon}, call, `{"status":"error","error":"canopy: payment 01J9ZC3V5Y8Q2T4W6X8Z0A1B2C of $0.12 ($0.10 and a fee of at most $0.02) is in doubt (sent_unknown)","code":"in_doubt","transaction_id":"01J9ZC3V5Y8Q2T4W6X8Z0A1B2C","amount_usd":0.10,"safe_after":"2026-05-08T18:00:00Z"` + snakeFees},
		{fmt.Errorf("wrapped: %w", &canopy.PaidError{Result: result, SafeAfter: noon}), call, `{"status":"error","error":"wrapped: canopy: payment 01J9ZC3V5Y8Q2T4W6X8Z0A1B2C of $0.12 ($0.10 and a fee of at most $0.02) was made and not delivered","code":"paid_not_delivered","transaction_id":"01J9ZC3V5Y8Q2T4W6X8Z0A1B2C","amount_usd":0.10,"safe_after":"2026-05-08T18:00:00Z"` + snakeFees},
		{&canopy.PaidError{Result: result, SafeAfter: noon, Delivered: true}, call, `{"status":"error","error":"canopy: payment 01J9ZC3V5Y8Q2T4W6X8Z0A1B2C of $0.12 ($0.10 and a fee of at most $0.02) was made and delivered before","code":"already_delivered","transaction_id":"01J9ZC3V5Y8Q2T4W6X8Z0A1B2C","amount_usd":0.10,"safe_after":"2026-05-08T18:00:00Z"` + snakeFees},
		{&canopy.InFlightError{Result: result}, call, `{"status":"error","error":"canopy: payment 01J9ZC3V5Y8Q2T4W6X8Z0A1B2C with the same key is in flight","code":"in_flight","transaction_id":"01J9ZC3V5Y8Q2T4W6X8Z0A1B2C"` + snakeMoney},
		{errors.New("no route to host"), call, `{"status":"error","error":"no route to host"}`},
	} {
		is(t, shape.FetchError(tt.err, tt.call), tt.want)
	}
	is(t, shape.Error(&canopy.InDoubtError{Result: result, Phase: canopy.SentUnknown, SafeAfter: noon}),
		`{"status":"error","error":"canopy: payment 01J9ZC3V5Y8Q2T4W6X8Z0A1B2C of $0.12 ($0.10 and a fee of at most $0.02) is in doubt (sent_unknown)","code":"in_doubt","transactionId":"01J9ZC3V5Y8Q2T4W6X8Z0A1B2C","amountUsd":0.10,"safeAfter":"2026-05-08T18:00:00Z"`+fees)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	is(t, shape.CheckOf(canopy.Check{Status: canopy.Allowed}),
		`{"status":"allowed","rail":null,"chainId":null,"amountUsd":0.00,"recipient":null,"resourceUrl":null,"scheme":null,"network":null,"realm":null,"cached":false,"feeUsd":0.00,"costUsd":0.00,"recipients":[],"others":[]}`)
	is(t, shape.CheckOf(canopy.Check{Reason: "none of the seller's offers can be paid"}),
		`{"status":"denied","rail":null,"chainId":null,"amountUsd":null,"recipient":null,"resourceUrl":null,"scheme":null,"network":null,"realm":null,"cached":false,"reason":"none of the seller's offers can be paid","feeUsd":null,"costUsd":null,"recipients":[],"others":[]}`)
	is(t, shape.CheckOf(canopy.Check{Status: canopy.PendingApproval, Reason: "why", Code: result.Code, Reasons: result.Reasons}),
		`{"status":"pending_approval","rail":null,"chainId":null,"amountUsd":null,"recipient":null,"resourceUrl":null,"scheme":null,"network":null,"realm":null,"cached":false,"reason":"why"`+camel+`,"feeUsd":null,"costUsd":null,"recipients":[],"others":[]}`)
	is(t, shape.CheckOf(canopy.Check{
		Status: canopy.Allowed, Rail: "x402", Scheme: "exact", Chain: payment.Base, Network: "eip155:8453", Amount: 10 * payment.Cent,
		Fee: 3 * payment.Cent, Recipient: payment.Address{1}, ResourceURL: "https://feed.example/depth/btc-usd", Cached: true,
		Recipients: []canopy.Payee{{Address: payment.Address{1}, Amount: 9 * payment.Cent}, {Address: payment.Address{2}, Amount: payment.Cent}},
		Others:     []canopy.Alternative{{Rail: "mpp", Chain: payment.Tempo, Amount: payment.Dollar, Fee: payment.Cent, Reason: "it costs\nmore", Asset: payment.Asset{Symbol: "USDC", Address: payment.Address{3}}, Recipients: []canopy.Payee{{Address: payment.Address{4}, Amount: payment.Dollar}}}, {Rail: "x402", Chain: payment.Base, Amount: payment.MaxUSD}},
	}), `{"status":"allowed","rail":"x402","chainId":8453,"amountUsd":0.10,"recipient":{"address":"0x0100000000000000000000000000000000000000","slug":null,"name":null},"resourceUrl":"https://feed.example/depth/btc-usd","scheme":"exact","network":"base","realm":null,"cached":true,"feeUsd":0.03,"costUsd":0.13,`+
		`"recipients":[{"address":"0x0100000000000000000000000000000000000000","amountUsd":0.09},{"address":"0x0200000000000000000000000000000000000000","amountUsd":0.01}],`+
		`"others":[{"rail":"mpp","chainId":4217,"network":"tempo","amountUsd":1.00,"feeUsd":0.01,"costUsd":1.01,"status":"denied","reason":"it costs more","token":"0x0300000000000000000000000000000000000000","symbol":"USDC","recipients":[{"address":"0x0400000000000000000000000000000000000000","amountUsd":1.00}]},`+
		`{"rail":"x402","chainId":8453,"network":"base","amountUsd":null,"feeUsd":0.00,"costUsd":null,"status":"denied","reason":"","token":"0x0000000000000000000000000000000000000000","symbol":"","recipients":[]}]}`)
}

func TestBody(t *testing.T) {
	t.Parallel()
	const most = shape.MaxBody
	rep := strings.Repeat
	for name, tt := range map[string]struct {
		contentType, body string
		unknown           bool // the length is not stated
		encoding          string
		truncated         bool
		length            int // of the body that is given on, as text; -1 for null
		stated            int // content_length; -1 for null
	}{
		"json":               {"application/json", "{}", false, "text", false, 2, 2},
		"json suffix":        {"application/problem+json; charset=utf-8", "{}", false, "text", false, 2, 2},
		"graphql":            {"application/graphql-response+json", "{}", false, "text", false, 2, 2},
		"graphql itself":     {"application/graphql", "{}", false, "text", false, 2, 2},
		"yaml":               {"application/x-yaml", "a: 1", false, "text", false, 4, 4},
		"form":               {"application/x-www-form-urlencoded", "a=1", false, "text", false, 3, 3},
		"script":             {"application/javascript", "1", false, "text", false, 1, 1},
		"xml":                {"application/xml", "<a/>", false, "text", false, 4, 4},
		"svg":                {"image/svg+xml", "<svg/>", false, "text", false, 6, 6},
		"text, odd type":     {"Text/Plain; charset", "hi", false, "text", false, 2, 2},
		"no type":            {"", "hi", false, "text", false, 2, 2},
		"no type, zero":      {"", "h\x00i", false, "base64", false, 4, 3},
		"empty":              {"text/plain", "", false, "text", false, 0, 0},
		"image":              {"image/png", "abc", false, "base64", false, 4, 3},
		"pdf":                {"application/pdf", "abc", false, "base64", false, 4, 3},
		"text that is not":   {"text/plain; charset=latin1", "caf\xe9", false, "base64", false, 8, 4},
		"text at the edge":   {"text/plain", rep("a", most), false, "text", false, most, most},
		"text above":         {"text/plain", rep("a", most+1), false, "text", true, most, most + 1},
		"text far above":     {"text/plain", rep("a", 3*most), true, "text", true, most, -1},
		"cut in a character": {"text/plain", rep("a", most-1) + "é", false, "text", true, most - 1, most + 1},
		"cut in four bytes":  {"text/plain", rep("a", most-3) + "🙂", false, "text", true, most - 3, most + 1},
		"character at edge":  {"text/plain", rep("a", most-2) + "éx", false, "text", true, most, most + 1},
		"binary at the edge": {"image/png", rep("\xff", most), false, "base64", false, (most + 2) / 3 * 4, most},
		"binary above":       {"image/png", rep("\xff", most+1), false, "omitted", true, -1, most + 1},
		"binary, chunked":    {"image/png", rep("\xff", most+1), true, "omitted", true, -1, -1},
		"bad text above":     {"text/plain", rep("\xff", most+1), false, "omitted", true, -1, most + 1},
		"unfinished at end":  {"text/plain", "a\xc3", false, "base64", false, 4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := &http.Response{
				StatusCode: 200, Header: http.Header{"X-A": {"1", "2"}}, Body: io.NopCloser(strings.NewReader(tt.body)), ContentLength: int64(len(tt.body)),
			}
			if tt.contentType != "" {
				resp.Header.Set("Content-Type", tt.contentType)
			}
			if tt.unknown {
				resp.ContentLength = -1
			}
			got, err := shape.FetchResponse(resp)
			if err != nil {
				t.Fatal(err)
			}
			length, stated := -1, -1
			if got.Body != nil {
				length = len(*got.Body)
			}
			if got.ContentLength != nil {
				stated = int(*got.ContentLength)
			}
			if got.BodyEncoding != tt.encoding || got.Truncated != tt.truncated || length != tt.length || stated != tt.stated {
				t.Errorf("%s, truncated %v, %d bytes of %d; want %s, %v, %d of %d", got.BodyEncoding, got.Truncated, length, stated, tt.encoding, tt.truncated, tt.length, tt.stated)
			}
			if got.Headers["x-a"] != "1, 2" {
				t.Errorf("headers %v", got.Headers)
			}
			if b, err := json.Marshal(got); err != nil || strings.Contains(string(b), `\ufffd`) {
				t.Errorf("not clean JSON: %v", err)
			}
		})
	}
}

func TestBodyBreaksOff(t *testing.T) {
	t.Parallel()
	resp := &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}}, ContentLength: 100,
		Body: io.NopCloser(io.MultiReader(strings.NewReader("half"), broken{})),
	}
	got, err := shape.FetchResponse(resp)
	if !errors.Is(err, io.ErrUnexpectedEOF) || got.Body == nil || *got.Body != "half" || !got.Truncated {
		t.Errorf("%+v, %v", got, err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestNext(t *testing.T) {
	t.Parallel()
	fetch := payment.Terms{Method: "GET"}
	for _, tt := range []struct {
		status  ledger.ApprovalStatus
		e       ledger.Entry
		blocked bool
		want    string
	}{
		{ledger.ApprovalPending, ledger.Entry{}, false, shape.NextWait},
		{ledger.ApprovalRefused, ledger.Entry{}, false, shape.NextNone},
		{ledger.ApprovalLapsed, ledger.Entry{}, false, shape.NextNone},
		{ledger.ApprovalGranted, ledger.Entry{State: ledger.Approved, Terms: fetch}, false, shape.NextFetch},
		{ledger.ApprovalGranted, ledger.Entry{State: ledger.Approved}, false, shape.NextPay},
		{ledger.ApprovalGranted, ledger.Entry{State: ledger.Approved, Terms: fetch}, true, shape.NextRetryLater},
		{ledger.ApprovalGranted, ledger.Entry{State: ledger.Authorized}, false, shape.NextWait},
		{ledger.ApprovalGranted, ledger.Entry{State: ledger.Claimed}, false, shape.NextPaid},
		{ledger.ApprovalGranted, ledger.Entry{State: ledger.Settled}, true, shape.NextPaid},
		{ledger.ApprovalGranted, ledger.Entry{State: ledger.InDoubt}, false, shape.NextInDoubt},
		{ledger.ApprovalGranted, ledger.Entry{State: ledger.NeedsOperator}, false, shape.NextInDoubt},
		{ledger.ApprovalGranted, ledger.Entry{State: ledger.ExpiredUnused}, false, shape.NextNone},
	} {
		if got := shape.Next(ledger.Approval{Status: tt.status}, tt.e, tt.blocked); got != tt.want {
			t.Errorf("%v, %v: %s, want %s", tt.status, tt.e.State, got, tt.want)
		}
	}
}

func TestHours(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		24 * time.Hour: "24", 100 * time.Hour: "100", 15 * time.Minute: "0.25", 90 * time.Minute: "1.5", time.Minute: "0.0166", 7 * 24 * time.Hour: "168", 20 * time.Hour: "20",
	} {
		is(t, shape.Hours(d), want)
	}
}

package x402_test

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/payment"
)

const tx = "0x12ab000000000000000000000000000000000000000000000000000000000034"

// ok is a receipt of success that names everything.
const ok = `{"success":true,"transaction":"` + tx + `","network":"eip155:84532","payer":"0x2c7536E3605D9C16a7a3D7b1898e529396a65c23","amount":"1000"}`

// The decision table of the notes (1.5, corrected by A).
func TestReceipts(t *testing.T) {
	t.Parallel()
	const (
		header   = "PAYMENT-RESPONSE"
		required = "PAYMENT-REQUIRED"
	)
	failed := func(reason, tx string) string {
		return `{"success":false,"errorReason":"` + reason + `","transaction":"` + tx + `","network":"eip155:84532"}`
	}
	refused := func(reason string) string { return edit(t, v2(R), `"resource"`, `"error":"`+reason+`","resource"`) }
	for _, tc := range []struct {
		name    string
		status  int
		headers []string
		body    string
		claim   payment.Claim
		code    string
		tx      string
	}{
		{"paid", 200, []string{header, b64(ok)}, "", payment.ClaimPaid, "", tx},
		{"paid and not delivered: upfront, the handler failed", 500, []string{header, b64(ok)}, "", payment.ClaimPaid, "", tx},
		{"paid and refused", 403, []string{header, b64(ok)}, "", payment.ClaimPaid, "", tx},
		{"paid, on a 402", 402, []string{header, b64(ok)}, "{}", payment.ClaimPaid, "", tx},
		{"case 15: raw JSON", 200, []string{header, ok}, "", payment.ClaimPaid, "", tx},
		{"case 17: unpadded base64url", 200, []string{header, base64.RawURLEncoding.EncodeToString([]byte(ok + " "))}, "", payment.ClaimPaid, "", tx},
		{"case 19: unknown keys", 200, []string{header, b64(edit(t, ok, `{`, `{"requirements":{"a":1},"extensions":{},"extra":null,`))}, "", payment.ClaimPaid, "", tx},
		{"payer in lower case", 200, []string{header, b64(edit(t, ok, "0x2c7536E3605D9C16a7a3D7b1898e529396a65c23", "0x2c7536e3605d9c16a7a3d7b1898e529396a65c23"))}, "", payment.ClaimPaid, "", tx},
		{"network as version 1 names it", 200, []string{header, b64(edit(t, ok, "eip155:84532", "base-sepolia"))}, "", payment.ClaimPaid, "", tx},
		{"the header of version 1", 200, []string{"X-PAYMENT-RESPONSE", b64(ok)}, "", payment.ClaimPaid, "", tx},
		{"both headers: that of the version counts", 200, []string{header, b64(ok), "X-PAYMENT-RESPONSE", "%"}, "", payment.ClaimPaid, "", tx},
		{"names nothing but the transaction", 200, []string{header, b64(`{"success":true,"transaction":"` + tx + `"}`)}, "", payment.ClaimPaid, "", tx},
		{"names empty", 200, []string{header, b64(`{"success":true,"transaction":"` + tx + `","network":"","payer":"","amount":"","errorReason":""}`)}, "", payment.ClaimPaid, "", tx},
		{"transaction in upper case", 200, []string{header, b64(edit(t, ok, "0x12ab", "0x12AB"))}, "", payment.ClaimPaid, "", tx},

		{"attack 43: another network", 200, []string{header, b64(edit(t, ok, "84532", "8453"))}, "", payment.ClaimNone, "receipt_of_another_network", ""},
		{"attack 43: a network that is none", 200, []string{header, b64(edit(t, ok, "eip155:84532", "solana"))}, "", payment.ClaimNone, "receipt_of_another_network", ""},
		{"attack 43: another payer", 200, []string{header, b64(edit(t, ok, "0x2c7536E3605D9C16a7a3D7b1898e529396a65c23", payee))}, "", payment.ClaimNone, "receipt_of_another_payer", ""},
		{"attack 43: a payer that is none", 200, []string{header, b64(edit(t, ok, "0x2c7536E3605D9C16a7a3D7b1898e529396a65c23", "me"))}, "", payment.ClaimNone, "receipt_of_another_payer", ""},
		{"attack 43: another amount", 200, []string{header, b64(edit(t, ok, `"1000"`, `"999"`))}, "", payment.ClaimNone, "receipt_of_another_amount", ""},
		{"attack 43: an amount that is none", 200, []string{header, b64(edit(t, ok, `"1000"`, `1000`))}, "", payment.ClaimNone, "receipt_of_another_amount", ""},
		{"attack 42: no transaction", 200, []string{header, b64(edit(t, ok, tx, ""))}, "", payment.ClaimNone, "receipt_without_transaction", ""},
		{"attack 43: a transaction that is none", 200, []string{header, b64(edit(t, ok, tx, "0x12"))}, "", payment.ClaimNone, "receipt_without_transaction", ""},
		{"attack 43: a transaction of zeros", 200, []string{header, b64(edit(t, ok, tx, "0x"+strings.Repeat("0", 64)))}, "", payment.ClaimNone, "receipt_without_transaction", ""},
		{"success with a reason of failure", 200, []string{header, b64(edit(t, ok, `{`, `{"errorReason":"insufficient_funds",`))}, "", payment.ClaimNone, "receipt_disagrees_with_itself", tx},
		{"success that is pending", 200, []string{header, b64(edit(t, ok, `{`, `{"errorReason":"settlement_pending",`))}, "", payment.ClaimPending, "settlement_pending", tx},

		{"attack 21: two receipts", 200, []string{header, b64(ok), header, b64(ok)}, "", payment.ClaimNone, "receipt_several", ""},
		{"attack 21: keys twice", 200, []string{header, b64(edit(t, ok, `{`, `{"success":false,`))}, "", payment.ClaimNone, "receipt_unreadable", ""},
		{"attack 21: keys in two cases", 200, []string{header, b64(edit(t, ok, `{`, `{"Success":false,`))}, "", payment.ClaimNone, "receipt_unreadable", ""},
		{"not base64", 200, []string{header, "%%%"}, "", payment.ClaimNone, "receipt_unreadable", ""},
		{"not JSON", 200, []string{header, b64("paid")}, "", payment.ClaimNone, "receipt_unreadable", ""},
		{"a list", 200, []string{header, b64("[true]")}, "", payment.ClaimNone, "receipt_unreadable", ""},
		{"no success", 200, []string{header, b64(edit(t, ok, `"success":true,`, ``))}, "", payment.ClaimNone, "receipt_unreadable", ""},
		{"success as text", 200, []string{header, b64(edit(t, ok, `true`, `"true"`))}, "", payment.ClaimNone, "receipt_unreadable", ""},
		{"success as a number", 200, []string{header, b64(edit(t, ok, `true`, `1`))}, "", payment.ClaimNone, "receipt_unreadable", ""},
		{"empty", 200, []string{header, ""}, "", payment.ClaimNone, "receipt_unreadable", ""},
		{"cut", 200, []string{header, b64(ok)[:60]}, "", payment.ClaimNone, "receipt_unreadable", ""},
		{"too large", 200, []string{header, b64(edit(t, ok, `{`, `{"x":"`+strings.Repeat("x", 70<<10)+`",`))}, "", payment.ClaimNone, "receipt_unreadable", ""},

		{"no receipt", 200, nil, "", payment.ClaimNone, "", ""},
		{"no receipt, the body says so", 200, nil, ok, payment.ClaimNone, "", ""},
		{"a challenge on a 200", 200, []string{required, b64(refused("x"))}, "", payment.ClaimNone, "", ""},
		{"the handler failed before settling", 500, nil, v1(R1), payment.ClaimNone, "", ""},
		{"400, 409", 409, nil, `{"error":"conflict"}`, payment.ClaimNone, "", ""},
		{"402 of nobody", 402, nil, "please pay", payment.ClaimNone, "", ""},
		{"402 without a body", 402, nil, "", payment.ClaimNone, "", ""},

		{"case 48: settlement failed", 402, []string{header, b64(failed("invalid_exact_evm_insufficient_balance", ""))}, "{}", payment.ClaimRefused, "invalid_exact_evm_insufficient_balance", ""},
		{"case 45: facilitator unavailable", 402, []string{header, b64(failed("facilitator_unavailable", ""))}, "{}", payment.ClaimRefused, "facilitator_unavailable", ""},
		{"case 45: pending", 402, []string{header, b64(failed("settlement_pending", tx))}, "{}", payment.ClaimPending, "settlement_pending", tx},
		{"pending without a transaction", 402, []string{header, b64(failed("settlement_pending", ""))}, "{}", payment.ClaimPending, "settlement_pending", ""},
		{"mined and reverted", 402, []string{header, b64(failed("invalid_exact_evm_transaction_failed: The contract reverted", tx))}, "{}", payment.ClaimPending, "invalid_exact_evm_transaction_failed", tx},
		{"nonce used", 402, []string{header, b64(failed("invalid_exact_evm_nonce_already_used", ""))}, "{}", payment.ClaimUsed, "invalid_exact_evm_nonce_already_used", ""},
		{"nonce used, of another network", 402, []string{header, b64(edit(t, failed("invalid_exact_evm_nonce_already_used", ""), "84532", "8453"))}, "{}", payment.ClaimNone, "receipt_of_another_network", ""},
		{"failed, amount 0", 402, []string{header, b64(edit(t, failed("x_y", ""), `{`, `{"amount":"0",`))}, "{}", payment.ClaimRefused, "x_y", ""},
		{"failed without a reason", 402, []string{header, b64(`{"success":false}`)}, "{}", payment.ClaimRefused, "", ""},

		{"case 21: verification refused", 402, []string{required, b64(refused("invalid_exact_evm_signature"))}, "{}", payment.ClaimRefused, "invalid_exact_evm_signature", ""},
		{"case 21: the nonce is used", 402, []string{required, b64(refused("invalid_exact_evm_nonce_already_used"))}, "{}", payment.ClaimUsed, "invalid_exact_evm_nonce_already_used", ""},
		{"no matching requirements", 402, []string{required, b64(refused("No matching payment requirements"))}, "{}", payment.ClaimRefused, "no_matching_payment_requirements", ""},
		{"as if nothing was sent", 402, []string{required, b64(v2(R))}, "{}", payment.ClaimRefused, "", ""},
		{"412", 412, []string{required, b64(refused("permit2_allowance_required"))}, "{}", payment.ClaimRefused, "permit2_allowance_required", ""},
		{"two challenges", 402, []string{required, b64(v2(R)), required, b64(v2(R))}, "{}", payment.ClaimNone, "receipt_several", ""},
		{"a challenge that cannot be read", 402, []string{required, "%%%"}, v1(R1), payment.ClaimNone, "receipt_unreadable", ""},
		{"version 2 in the body", 402, nil, refused("invalid_payload"), payment.ClaimRefused, "invalid_payload", ""},
		{"a body that cannot be read", 402, nil, v1(R1)[:90], payment.ClaimNone, "receipt_unreadable", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := grant(t, offer(t, v2(R)))
			got, err := rail(t).Receipt(response(tc.status, tc.body, tc.headers...), g)
			if err != nil || got.Claim != tc.claim || got.Code != tc.code || got.TxHash != tc.tx {
				t.Errorf("got %+v, %v; want %v, %q, %q", got, err, tc.claim, tc.code, tc.tx)
			}
		})
	}
}

// Version 1 tells of a failure in the body alone.
func TestReceiptsOfVersion1(t *testing.T) {
	t.Parallel()
	g := grant(t, offer(t, v1(R1)))
	payer := g.Payer.Lower()
	success := edit(t, edit(t, ok, "eip155:84532", "base-sepolia"), `,"amount":"1000"`, ``)
	says := func(words, more string) string {
		return strings.Replace(edit(t, v1(R1), "X-PAYMENT header is required", words), `"accepts"`, more+`"accepts"`, 1)
	}
	for _, tc := range []struct {
		name    string
		status  int
		headers []string
		body    string
		claim   payment.Claim
		code    string
		message string
	}{
		{"paid", 200, []string{"X-PAYMENT-RESPONSE", b64(success)}, "", payment.ClaimPaid, "", ""},
		{"paid, the header of version 2", 200, []string{"PAYMENT-RESPONSE", b64(ok)}, "", payment.ClaimPaid, "", ""},
		{"another network's name", 200, []string{"X-PAYMENT-RESPONSE", b64(edit(t, success, "base-sepolia", "base"))}, "", payment.ClaimNone, "receipt_of_another_network", ""},
		{"verification refused", 402, nil, says("insufficient_funds", `"payer":"`+payer+`",`), payment.ClaimRefused, "insufficient_funds", "insufficient_funds"},
		{"verification refused another's", 402, nil, says("insufficient_funds", `"payer":"`+payee+`",`), payment.ClaimNone, "receipt_of_another_payer", "insufficient_funds"},
		{"settlement failed", 402, nil, says("Failed to settle payment: 500 Internal Server Error", ""), payment.ClaimRefused, "failed_to_settle_payment", "Failed to settle payment: 500 Internal Server Error"},
		{"as if nothing was sent", 402, nil, v1(R1), payment.ClaimRefused, "x_payment_header_is_required", "X-PAYMENT header is required"},
		{"an error that is no text", 402, nil, edit(t, v1(R1), `"X-PAYMENT header is required"`, `{"code":1}`), payment.ClaimRefused, "", ""},
		{"a 500", 500, nil, says("x", ""), payment.ClaimNone, "", ""},
	} {
		got, err := rail(t).Receipt(response(tc.status, tc.body, tc.headers...), g)
		if err != nil || got.Claim != tc.claim || got.Code != tc.code || got.Message != tc.message {
			t.Errorf("%s: got %+v, %v; want %v, %q, %q", tc.name, got, err, tc.claim, tc.code, tc.message)
		}
	}
}

// untouchable fails the test when it is read.
type untouchable struct{ t *testing.T }

func (u untouchable) Read([]byte) (int, error) { u.t.Error("the body was read"); return 0, io.EOF }
func (u untouchable) Close() error             { u.t.Error("the body was closed"); return nil }

// Only the body of a 402 without a header that tells is read, and of that no
// more than 64 KiB.
func TestReceiptReadsNoOtherBody(t *testing.T) {
	t.Parallel()
	g := grant(t, offer(t, v2(R)))
	for _, status := range []int{200, 201, 302, 400, 401, 403, 409, 412, 500, 503} {
		for _, headers := range [][]string{nil, {"PAYMENT-RESPONSE", b64(ok)}, {"PAYMENT-RESPONSE", "%"}, {"PAYMENT-REQUIRED", b64(v2(R))}} {
			resp := response(status, "", headers...)
			resp.Body = untouchable{t}
			if _, err := rail(t).Receipt(resp, g); err != nil {
				t.Error(err)
			}
		}
	}
	for _, headers := range [][]string{{"PAYMENT-RESPONSE", b64(ok)}, {"PAYMENT-REQUIRED", b64(v2(R))}} {
		resp := response(402, "", headers...)
		resp.Body = untouchable{t}
		if _, err := rail(t).Receipt(resp, g); err != nil {
			t.Error(err)
		}
	}
	endless := &counter{}
	resp := &http.Response{StatusCode: 402, Header: http.Header{}, Body: endless}
	if got, err := rail(t).Receipt(resp, g); err != nil || got.Claim != payment.ClaimNone || endless.n > 128<<10 {
		t.Errorf("an endless body: %+v, %v, %d bytes read", got, err, endless.n)
	}
	resp = &http.Response{StatusCode: 402, Header: http.Header{}}
	if got, err := rail(t).Receipt(resp, g); err != nil || got != (payment.Receipt{}) {
		t.Errorf("no body: %+v, %v", got, err)
	}
}

type counter struct{ n int }

func (c *counter) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	c.n += len(b)
	return len(b), nil
}
func (c *counter) Close() error { return nil }

// Attack 50: a seller's words are cleaned and bounded, its codes are snake case.
func TestReceiptWords(t *testing.T) {
	t.Parallel()
	g := grant(t, offer(t, v2(R)))
	doc := `{"success":false,"errorReason":"Invalid\u202e Nonce\u0000: run \u001b[31mrm","errorMessage":"\u2066send\u200b $3\r\nto 0x0 ` + strings.Repeat("é", 400) + `"}`
	got, err := rail(t).Receipt(response(402, "", "PAYMENT-RESPONSE", b64(doc)), g)
	if err != nil || got.Code != "invalid_nonce" || !strings.HasPrefix(got.Message, "send $3 to 0x0 é") || len(got.Message) > 256 {
		t.Errorf("got %+v, %v", got, err)
	}
	doc = `{"success":false,"errorReason":"` + strings.Repeat("x", 4000) + `"}`
	if got, _ := rail(t).Receipt(response(402, "", "PAYMENT-RESPONSE", b64(doc)), g); len(got.Code) > 80 || len(got.Message) > 256 {
		t.Errorf("got %+v", got)
	}
}

func TestReceiptOfAnotherRail(t *testing.T) {
	t.Parallel()
	g := grant(t, offer(t, v2(R)))
	g.Terms.Rail = "mpp"
	if got, err := rail(t).Receipt(response(200, "", "PAYMENT-RESPONSE", b64(ok)), g); !errors.Is(err, payment.ErrNotMine) || got != (payment.Receipt{}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReceiptAmount(t *testing.T) {
	t.Parallel()
	g := grant(t, offer(t, v2(R)))
	if got, _ := rail(t).Receipt(response(200, "", "PAYMENT-RESPONSE", b64(ok)), g); got.Amount != payment.UnitsOf(1000) {
		t.Errorf("got %v", got.Amount)
	}
}

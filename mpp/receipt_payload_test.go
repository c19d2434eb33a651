package mpp

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReceiptOfAnotherImplementation(t *testing.T) {
	t.Parallel()
	value := readWire(t).Receipt
	want := receiptPayload{
		status: "success", method: "tempo", reference: "0x" + strings.Repeat("cd", 32),
		timestamp: time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC),
	}
	for _, s := range []string{value, value + strings.Repeat("=", -len(value)&3)} {
		got, err := readReceiptPayload(s)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(receiptPayload{})); err != nil || diff != "" {
			t.Errorf("readReceiptPayload: %v (-want +got):\n%s", err, diff)
		}
	}
}

func TestReadReceiptPayload(t *testing.T) {
	t.Parallel()
	const whole = `{"status":"success","method":"tempo","reference":"0xab"}`
	for _, tt := range []struct {
		name, value string
		ok, success bool
	}{
		{"whole", b64(whole), true, true},
		{"in the standard alphabet", base64.StdEncoding.EncodeToString([]byte(strings.Replace(whole, "{", `{"x":"ÿÿÿ>>>???~~~",`, 1))), true, true},
		{"unknown members", b64(strings.Replace(whole, "{", `{"spent":{"a":[1]},"units":7,`, 1)), true, true},
		{"null members", b64(strings.Replace(whole, "{", `{"externalId":null,"challengeId":null,`, 1)), true, true},
		{"a timestamp that is none", b64(strings.Replace(whole, "{", `{"timestamp":7,`, 1)), true, true},
		{"pending", b64(strings.Replace(whole, "success", "pending", 1)), true, false},
		{"success in another case", b64(strings.Replace(whole, "success", "Success", 1)), true, false},
		{"the JSON itself", whole, false, false},
		{"nothing", "", false, false},
		{"no base64", "!", false, false},
		{"null", b64("null"), false, false},
		{"a list", b64("[" + whole + "]"), false, false},
		{"no status", b64(strings.Replace(whole, "status", "state", 1)), false, false},
		{"no method", b64(strings.Replace(whole, `"tempo"`, `""`, 1)), false, false},
		{"no reference", b64(strings.Replace(whole, `"0xab"`, `null`, 1)), false, false},
		{"status true", b64(strings.Replace(whole, `"success"`, `true`, 1)), false, false},
		{"a challengeId of number", b64(strings.Replace(whole, "{", `{"challengeId":1,`, 1)), false, false},
		{"a key twice", b64(strings.Replace(whole, "{", `{"status":"failed",`, 1)), false, false},
		{"a key in two cases", b64(strings.Replace(whole, "{", `{"Reference":"0xcd",`, 1)), false, false},
		{"a line break in the reference", b64(strings.Replace(whole, "0xab", `0xab\r\n`, 1)), false, false},
		{"a long reference", b64(strings.Replace(whole, "0xab", strings.Repeat("a", 513), 1)), false, false},
		{"a long receipt", b64(strings.Replace(whole, "{", `{"x":"`+strings.Repeat("a", 16<<10)+`",`, 1)), false, false},
		{"a line break", b64(whole) + "\n", false, false},
		{"a line break within", b64(whole)[:8] + "\r\n" + b64(whole)[8:], false, false},
		{"two of them", b64(whole) + ", " + b64(whole), false, false},
	} {
		r, err := readReceiptPayload(tt.value)
		if (err == nil) != tt.ok || r.success() != tt.success || err != nil && (!errors.Is(err, errReceipt) || r != receiptPayload{}) {
			t.Errorf("%s: readReceiptPayload(%s) = %+v, %v", tt.name, tt.value, r, err)
		}
	}
}

package ledger

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// everyRecord is what events keep, each with all that it may hold.
func everyRecord() map[string][]byte {
	at := time.UnixMicro(1_772_000_000_123_456).UTC()
	hash := payment.Hash{0xab, 1, 2, 3}
	most := payment.UnitsFromBytes([32]byte{0xff, 31: 1})
	e := &Entry{
		Agent: "agent-1", ApprovalID: "apr_1", ChallengeID: "challenge", Cost: 1_000_001, Spent: -1, Fingerprint: hash,
		Gas: most, Host: "shop.example", Owner: "owner", Policy: hash, Reasons: []policy.Reason{{Code: "cap"}, {Code: "max_payment"}},
		Run: "bgt_1", Budgets: []payment.BudgetID{"bgt_1", "bgt_2"}, Path: hash, Shared: true, TermsHash: hash, ValidBefore: at, SignBefore: at, Watched: true,
		Slot:    payment.Slot{Kind: payment.SlotEVM, Chain: "eip155:1", Nonce: 7},
		Carries: []payment.Carry{{Nonce: 3, GasLimit: 21000, MaxFee: 1 << 60, MaxTip: 1, DataFee: most}},
	}
	first := record{[]byte("{")}
	first.entry(e, &Approval{Approvers: []string{"ana", "Ben_2.x"}, Quorum: 2, Chat: true, Override: true, ExpiresAt: at})
	fee := payment.USD(0)
	whole := Change{
		Assumed: true, Receipt: &payment.Receipt{TxHash: "0xab", Code: "ok"}, Fee: &fee, Delivered: true, HTTP: 200, Note: "a note",
		Sent: 2, Who: "ana", Variant: &Variant{},
	}
	carry := record{[]byte("{")}
	carry.carry(&e.Carries[0])
	return map[string][]byte{
		"first": first.done(), "carry": carry.done(), "change": whole.record(e, at), "nothing": (&Change{}).record(e, time.Time{}),
		"decision": []byte(`{"approval":"apr_1","by":"ana","comment":"why not","via":"cli"}`),
	}
}

// TestKeptPlainly: what the ledger writes is read without encoding/json.
func TestKeptPlainly(t *testing.T) {
	t.Parallel()
	for name, data := range everyRecord() {
		var d eventData
		if p := (plainData{string(data)}); !p.object(&d) {
			t.Errorf("%s: not read to its end, but for %q", name, p.rest)
		}
		same(t, data)
	}
}

// TestKeptOtherwise: what else there may be is as encoding/json has it.
func TestKeptOtherwise(t *testing.T) {
	t.Parallel()
	for _, s := range oddities {
		same(t, []byte(s))
	}
}

// oddities are near to what the ledger writes, and not that.
var oddities = []string{
	``, `{`, `}`, `{}`, ` {}`, `{} `, `{}}`, `[]`, `null`, `{"a"}`, `{,}`, `{"cost":1,}`, `{"cost":1}{}`, `{"cost":1 }`, `{"cost" :1}`,
	`{"cost":01}`, `{"cost":-0}`, `{"cost":-1}`, `{"cost":- 1}`, `{"cost":1.0}`, `{"cost":1e2}`, `{"cost":"1"}`, `{"cost":null}`, `{"cost":}`,
	`{"cost":999999999999999999}`, `{"cost":9223372036854775807}`, `{"cost":9223372036854775808}`, `{"http":2147483648}`,
	`{"Cost":7}`, `{"cost":1,"COST":2}`, `{"cost":2,"cost":1}`, `{"\u0063ost":9}`, `{"ho\u017ft":"a"}`, "{\"ho\u017ft\":\"a\"}", "{\"\u212ain\":1}",
	`{"carry_nonce":0}`, `{"carry_nonce":-0}`, `{"carry_nonce":-1}`, `{"carry_nonce":18446744073709551615}`, `{"carry_nonce":null}`,
	`{"counted":0}`, `{"counted":-5}`, `{"counted":null}`, `{"counted":1,"counted":null}`, `{"counted":true}`,
	`{"gas":""}`, `{"gas":"00"}`, `{"gas":"-1"}`, `{"gas":5}`, `{"gas":"1"}`, `{"gas":"` + strings.Repeat("9", 78) + `"}`,
	`{"terms":""}`, `{"terms":"` + strings.Repeat("A", 64) + `"}`, `{"terms":"` + strings.Repeat("g", 64) + `"}`, `{"terms":"` + strings.Repeat("a", 65) + `"}`,
	`{"shared":true}`, `{"shared":True}`, `{"shared":truer}`, `{"shared":1}`, `{"watched":true,"watched":false}`, `{"watched":fals}`,
	`{"agent":"\""}`, `{"agent":"a\\"}`, `{"agent":"\u0000"}`, `{"agent":"é"}`, "{\"agent\":\"\xff\"}", "{\"agent\":\"\x01\"}", "{\"agent\":\"\x7f\"}", `{"agent":"a}`, `{"agent":1}`,
	`{"approvers":[]}`, `{"approvers":["a"]}`, `{"approvers":["a","b"],"approvers":["c"]}`, `{"approvers":["a",]}`, `{"approvers":null}`, `{"approvers":["é"]}`, `{"approvers":"a"}`,
	`{"quorum":2}`, `{"quorum":-1}`, `{"quorum":"2"}`, `{"chat":true}`, `{"override":false}`, `{"reasons":[]}`, `{"reasons":["a"]}`, `{"reasons":["a",]}`, `{"reasons":["a","b"}`, `{"reasons":["a"` + strings.Repeat(`,"a"`, 99) + `]}`, `{"reasons":[1]}`,
	`{"who":{}}`, `{"who":null}`, `{"who":1.5}`, `{"who":x}`, `{"who":-}`, `{"":1}`, `{"agent":"a" "cost":1}`, `{"agent":"a";"cost":1}`,
}

// FuzzKept holds the reader of what events keep against encoding/json.
func FuzzKept(f *testing.F) {
	for _, data := range everyRecord() {
		f.Add(data)
	}
	for _, s := range oddities {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { same(t, data) })
}

func same(t *testing.T, data []byte) {
	t.Helper()
	got, want := eventData{Cost: math.MinInt64, Agent: "before"}, eventData{}
	gotErr, wantErr := got.read(data), json.Unmarshal(data, &want)
	if (gotErr == nil) != (wantErr == nil) {
		t.Fatalf("%q: %v, and encoding/json says %v", data, gotErr, wantErr)
	}
	if !reflect.DeepEqual(want, got) {
		t.Errorf("%q (-want +got):\n%s", data, cmp.Diff(want, got, cmp.Comparer(func(a, b payment.Units) bool { return a == b })))
	}
}

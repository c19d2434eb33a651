package mpp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/payment"
)

func parseDoc(t testing.TB, doc string) jsonscan.Value {
	t.Helper()
	v, err := jsonscan.Parse([]byte(doc), jsonscan.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return v
}

// with is requestDoc with old replaced by new.
func with(t testing.TB, old, new string) string {
	t.Helper()
	if !strings.Contains(requestDoc, old) {
		t.Fatalf("%s is not in %s", old, requestDoc)
	}
	return strings.Replace(requestDoc, old, new, 1)
}

// details is requestDoc with these members of methodDetails beside its chain.
func details(t testing.TB, members string) string {
	return with(t, `"chainId":42431`, `"chainId":42431,`+members)
}

const (
	anyone = "0x1111111111111111111111111111111111111111"
	badSum = "0x742d35Cc6634C0532925a3b844Bc9e7595f8fE00" // the specification's own example, its checksum wrong
	memo32 = "0xEF1ED712011ece072f76bd8b82350e837f636655dfa9b326631128fb265e760d"
)

func splitsOf(amounts ...string) string {
	s := make([]string, len(amounts))
	for i, a := range amounts {
		s[i] = fmt.Sprintf(`{"amount":%q,"recipient":%q}`, a, anyone)
	}
	return `"splits":[` + strings.Join(s, ",") + `]`
}

func TestReadTempoCharge(t *testing.T) {
	t.Parallel()
	hundred := strings.Repeat("1", 78)
	ones := strings.Split(strings.Repeat("1 ", 11), " ")[:11]
	for _, tt := range []struct{ name, doc, want string }{
		{"plain", requestDoc, ""},
		{"a wrong checksum is let through", with(t, "0x742d35cc6634c0532925a3b844bc9e7595f8fe00", badSum), ""},
		{"unknown members", details(t, `"machineTokenEnabled":1,"feePayerUrl":[],"x":{}`), ""},
		{"null is absent", with(t, `{"chainId":42431}`, `{"chainId":null,"feePayer":null,"memo":null,"splits":null,"supportedModes":null},"externalId":null,"description":null`), ""},
		{"case 29: no methodDetails", with(t, `"methodDetails":{"chainId":42431},`, ``), ""},
		{"methodDetails null", with(t, `{"chainId":42431}`, `null`), ""},
		{"an amount of 0", with(t, "10000", "0"), ""},
		{"2^256-1", with(t, "10000", anyUnits.String()), ""},
		{"texts", with(t, `"amount"`, `"externalId":"e","description":"Access <premium> & analytics","amount"`), ""},
		{"feePayer false", details(t, `"feePayer":false`), ""},
		{"modes", details(t, `"supportedModes":["pull","later"]`), ""},
		{"memo", details(t, `"memo":"`+memo32+`"`), ""},
		{"ten splits", details(t, splitsOf(ones[:10]...)), ""},
		{"splits up to one less", details(t, splitsOf("9998", "1")), ""},
		{"a split with a memo, members it does not know", details(t, `"splits":[{"amount":"1","recipient":"`+badSum+`","memo":"`+memo32+`","x":1},{"amount":"1","recipient":"`+anyone+`","memo":null}]`), ""},

		{"no amount", with(t, `"amount":"10000",`, ``), "missing_field amount"},
		{"an amount of null", with(t, `"10000"`, `null`), "missing_field amount"},
		{"an amount in another case", with(t, `"amount"`, `"Amount"`), "missing_field amount"},
		{"no currency", with(t, `"currency"`, `"x"`), "missing_field currency"},
		{"no recipient", with(t, `"recipient"`, `"x"`), "missing_field recipient"},
		{"an amount that is a number", with(t, `"10000"`, `10000`), "wrong_type amount"},
		{"an amount in a list", with(t, `"10000"`, `["10000"]`), "wrong_type amount"},
		{"a leading zero", with(t, `"10000"`, `"010000"`), `bad_amount amount "010000"`},
		{"a sign", with(t, `"10000"`, `"-1"`), `bad_amount amount "-1"`},
		{"an exponent", with(t, `"10000"`, `"1e4"`), `bad_amount amount "1e4"`},
		{"a point", with(t, `"10000"`, `"1.0"`), `bad_amount amount "1.0"`},
		{"hex", with(t, `"10000"`, `"0x10"`), `bad_amount amount "0x10"`},
		{"a blank", with(t, `"10000"`, `" 1"`), `bad_amount amount " 1"`},
		{"other digits", with(t, `"10000"`, `"１"`), `bad_amount amount "１"`},
		{"an empty amount", with(t, `"10000"`, `""`), `bad_amount amount ""`},
		{"2^256", with(t, "10000", "115792089237316195423570985008687907853269984665640564039457584007913129639936"), "bad_amount"},
		{"78 digits", with(t, "10000", "9"+hundred[1:]), "bad_amount"},
		{"79 digits", with(t, "10000", hundred+"1"), "bad_amount"},
		{"currency by name", with(t, `"0x20c0000000000000000000000000000000000000"`, `"usd"`), `bad_address currency "usd"`},
		{"a short recipient", with(t, "fe00", "fe"), "bad_address recipient"},
		{"a recipient of number", with(t, `"0x742d35cc6634c0532925a3b844bc9e7595f8fe00"`, `7`), "wrong_type recipient"},
		{"nobody", with(t, "0x742d35cc6634c0532925a3b844bc9e7595f8fe00", payment.Address{}.Lower()), "zero_payee recipient"},
		{"the token itself", with(t, "0x742d35cc6634c0532925a3b844bc9e7595f8fe00", "0x20C0000000000000000000000000000000000000"), "token_payee recipient"},
		{"externalId a number", with(t, `"amount"`, `"externalId":7,"amount"`), "wrong_type externalId"},
		{"description a list", with(t, `"amount"`, `"description":[],"amount"`), "wrong_type description"},
		{"methodDetails a list", with(t, `{"chainId":42431}`, `[]`), "wrong_type methodDetails"},
		{"methodDetails text", with(t, `{"chainId":42431}`, `"x"`), "wrong_type methodDetails"},
		{"the chain as text", with(t, `42431`, `"42431"`), "wrong_type chainId"},
		{"the chain as CAIP-2", with(t, `42431`, `"eip155:42431"`), "wrong_type chainId"},
		{"the chain with a point", with(t, `42431`, `42431.0`), "bad_chain chainId 42431.0"},
		{"the chain with an exponent", with(t, `42431`, `4.2431e4`), "bad_chain chainId 4.2431e4"},
		{"the chain 0", with(t, `42431`, `0`), "bad_chain chainId 0"},
		{"the chain below 0", with(t, `42431`, `-42431`), "bad_chain chainId -42431"},
		{"the chain 2^64 and ours", with(t, `42431`, `18446744073709594047`), "bad_chain chainId 18446744073709594047"},
		{"feePayer as text", details(t, `"feePayer":"true"`), "wrong_type feePayer"},
		{"feePayer as a number", details(t, `"feePayer":1`), "wrong_type feePayer"},
		{"no modes", details(t, `"supportedModes":[]`), "no_known_mode supportedModes"},
		{"unknown modes", details(t, `"supportedModes":["later"]`), "no_known_mode supportedModes"},
		{"modes as text", details(t, `"supportedModes":"pull"`), "wrong_type supportedModes"},
		{"a mode that is null", details(t, `"supportedModes":["pull",null]`), "wrong_type supportedModes"},
		{"a short memo", details(t, `"memo":"0x00"`), `bad_memo memo "0x00"`},
		{"a memo without 0x", details(t, `"memo":"`+memo32[2:]+`00"`), `bad_memo`},
		{"a memo of no hex", details(t, `"memo":"`+memo32[:65]+`g"`), `bad_memo`},
		{"a memo of number", details(t, `"memo":7`), `wrong_type memo`},
		{"no splits", details(t, `"splits":[]`), "empty splits"},
		{"splits as an object", details(t, `"splits":{}`), "wrong_type splits"},
		{"eleven splits", details(t, splitsOf(ones...)), "too_many splits"},
		{"splits of all", details(t, splitsOf("9999", "1")), "splits_exceed_amount splits"},
		{"splits of more", details(t, splitsOf("10001")), "splits_exceed_amount splits"},
		{"splits that wrap round", details(t, splitsOf(anyUnits.String(), "2")), "splits_exceed_amount splits"},
		{"splits of nothing", strings.Replace(details(t, splitsOf("1")), "10000", "0", 1), "splits_exceed_amount splits"},
		{"a split of 0", details(t, splitsOf("1", "0")), "zero_amount splits[1]"},
		{"a split without an amount", details(t, `"splits":[{"recipient":"`+anyone+`"}]`), "zero_amount splits[0]"},
		{"a split to nobody", details(t, `"splits":[{"amount":"1"}]`), "zero_payee splits[0]"},
		{"a split to the token", details(t, strings.Replace(splitsOf("1"), anyone, "0x20c0000000000000000000000000000000000000", 1)), "token_payee splits"},
		{"a split of number", details(t, `"splits":[1]`), "wrong_type splits[0]"},
		{"a split of null", details(t, `"splits":[null]`), "wrong_type splits[0]"},
		{"a split's amount a number", details(t, strings.Replace(splitsOf("1"), `"1"`, `1`, 1)), "wrong_type amount"},
		{"a split's memo", details(t, strings.Replace(splitsOf("1"), `{`, `{"memo":"x",`, 1)), `bad_memo memo "x"`},
		{"an empty object", `{}`, "missing_field amount"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q, why := readTempoCharge(parseDoc(t, tt.doc))
			got := strings.TrimSpace(why.code + " " + why.detail)
			if got != tt.want && !(tt.want != "" && !strings.Contains(tt.want, " ") && why.code == tt.want) && !strings.HasPrefix(got, tt.want+" ") || tt.want == "" && got != "" {
				t.Errorf("readTempoCharge(%s) = %+v, %q, want %q", tt.doc, q, got, tt.want)
			}
		})
	}
}

func TestTempoChargeSays(t *testing.T) {
	t.Parallel()
	doc := details(t, `"feePayer":true,"memo":"`+memo32+`","supportedModes":["push"],"splits":[{"amount":"1","recipient":"`+anyone+`"},{"amount":"200","recipient":"`+badSum+`","memo":"`+memo32+`"}]`)
	got, why := readTempoCharge(parseDoc(t, strings.Replace(doc, `{"amount"`, `{"externalId":"e\n1","amount"`, 1)))
	if why != (skip{}) {
		t.Fatal(why)
	}
	var memo [32]byte
	readHex(memo[:], memo32)
	loose := func(s string) payment.Address {
		a, err := payment.ParseAddressLoose(s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	want := tempoCharge{
		charge: charge{
			amount: payment.UnitsOf(10000), currency: loose("0x20c0000000000000000000000000000000000000"), recipient: loose(badSum),
			externalID: "e\n1", chainID: 42431,
		},
		feePayer: true, push: true, memo: &memo,
		splits: []split{{recipient: loose(anyone), amount: payment.UnitsOf(1)}, {recipient: loose(badSum), amount: payment.UnitsOf(200), memo: &memo}},
	}
	got.details = want.details
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(tempoCharge{}, charge{}, split{}, jsonscan.Value{}), cmp.Comparer(func(a, b payment.Units) bool { return a == b })); diff != "" {
		t.Errorf("charge (-want +got):\n%s", diff)
	}
	if p := got.primary(); p != payment.UnitsOf(9799) {
		t.Errorf("primary = %v", p)
	}
	if memo[0] != 0xef {
		t.Error("the memo was not read")
	}
	if plain, _ := readTempoCharge(parseDoc(t, requestDoc)); !plain.pull || !plain.push || plain.feePayer || plain.memo != nil {
		t.Errorf("plain = %+v", plain)
	}
}

func TestReadEVMCharge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, doc, want string }{
		{"plain", requestDoc, ""},
		{"with all", details(t, `"credentialTypes":["permit2","authorization"],"decimals":"six","permit2Address":7`), ""},
		{"credentialTypes null", details(t, `"credentialTypes":null`), ""},
		{"other credentials", details(t, `"credentialTypes":["permit2","hash"]`), "no_authorization credentialTypes"},
		{"no credentials", details(t, `"credentialTypes":[]`), "no_authorization credentialTypes"},
		{"credentials as text", details(t, `"credentialTypes":"authorization"`), "wrong_type credentialTypes"},
		{"splits", details(t, splitsOf("1")), "unsupported splits on evm/charge"},
		{"no splits in a list", details(t, `"splits":[]`), "unsupported splits on evm/charge"},
		{"the chain as text", with(t, `42431`, `"42431"`), "wrong_type chainId"},
		{"amount as a number", with(t, `"10000"`, `10000`), "wrong_type amount"},
	} {
		q, why := readEVMCharge(parseDoc(t, tt.doc))
		if got := strings.TrimSpace(why.code + " " + why.detail); got != tt.want {
			t.Errorf("%s: readEVMCharge(%s) = %+v, %q, want %q", tt.name, tt.doc, q, got, tt.want)
		}
		if tt.want == "" && q.chainID != 42431 {
			t.Errorf("%s: chain %d", tt.name, q.chainID)
		}
	}
}

package mpp

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canopy-go/canopy/internal/mppserver"
	"github.com/canopy-go/canopy/payment"
)

var (
	anyUnits, _ = payment.ParseUnits("115792089237316195423570985008687907853269984665640564039457584007913129639935")

	payloads = []payload{
		transaction{0x76, 0xf8, 0x00, 0xff},
		transaction(make([]byte, 3000)),
		txHash{1, 31: 0xff},
		proof{1, 64: 0x1b},
		&authorization{from: payment.Address{1}, to: payment.Address{19: 0xfe}, value: payment.UnitsOf(10000), validBefore: 1767225600, nonce: [32]byte{9}, signature: [65]byte{64: 0x1c}},
		&authorization{value: anyUnits, validAfter: 1<<64 - 1, validBefore: 1<<64 - 1},
	}
	payer = source{payment.TempoTest, payment.Address{0xf3, 19: 0x66}}
)

func TestPayloads(t *testing.T) {
	t.Parallel()
	zero32 := strings.Repeat("00", 32)
	want := []map[string]string{
		{"type": "transaction", "signature": "0x76f800ff"},
		{"type": "transaction", "signature": "0x" + strings.Repeat("00", 3000)},
		{"type": "hash", "hash": "0x01" + strings.Repeat("00", 30) + "ff"},
		{"type": "proof", "signature": "0x01" + strings.Repeat("00", 63) + "1b"},
		{"type": "authorization", "from": "0x01" + strings.Repeat("00", 19), "to": "0x" + strings.Repeat("00", 19) + "fe", "value": "10000",
			"validAfter": "0", "validBefore": "1767225600", "nonce": "0x09" + zero32[2:], "signature": "0x" + zero32 + zero32 + "1c"},
		{"type": "authorization", "from": payment.Address{}.Lower(), "to": payment.Address{}.Lower(), "value": anyUnits.String(),
			"validAfter": "18446744073709551615", "validBefore": "18446744073709551615", "nonce": "0x" + zero32, "signature": "0x" + zero32 + zero32 + "00"},
	}
	for i, p := range payloads {
		b := p.append(nil)
		var got map[string]string
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("payload (-want +got):\n%s", diff)
		}
		if len(b) > p.size() {
			t.Errorf("%T has %d bytes, its size is %d", p, len(b), p.size())
		}
	}
}

func TestCredentialIsReadBack(t *testing.T) {
	t.Parallel()
	found, _ := readChallenges([]string{line(t, "", `, description="Caf\u00e9"`)})
	echo, _ := found[0].echo()
	for _, p := range payloads {
		for _, from := range []source{{}, payer} {
			value := writeCredential(echo, p, from)
			if strings.ContainsAny(value, "=+/\r\n") || !strings.HasPrefix(value, "Payment ") {
				t.Errorf("credential %s", value)
			}
			c, err := readCredential(value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p, c.payload, cmp.AllowUnexported(authorization{}), cmp.Comparer(func(a, b payment.Units) bool { return a == b })); diff != "" || c.source != from || c.echo != string(echo) {
				t.Errorf("source %v, echo %s (-want +got):\n%s", c.source, c.echo, diff)
			}
			seen, err := mppserver.ReadCredential(value)
			if err != nil || (from == source{}) != (seen.Source == "") || from != (source{}) && seen.Source != "did:pkh:eip155:42431:"+payer.address.String() {
				t.Errorf("the seller sees %q, %v", seen.Source, err)
			}
		}
	}
}

func TestReadCredentialRefuses(t *testing.T) {
	t.Parallel()
	found, _ := readChallenges([]string{line(t)})
	echo, _ := found[0].echo()
	hash := `{"type":"hash","hash":"0x` + strings.Repeat("ab", 32) + `"}`
	doc := func(s string) string {
		return "Payment " + b64(strings.NewReplacer("CH", string(echo), "HASH", hash).Replace(s))
	}
	if _, err := readCredential(doc(`{"challenge":CH,"payload":HASH}`)); err != nil {
		t.Fatal(err)
	}
	auth := string((&authorization{}).append(nil))
	for name, value := range map[string]string{
		"nothing":             "",
		"another scheme":      "Bearer " + doc("{}")[8:],
		"no document":         "Payment ",
		"no base64":           "Payment $$$",
		"null":                doc(`null`),
		"a list":              doc(`[]`),
		"no payload":          doc(`{"challenge":CH}`),
		"no challenge":        doc(`{"payload":HASH}`),
		"a payload twice":     doc(`{"challenge":CH,"payload":HASH,"payload":HASH}`),
		"another case":        doc(`{"challenge":CH,"payload":HASH,"Payload":HASH}`),
		"more":                doc(`{"challenge":CH,"payload":HASH,"more":1}`),
		"source null":         doc(`{"challenge":CH,"payload":HASH,"source":null}`),
		"source of no chain":  doc(`{"challenge":CH,"payload":HASH,"source":"did:pkh:eip155:0xf300000000000000000000000000000000000066"}`),
		"source of chain 0":   doc(`{"challenge":CH,"payload":HASH,"source":"did:pkh:eip155:0:0xf300000000000000000000000000000000000066"}`),
		"source misspelt":     doc(`{"challenge":CH,"payload":HASH,"source":"did:pkh:eip155:1:0xF39fd6e51aad88F6F4ce6aB8827279cffFb92266"}`),
		"a list of payloads":  doc(`{"challenge":CH,"payload":[HASH]}`),
		"no type":             doc(`{"challenge":CH,"payload":{"hash":"0x00"}}`),
		"an unknown type":     doc(`{"challenge":CH,"payload":{"type":"keyAuthorization","signature":"0x00"}}`),
		"a short hash":        doc(strings.Replace(`{"challenge":CH,"payload":HASH}`, "HASH", strings.Replace(hash, "abab", "ab", 1), 1)),
		"a hash without 0x":   doc(strings.Replace(`{"challenge":CH,"payload":HASH}`, "HASH", strings.Replace(hash, "0x", "", 1), 1)),
		"a hash and more":     doc(strings.Replace(`{"challenge":CH,"payload":HASH}`, "HASH", strings.Replace(hash, `{`, `{"signature":"0x00",`, 1), 1)),
		"an empty tx":         doc(`{"challenge":CH,"payload":{"type":"transaction","signature":"0x"}}`),
		"half a byte of a tx": doc(`{"challenge":CH,"payload":{"type":"transaction","signature":"0x760"}}`),
		"an uneven proof":     doc(`{"challenge":CH,"payload":{"type":"proof","signature":"0x00"}}`),
		"value with a zero":   doc(`{"challenge":CH,"payload":` + strings.Replace(auth, `"value":"0"`, `"value":"01"`, 1) + `}`),
		"an instant below 0":  doc(`{"challenge":CH,"payload":` + strings.Replace(auth, `"validAfter":"0"`, `"validAfter":"-1"`, 1) + `}`),
		"an instant with a 0": doc(`{"challenge":CH,"payload":` + strings.Replace(auth, `"validAfter":"0"`, `"validAfter":"00"`, 1) + `}`),
		"an empty instant":    doc(`{"challenge":CH,"payload":` + strings.Replace(auth, `"validAfter":"0"`, `"validAfter":""`, 1) + `}`),
		"value as a number":   doc(`{"challenge":CH,"payload":` + strings.Replace(auth, `"value":"0"`, `"value":0`, 1) + `}`),
	} {
		c, err := readCredential(value)
		if !errors.Is(err, errCredential) {
			t.Errorf("%s: readCredential(%s) = %+v, %v", name, value, c, err)
		}
	}
	if c, err := readCredential(doc(`{"challenge":CH,"payload":` + auth + `}`)); err != nil || c.payload == nil {
		t.Errorf("the authorization that the rows change: %v", err)
	}
}

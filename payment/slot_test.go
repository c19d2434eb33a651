package payment_test

import (
	"strings"
	"testing"

	"github.com/canopy-go/canopy/payment"
)

// The key of a slot is kept in ledgers: its spelling never changes.
func TestSlotString(t *testing.T) {
	t.Parallel()
	token, err := payment.ParseAddress("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913")
	if err != nil {
		t.Fatal(err)
	}
	from := payment.Address{19: 0xab}
	for want, slot := range map[string]payment.Slot{
		"": {},
		"expiring/eip155:4217/0x00000000000000000000000000000000000000ab/" + strings.Repeat("0", 62) + "07": {Kind: payment.SlotExpiring, Chain: payment.Tempo, From: from, NonceID: [32]byte{31: 7}},
		"proof/01K6FPS7PGQ0M8Y4JZ0V2R3E5T": {Kind: payment.SlotProof, Payment: "01K6FPS7PGQ0M8Y4JZ0V2R3E5T"},
		"lane/eip155:4217/0x00000000000000000000000000000000000000ab/" + strings.Repeat("0", 62) + "07/3":                                    {Kind: payment.SlotLane, Chain: payment.Tempo, From: from, NonceID: [32]byte{31: 7}, Nonce: 3},
		"evm/eip155:8453/0x833589fcd6edb6e08f4c7c32d4f71b54bda02913/0x00000000000000000000000000000000000000ab/f3" + strings.Repeat("0", 62): {Kind: payment.SlotEVM, Chain: payment.Base, Token: token, From: from, NonceID: [32]byte{0xf3}},
	} {
		if got := slot.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestParseAddressCase(t *testing.T) {
	t.Parallel()
	const good = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
	for s, want := range map[string]bool{
		good: true, strings.ToLower(good): true, "0x" + strings.ToUpper(good[2:]): true,
		"0x833589FCD6eDb6E08f4c7C32D4f71b54bdA02913": false, // another case of one letter
		"0X833589fCD6eDb6E08f4c7C32D4f71b54bdA02913": false,
		good[2:]: false, good + "0": false, good[:41]: false, good[:41] + "g": false, " " + good[:41]: false, "": false,
		"0x" + strings.Repeat("0", 40): true, "0x" + strings.Repeat("５", 13) + "0": false,
	} {
		if _, err := payment.ParseAddress(s); (err == nil) != want {
			t.Errorf("ParseAddress(%q): %v, want accepted %v", s, err, want)
		}
	}
	if _, err := payment.ParseAddressLoose("0x833589FCD6eDb6E08f4c7C32D4f71b54bdA02913"); err != nil {
		t.Errorf("ParseAddressLoose: %v", err)
	}
}

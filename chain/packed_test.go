package chain_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/payment"
)

// TestPacked asks about many slots at once, of two accounts, and about each by
// itself where the node gives no such answer, once and for all.
func TestPacked(t *testing.T) {
	t.Parallel()
	var slots []payment.Slot
	for i := range 600 {
		s := slot(byte(i % 250))
		if i >= 550 {
			s.From = payee
		}
		slots = append(slots, s)
	}
	want := func(i int) bool { return i%250 == 7 || i%250 == 200 }
	for name, tt := range map[string]struct {
		packed any // the answer to a packed question; nil is the true one
		calls  int // of eth_call, for two times all slots
	}{
		"true":            {nil, 2 * 4}, // 250, 250, 50 and 50
		"nothing":         {"0x", 1 + 2*600},
		"zeros":           {"0x" + strings.Repeat("00", 250), 1 + 2*600},
		"a third mark":    {"0x" + strings.Repeat("03", 250), 1 + 2*600},
		"too few":         {"0x" + strings.Repeat("01", 249), 1 + 2*600},
		"too many":        {"0x" + strings.Repeat("02", 251), 1 + 2*600},
		"not even data":   {7, 1 + 2*600},
		"null, and error": {nil, 1 + 2*600},
	} {
		n := newFakeNode()
		n.used[nonceOf(7)], n.used[nonceOf(200)] = true, true
		n.bend = func(c rpc) (reply, bool) {
			if c.Method != "eth_call" || strings.Contains(string(c.Params[0]), `"to"`) || name == "true" {
				return reply{}, false
			}
			if tt.packed == nil {
				return reply{code: -32000, text: "no"}, true
			}
			return reply{result: tt.packed}, true
		}
		c, _ := connect(t, n)
		for range 2 {
			used, err := c.Used(t.Context(), slots, final)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for i, u := range used {
				if u != want(i) {
					t.Fatalf("%s: slot %d used: %v", name, i, u)
				}
			}
		}
		if got := n.called("eth_call"); got != tt.calls {
			t.Errorf("%s: %d calls, want %d", name, got, tt.calls)
		}
	}
}

// TestPackedOfNothing asks what is no token, and one that says neither yes nor
// no: that is no answer, packed or not.
func TestPackedOfNothing(t *testing.T) {
	t.Parallel()
	for _, answer := range [][]byte{nil, word(2), append(word(0), 0), slices.Repeat([]byte{0xff}, 32), word(1)[1:]} {
		code := packedCode(t)
		out, err := run(code, func(payment.Address, []byte) ([]byte, bool) { return answer, true })
		if err == nil {
			t.Errorf("%x counts as %x", answer, out)
		}
		out, err = run(code, func(payment.Address, []byte) ([]byte, bool) { return word(1), false })
		if err == nil {
			t.Errorf("a call that fails counts as %x", out)
		}
	}
	elsewhere := slot(1)
	elsewhere.Token = payee
	c, _ := connect(t, newFakeNode())
	if used, err := c.Used(t.Context(), []payment.Slot{elsewhere, elsewhere}, final); !errors.Is(err, chain.ErrAnswer) {
		t.Errorf("used %v, %v", used, err)
	}
}

// packedCode is what a chain asks about three slots.
func packedCode(t *testing.T) []byte {
	t.Helper()
	n := newFakeNode()
	var code []byte
	n.bend = func(c rpc) (reply, bool) {
		if c.Method == "eth_call" {
			code = inputOf(c)
		}
		return reply{}, false
	}
	c, _ := connect(t, n)
	if _, err := c.Used(t.Context(), []payment.Slot{slot(1), slot(2), slot(3)}, final); err != nil || code == nil {
		t.Fatalf("code of %d bytes, %v", len(code), err)
	}
	return code
}

// TestPackedBusy has a node put packed questions off: it is not asked in another
// way, and is again later.
func TestPackedBusy(t *testing.T) {
	t.Parallel()
	n := newFakeNode()
	busy := true
	n.bend = func(c rpc) (reply, bool) { return reply{code: -32005, text: "later"}, busy && c.Method == "eth_call" }
	c, clock := connect(t, n)
	clock.frozen = false
	slots := []payment.Slot{slot(1), slot(2)}
	if used, err := c.Used(t.Context(), slots, final); err == nil {
		t.Errorf("used %v", used)
	}
	if got := n.called("eth_call"); got != 4 {
		t.Errorf("%d calls, want 4", got)
	}
	busy = false
	if _, err := c.Used(t.Context(), slots, final); err != nil || n.called("eth_call") != 5 {
		t.Errorf("%v after %d calls", err, n.called("eth_call"))
	}
}

// TestPackedLies has one of two nodes lie in a packed answer.
func TestPackedLies(t *testing.T) {
	t.Parallel()
	liar := newFakeNode()
	liar.bend = func(c rpc) (reply, bool) { return reply{result: "0x0201"}, c.Method == "eth_call" }
	c, _ := connect(t, newFakeNode(), liar)
	if used, err := c.Used(t.Context(), []payment.Slot{slot(1), slot(2)}, final); !errors.Is(err, chain.ErrDisagree) {
		t.Errorf("used %v, %v", used, err)
	}
}

// TestPackedFlake has a request fail once: the node is asked packed again.
func TestPackedFlake(t *testing.T) {
	t.Parallel()
	n := newFakeNode()
	n.raw = func(w http.ResponseWriter, _ *http.Request, calls []rpc) bool {
		if flake := n.requests() == 2; flake {
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
		return false
	}
	c, _ := connect(t, n)
	slots := []payment.Slot{slot(1), slot(2)}
	for range 2 {
		if _, err := c.Used(t.Context(), slots, final); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.called("eth_call"); got != 1+2+1 {
		t.Errorf("%d calls, want one that failed, two, and one packed", got)
	}
}

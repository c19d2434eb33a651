package payment_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/payment"
)

func TestParseAddress(t *testing.T) {
	t.Parallel()
	const sum = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
	lower := strings.ToLower(sum)
	upper := "0x" + strings.ToUpper(sum[2:])
	for _, in := range []string{sum, lower, upper} {
		a, err := payment.ParseAddress(in)
		if err != nil || a.String() != sum || a.Lower() != lower {
			t.Errorf("ParseAddress(%s) = %s, %v", in, a, err)
		}
	}
	wrong := strings.Replace(sum, "fCD", "fcD", 1)
	if _, err := payment.ParseAddress(wrong); !errors.Is(err, payment.ErrAddress) {
		t.Errorf("a wrong checksum: %v", err)
	}
	if a, err := payment.ParseAddressLoose(wrong); err != nil || a.String() != sum {
		t.Errorf("ParseAddressLoose(%s) = %s, %v", wrong, a, err)
	}
	for _, in := range []string{
		"", "0x", sum[2:], "0X" + sum[2:], sum + "0", sum[:41], " " + sum, sum + " ", sum[:41] + "g", sum[:40] + "\x00" + "a", "merchant",
		"0x" + strings.Repeat("０", 40), strings.Repeat("0x", 21), sum + "\n", "vitalik.eth",
	} {
		if a, err := payment.ParseAddress(in); !errors.Is(err, payment.ErrAddress) {
			t.Errorf("ParseAddress(%q) = %s, %v", in, a, err)
		}
		if a, err := payment.ParseAddressLoose(in); !errors.Is(err, payment.ErrAddress) {
			t.Errorf("ParseAddressLoose(%q) = %s, %v", in, a, err)
		}
	}
}

func TestChains(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]uint64{"eip155:1": 1, "eip155:8453": 8453, "eip155:9223372036854775807": 1<<63 - 1} {
		c, err := payment.ParseChainID(in)
		if n, ok := c.Number(); err != nil || !ok || n != want || payment.EVMChain(n) != c {
			t.Errorf("ParseChainID(%s) = %s, %v", in, c, err)
		}
	}
	for _, in := range []string{
		"", "eip155:", "eip155:0", "eip155:01", "eip155:-1", "eip155:+1", "EIP155:1", "eip155:1 ", " eip155:1", "eip155:1e3", "8453", "base",
		"eip155:9223372036854775808", "eip155:18446744073709551616", "solana:5eykt4", "eip155:0x1", "eip155:１",
	} {
		if c, err := payment.ParseChainID(in); !errors.Is(err, payment.ErrChain) {
			t.Errorf("ParseChainID(%q) = %s, %v", in, c, err)
		}
	}
	for name, want := range map[string]payment.ChainID{"base": payment.Base, "Base": payment.Base, "tempo": payment.Tempo, "eip155:7": "eip155:7"} {
		if c, err := payment.ChainByName(name); err != nil || c != want {
			t.Errorf("ChainByName(%s) = %s, %v", name, c, err)
		}
	}
	if _, err := payment.ChainByName("bass"); err == nil {
		t.Error("an unknown name is a chain")
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_800_000_000_000)
	if id := payment.NewID(now); !id.Valid() || len(id) != 26 {
		t.Errorf("NewID gave %s", id)
	}
	a := payment.NewApprovalID(now)
	if !a.Valid() || !strings.HasPrefix(string(a), "appr_") {
		t.Errorf("NewApprovalID gave %s", a)
	}
	for _, bad := range []string{"", "appr_", "../../etc/passwd", string(a)[5:], "appr_" + strings.ToLower(string(a)[5:]), string(a) + "\x00", "appr_%2e%2e", "appr_" + strings.Repeat("Z", 26)} {
		if payment.ApprovalID(bad).Valid() {
			t.Errorf("%q is valid", bad)
		}
	}
	if payment.AgentID("a") == payment.AgentID("b") || !strings.HasPrefix(payment.AgentID("a"), "agt_") {
		t.Error("agent ids do not tell agents apart")
	}
}

func TestStatusZeroIsDenied(t *testing.T) {
	t.Parallel()
	var s payment.Status
	if s != payment.Denied || s.String() != "denied" || payment.PendingApproval.String() != "pending_approval" || payment.Allowed.String() != "allowed" {
		t.Errorf("statuses are %s, %s, %s", s, payment.PendingApproval, payment.Allowed)
	}
	if payment.Status(9).String() != "denied" {
		t.Error("an unknown status is not a denial")
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := payment.ParseAddress(s)
		if err != nil {
			return
		}
		if again, err := payment.ParseAddress(a.String()); err != nil || again != a || !strings.EqualFold(a.String(), s) {
			t.Fatalf("%q is %s", s, a)
		}
	})
}

func FuzzParseChainID(f *testing.F) {
	f.Add("eip155:8453")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := payment.ParseChainID(s)
		if err != nil {
			return
		}
		if n, ok := c.Number(); !ok || string(payment.EVMChain(n)) != s {
			t.Fatalf("%q is %d", s, n)
		}
	})
}

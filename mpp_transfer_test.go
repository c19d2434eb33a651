package canopy_test

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/mpp"
	"github.com/canopy-go/canopy/payment"
)

// Direct transfers on Tempo: a transaction of our own, broadcast by our own node.

func onChain(t canopy.Transfer, memo string) canopy.Transfer {
	t.Chain, t.Memo = payment.TempoTest, memo
	return t
}

// A transfer with each kind of memo: one transaction, one debit, a fee of ours.
func TestMPPTransfer(t *testing.T) {
	text := [32]byte{}
	copy(text[:], "invoice 17")
	for name, tc := range map[string]struct {
		memo string
		want *[32]byte
	}{"none": {"", nil}, "text": {"invoice 17", &text}, "hex": {"0x" + strings.Repeat("ab", 32), (*[32]byte)([]byte(strings.Repeat("\xab", 32)))}} {
		t.Run(name, func(t *testing.T) {
			play(t, onTempo(setup{}), func(t *testing.T, w *world) {
				r, err := w.client.Pay(t.Context(), onChain(dollars(dime, ""), tc.memo))
				if must(t, err); r.Status != canopy.Allowed || r.State != ledger.Claimed || r.Fee != feeBound || r.Rail != "mpp" || r.TxHash != w.chain.TempoUses()[0].TxHash {
					t.Fatalf("%+v", r)
				}
				w.chain.AssertTransfers(t, canopytest.Move{From: w.client.Address(), To: friend, Amount: dime})
				moved := w.chain.Transfers()[0]
				if !moved.HasMemo || moved.Memo == [32]byte{} || tc.want != nil && moved.Memo != *tc.want {
					t.Errorf("with memo %s", hex.EncodeToString(moved.Memo[:]))
				}
				w.digests(1)
				w.counted(costly)
				w.settled(dime, r.PaymentID)
				w.overAll()
			})
		})
	}
}

// The word of the node is lost, before or after it broadcast: the same bytes
// again, and with another call too; one debit.
func TestMPPTransferAnswerLost(t *testing.T) {
	for name, n := range map[string]*notary{"before": {fail: errors.New("connection refused")}, "after": {lost: errors.New("connection reset")}} {
		for _, key := range []string{"k", ""} {
			t.Run(name+", key "+key, func(t *testing.T) {
				play(t, onTempo(setup{policy: capped("$0.30 / 24h")}), func(t *testing.T, w *world) {
					own := *n
					w.broadcastBy(&own)
					pay := onChain(dollars(dime, key), "x")
					r, err := w.client.Pay(t.Context(), pay)
					if name == "before" {
						d := as[*canopy.InDoubtError](t, err)
						if d.Result.State != ledger.InDoubt || len(own.seen) != 1 || own.seen[0].Receipt.TxHash == "" || !d.SafeAfter.After(w.clock.Now()) {
							t.Errorf("in doubt as %+v, the ledger at the broadcast %+v", d, own.seen)
						}
						w.moved(0)
						w.counted(costly)
						own.fail = nil
						r, err = w.client.Pay(t.Context(), pay)
					}
					if must(t, err); r.State != ledger.Claimed {
						t.Errorf("%+v", r)
					}
					if key != "" {
						again, err := w.client.Pay(t.Context(), pay)
						if must(t, err); again.PaymentID != r.PaymentID {
							t.Errorf("again it is %s, and was %s", again.PaymentID, r.PaymentID)
						}
						_, err = w.client.Pay(t.Context(), onChain(dollars(2*dime, key), "x"))
						if !errors.Is(err, canopy.ErrKeyConflict) {
							t.Errorf("another amount under the key: %v", err)
						}
					}
					w.digests(1)
					w.settled(dime, r.PaymentID)
					w.overAll()
				})
			})
		}
	}
}

// An equal transfer without a key is a duplicate while the window lasts; one
// under a key of its own is a payment.
func TestMPPTransferDuplicate(t *testing.T) {
	play(t, onTempo(setup{policy: "[policy.default]\ncaps = [\"$5 / 24h\"]\nallow = [\"*\"]\nduplicate_window = \"10m\"\n"}), func(t *testing.T, w *world) {
		pay := func(key string) canopy.Result {
			r, err := w.client.Pay(t.Context(), onChain(dollars(dime, key), "x"))
			must(t, err)
			return r
		}
		first := pay("")
		w.refused("an equal one", func() {
			if r := pay(""); r.Status != canopy.Denied || r.Code != "duplicate" || !strings.Contains(r.Reason, string(first.PaymentID)) {
				t.Errorf("%+v", r)
			}
		})
		if r := pay("another"); r.Status != canopy.Allowed || r.PaymentID == first.PaymentID {
			t.Errorf("%+v", r)
		}
		w.clock.Advance(11 * time.Minute)
		if r := pay(""); r.Status != canopy.Allowed {
			t.Errorf("%+v", r)
		}
		w.settled(3 * dime)
		w.overAll()
	})
}

// A preview judges as Pay does, and leaves nothing; the fee is part of the cost.
func TestMPPTransferPreview(t *testing.T) {
	play(t, onTempo(setup{policy: "[policy.default]\nmax_payment = \"$0.12\"\ncaps = [\"$5 / 24h\"]\nallow = [\"address:" + friend.String() + "\"]\n"}), func(t *testing.T, w *world) {
		w.refused("previews", func() {
			r, err := w.client.Preview(t.Context(), onChain(dollars(9*payment.Cent, ""), "x"))
			if must(t, err); r.Status != canopy.Allowed || !r.DryRun || r.Fee != feeBound || r.Amount != 9*payment.Cent || r.Chain != payment.TempoTest {
				t.Errorf("%+v", r)
			}
			r, err = w.client.Preview(t.Context(), onChain(dollars(dime, ""), ""))
			if must(t, err); r.Status != canopy.Denied || r.Code != "max_payment" {
				t.Errorf("%+v", r)
			}
			r, err = w.client.Pay(t.Context(), onChain(dollars(dime, ""), ""))
			if must(t, err); r.Status != canopy.Denied || r.Code != "max_payment" {
				t.Errorf("%+v", r)
			}
			for _, memo := range []string{strings.Repeat("x", 33), "0x" + strings.Repeat("zz", 32), "0x1234", "a\nb", "a\xff"} {
				_, err := w.client.Preview(t.Context(), onChain(dollars(payment.Cent, ""), memo))
				_, same := w.client.Pay(t.Context(), onChain(dollars(payment.Cent, ""), memo))
				for _, err := range []error{err, same} {
					if wrong := as[*canopy.TransferError](t, err); wrong.Field != "Memo" {
						t.Errorf("the memo %q: %v", memo, err)
					}
				}
			}
			if _, err := w.client.Pay(t.Context(), canopy.Transfer{To: friend, Amount: payment.Cent, Chain: payment.Tempo}); err == nil {
				t.Error("paid on a chain that is not configured")
			}
		})
		if n := len(w.entries()); n != 1 { // the denied Pay
			t.Errorf("the ledger has %d entries", n)
		}
	})
}

// A person is asked, and Resume carries it out with the memo that was approved.
func TestMPPTransferResume(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		r, err := w.client.Pay(t.Context(), onChain(dollars(6*payment.Dollar, "k"), ""))
		if must(t, err); r.Status != canopy.PendingApproval {
			t.Fatalf("%+v", r)
		}
		w.refused("before anybody answers", func() {
			again, err := w.client.Resume(t.Context(), r.PaymentID)
			if must(t, err); again.Status != canopy.PendingApproval {
				t.Errorf("%+v", again)
			}
		})
		w.rule(r.ApprovalID, true)
		done, err := w.client.Resume(t.Context(), r.PaymentID)
		if must(t, err); done.PaymentID != r.PaymentID || done.State != ledger.Claimed {
			t.Errorf("%+v", done)
		}
		again, err := w.client.Resume(t.Context(), r.PaymentID)
		if must(t, err); again.State != ledger.Claimed || again.TxHash != done.TxHash {
			t.Errorf("%+v", again)
		}
		w.digests(1)
		w.settled(6*payment.Dollar, r.PaymentID)
		w.overAll()
	})
}

// Without a node nothing is signed, and what is wanting is the node, not gas.
func TestMPPTransferWithoutNode(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		rail, err := mpp.New(mpp.Config{Chains: []canopy.ChainID{payment.TempoTest}})
		must(t, err)
		cfg := w.cfg
		cfg.Rails = []canopy.Rail{rail}
		client, err := canopy.New(cfg)
		must(t, err)
		w.refused("without a node", func() {
			_, err := client.Pay(t.Context(), onChain(dollars(dime, ""), ""))
			if wrong := as[*canopy.TransferError](t, err); wrong.Field != "Chain" || !errors.Is(err, mpp.ErrNoNode) || !strings.Contains(err.Error(), "rpc in its [[chain]]") || strings.Contains(err.Error(), "gas") {
				t.Errorf("%v", err)
			}
			if _, same := client.Preview(t.Context(), onChain(dollars(dime, ""), "")); same == nil || same.Error() != err.Error() {
				t.Errorf("preview says %v, and pay %v", same, err)
			}
		})
	})
}

// What a caller asks for is what is paid: a memo that stands in an approved
// transfer is in the transaction.
func TestMPPTransferResumeKeepsTheMemo(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		memo := "0x" + strings.Repeat("cd", 32)
		r, err := w.client.Pay(t.Context(), onChain(dollars(6*payment.Dollar, "k"), memo))
		must(t, err)
		w.rule(r.ApprovalID, true)
		_, err = w.client.Resume(t.Context(), r.PaymentID)
		must(t, err)
		if n := len(w.chain.Memos(w.client.Address(), [32]byte([]byte(strings.Repeat("\xcd", 32))))); n != 1 {
			t.Errorf("%d transfers have the memo that was asked for", n)
		}
	})
}

// Frozen, without money or with every lane live: denied, and nothing signed.
func TestMPPTransferRefuses(t *testing.T) {
	play(t, onTempo(setup{config: few(1)}), func(t *testing.T, w *world) {
		pay := func(code string) {
			t.Helper()
			r, err := w.client.Pay(context.Background(), onChain(dollars(dime, ""), code))
			if must(t, err); r.Status != canopy.Denied || r.Code != code {
				t.Errorf("%+v, want %s", r, code)
			}
		}
		w.chain.SetMining(canopytest.Manual)
		_, err := w.client.Pay(t.Context(), onChain(dollars(payment.Cent, "first"), ""))
		as[*canopy.InDoubtError](t, err)
		w.refused("every lane is live", func() { pay("no_free_lane") })
		must(t, w.client.Freeze(t.Context(), "stop"))
		w.refused("frozen", func() { pay("frozen") })
	})
}

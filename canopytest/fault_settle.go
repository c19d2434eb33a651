package canopytest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/canopy-go/canopy/internal/keccak"
)

// AnswerAgain answers a payment with the same 402 as if none had been sent, and
// settles nothing.
func AnswerAgain() Fault {
	return Instead("402 again", OnPaid, func(x *Exchange) Answer { return x.Challenge("") })
}

// DropBeforeSettling closes the connection on a payment without an answer, and
// settles nothing.
func DropBeforeSettling() Fault {
	f := Instead("drop before settling", OnPaid, func(*Exchange) Answer { return Answer{} })
	f.deliver = cut(0, hangUp)
	return f
}

// DropAfterSettling answers a payment as it should be, up to the answer itself:
// the money moved and the connection closes.
func DropAfterSettling() Fault { return Delivering("drop after settling", OnPaid, cut(0, hangUp)) }

// Status answers a payment with an HTTP status and no word of payment, without
// running the handler and without settling: 400, 409, 412, 500, 503.
func Status(status int) Fault {
	return Instead(fmt.Sprintf("status %d before settling", status), OnPaid, func(x *Exchange) Answer {
		return x.fail(status, http.StatusText(status))
	})
}

// StatusAfterSettling settles, and answers with an HTTP status and no receipt.
func StatusAfterSettling(status int) Fault {
	return Editing(fmt.Sprintf("status %d after settling", status), OnPaid, func(x *Exchange, a *Answer) {
		*a = x.fail(status, http.StatusText(status))
	})
}

// StatusWithReceipt settles, and answers with an HTTP status and the receipt:
// paid and not delivered.
func StatusWithReceipt(status int) Fault {
	return Editing(fmt.Sprintf("status %d with a receipt", status), OnPaid, func(_ *Exchange, a *Answer) {
		a.Status, a.Body = status, []byte("broken")
	})
}

// NoReceipt settles and delivers, and leaves the receipt out.
func NoReceipt() Fault {
	return Editing("no receipt", OnPaid, func(_ *Exchange, a *Answer) {
		a.Header.Del("Payment-Response")
		a.Header.Del("X-Payment-Response")
		a.Header.Del("Payment-Receipt")
	})
}

// GiveAway delivers without settling and without a receipt.
func GiveAway() Fault {
	return Instead("deliver unsettled", OnPaid, func(x *Exchange) Answer {
		if x.refused() != "" {
			return x.Honest()
		}
		return x.Serve()
	})
}

// FakeReceipt delivers with a receipt that names a transaction which does not
// exist: nothing settled.
func FakeReceipt() Fault {
	return Instead("receipt of nothing", OnPaid, func(x *Exchange) Answer {
		if x.refused() != "" {
			return x.Honest()
		}
		a := x.Serve()
		auth, _ := x.Authorization()
		s := x.settlement(auth)
		sum := keccak.Sum256([]byte("canopytest no transaction"), auth.Nonce[:], []byte(x.credential))
		s.tx = fmt.Sprintf("0x%x", sum)
		x.receipt(&a, s)
		return a
	})
}

// SayFailed says that a payment did not settle, which is true as yet: the
// authorization stays in the Harvest. An empty code is the protocol's for a
// transaction that failed.
func SayFailed(code string) Fault {
	return Instead("settlement failed", OnPaid, func(x *Exchange) Answer {
		if x.refused() != "" {
			return x.Honest()
		}
		return x.failed(code)
	})
}

// SettleAndSayFailed settles, and says that it did not.
func SettleAndSayFailed(code string) Fault {
	return Editing("settled, and called failed", OnPaid, func(x *Exchange, a *Answer) {
		if x.refused() != "" {
			return
		}
		*a = x.failed(code)
	})
}

// SettleAndAnswerAgain settles, and answers with the 402 of a first request.
func SettleAndAnswerAgain() Fault {
	return Editing("settled, and 402 again", OnPaid, func(x *Exchange, a *Answer) { *a = x.Challenge("") })
}

// SettlementPending runs the handler and broadcasts, and answers that the
// transaction is not mined yet: settlement_pending with its hash in version 2,
// no word in version 1. It waits for the chain's next block. The same payment
// sent again joins it in version 2, and is broadcast once more, to revert, in
// version 1; a chain that mines instantly mines it then. With MPP the handler
// does not run and the answer is a 500, as when a node is slow.
func SettlementPending() Fault {
	return Instead("settlement pending", OnPaid, func(x *Exchange) Answer {
		if x.refused() != "" {
			return x.Honest()
		}
		if x.byMPP() {
			return x.pendMPP()
		}
		if a := x.Serve(); a.Status >= 400 {
			return a
		}
		auth, _ := x.Authorization()
		key := fmt.Sprintf("%x", auth.Signature)
		s := x.settlement(auth)
		if s.tx = x.seller.pendingTx(key); s.tx == "" {
			s.tx = x.chosen.chain.Enqueue(auth)
			x.seller.setPending(key, s.tx)
		}
		if x.seller.version == V1 {
			return x.challengeV1(facilitatorThrew, nil)
		}
		s.code = "settlement_pending"
		return x.refuseV2(s)
	})
}

// FrontRun has somebody else settle the payment before the seller looks at it,
// as anybody may who sees it: the money is where it should be, and the goods do
// not come.
func FrontRun() Fault {
	return Instead("settled by a stranger", OnPaid, func(x *Exchange) Answer {
		x.Settle() // what the token refuses the seller will refuse too
		return x.Honest()
	})
}

// refused is why the payment would not pass verification; empty where it would,
// and also where it was settled by this very request.
func (x *Exchange) refused() string {
	switch {
	case x.byMPP():
		return x.refusedMPP()
	case x.chosen == nil || x.record.Authorization == nil:
		return "invalid_payload"
	case x.record.TxHash != "":
		return ""
	case x.seller.version == V1:
		return x.verifyV1(*x.record.Authorization)
	}
	return x.verifyV2(*x.record.Authorization, true)
}

// failed is the answer to a settlement that failed.
func (x *Exchange) failed(code string) Answer {
	if x.byMPP() {
		if code == "" {
			code = "verification-failed"
		}
		return x.challengeMPP(code)
	}
	if code == "" {
		code = "invalid_exact_evm_transaction_failed"
	}
	if x.seller.version == V1 {
		return x.challengeV1(code, nil)
	}
	auth, _ := x.Authorization()
	s := x.settlement(auth)
	s.code = code
	return x.refuseV2(s)
}

// refusedMPP is refused to a credential.
func (x *Exchange) refusedMPP() string {
	if x.record.TxHash != "" {
		return ""
	}
	if p := x.verifyMPP(); p != nil {
		return p.kind
	}
	return ""
}

// pendMPP broadcasts and does not wait.
func (x *Exchange) pendMPP() Answer {
	q := x.chosen
	switch tx := x.record.Tempo; {
	case tx != nil:
		final, err := x.final(tx)
		if err != nil || !x.seller.claim(claimOf(final)) {
			break
		}
		q.chain.mu.Lock()
		q.chain.catchUp()
		q.chain.submit(final) // what a node says to it makes no difference
		q.chain.mu.Unlock()
	case x.record.Authorization != nil:
		q.chain.Enqueue(*x.record.Authorization)
	}
	return x.refuseMPP(broken("The request took too long to respond."))
}

// receipt puts s on a in the seller's version.
func (x *Exchange) receipt(a *Answer, s *settlement) {
	if x.byMPP() {
		x.receiptMPP(a, s.tx)
		return
	}
	if x.seller.version == V1 {
		a.Header.Set("X-Payment-Response", base64.StdEncoding.EncodeToString(mustJSON(s.v1())))
		return
	}
	x.receiptV2(a, s)
}

// receiptHeaders are where receipts stand.
var receiptHeaders = []string{"Payment-Response", "X-Payment-Response", "Payment-Receipt"}

// ForgeReceipt settles and delivers, and hands the receipt's fields to edit
// before it is sent.
func ForgeReceipt(name string, edit func(map[string]any)) Fault {
	return Editing("receipt with "+name, OnPaid, func(_ *Exchange, a *Answer) {
		for _, header := range receiptHeaders {
			raw, ok := anyBase64(a.Header.Get(header))
			var fields map[string]any
			if !ok || json.Unmarshal(raw, &fields) != nil {
				continue
			}
			edit(fields)
			a.Header.Set(header, base64.StdEncoding.EncodeToString(mustJSON(fields)))
		}
	})
}

// ForgedReceipts is a corpus of receipts that must not be believed as they
// stand, each on a payment that did settle: of a foreign transaction, payer,
// network or amount, and malformed ones.
func ForgedReceipts() []Fault {
	set := func(name, key string, v any) Fault {
		return ForgeReceipt(name, func(r map[string]any) { r[key] = v })
	}
	without := func(key string) Fault {
		return ForgeReceipt("no "+key, func(r map[string]any) { delete(r, key) })
	}
	raw := func(name string, change func(string) []string) Fault {
		return Editing("receipt "+name, OnPaid, func(_ *Exchange, a *Answer) {
			for _, header := range receiptHeaders {
				if v := a.Header.Get(header); v != "" {
					a.Header[header] = change(v)
				}
			}
		})
	}
	other := func(v any) []byte { return mustJSON(v) }
	encode := func(b []byte) []string { return []string{base64.StdEncoding.EncodeToString(b)} }
	return []Fault{
		set("a foreign transaction", "transaction", "0x"+fmt.Sprintf("%064x", 0xf0e1)),
		set("a foreign payer", "payer", Address("somebody else").String()),
		set("a foreign network", "network", "eip155:1"),
		set("a foreign amount", "amount", "1"),
		set("an absurd amount", "amount", "115792089237316195423570985008687907853269984665640564039457584007913129639935"),
		set("success as text", "success", "true"),
		set("success as a number", "success", 1),
		set("success and a reason", "errorReason", "invalid_exact_evm_transaction_failed"),
		set("an empty transaction", "transaction", ""),
		set("a transaction that is no hash", "transaction", "0x<script>"),
		set("a transaction of numbers", "transaction", 17),
		set("a network of nothing", "network", nil),
		without("transaction"), without("success"), without("network"), without("payer"),
		raw("that is not base64", func(string) []string { return []string{"%%%"} }),
		raw("that is empty", func(string) []string { return []string{""} }),
		raw("of an array", func(string) []string { return encode(other([]int{1})) }),
		raw("of null", func(string) []string { return encode([]byte("null")) }),
		raw("cut short", func(v string) []string { return []string{v[:len(v)/2]} }),
		raw("sent twice, differing", func(v string) []string {
			return append([]string{v}, encode(other(object{{"success", false}, {"transaction", ""}, {"network", "eip155:1"}}))...)
		}),
		raw("with a key twice", func(v string) []string {
			b, _ := base64.StdEncoding.DecodeString(v)
			return encode(append([]byte(`{"success":false,`), b[1:]...))
		}),
	}
}

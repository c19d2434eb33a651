package check_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/check"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// onLane asks for one payment of so many cents on the one lane of the account,
// with a fee of at most ten cents.
func (w *world) onLane(cents int64) ledger.Entry {
	w.Helper()
	w.n++
	e := w.askLane(w.n, cents)
	if e.State != ledger.Authorized {
		w.Fatalf("%s, %v", e.State, e.Reasons)
	}
	return e
}

// askLane asks for the n-th of them, which may have to wait for a person.
func (w *world) askLane(n int, cents int64) ledger.Entry {
	w.Helper()
	amount := payment.UnitsOf(uint64(cents) * 10_000)
	terms := payment.Terms{
		Rail: "mpp", Scheme: "tempo/charge", Asset: usdc, Amount: amount, FeeBound: 10 * payment.Cent,
		Recipients: []payment.Recipient{{Address: payment.Address{9}, Amount: amount}},
		Method:     "GET", Origin: "https://lane.example", Target: fmt.Sprintf("/%d", n), Validity: time.Minute,
	}
	p := payment.Payment{ID: payment.NewID(w.now), Agent: "bot", Terms: terms, Host: "lane.example", Port: 443}
	e, _, err := w.store.Reserve(context.Background(), ledger.Request{
		Payment: p, Verdict: w.rules.Evaluate(p, w.now, policy.History{}), Payer: payment.Address{1}, Fingerprint: terms.Hash(),
		Began: w.now, Now: w.now, Validity: 20 * time.Second, Watched: true, Lanes: 1, Slot: payment.Slot{Kind: payment.SlotLane},
	})
	if err != nil {
		w.Fatal(err)
	}
	return e
}

// change advances e.
func (w *world) change(e ledger.Entry, c ledger.Change) ledger.Entry {
	w.Helper()
	c.ID, c.Version, c.Now = e.ID, e.Version, w.now
	next, err := w.store.Advance(context.Background(), c)
	if err != nil {
		w.Fatal(err)
	}
	return next
}

// ends lets the chain end e, with a fee of so many cents where that is known.
func (w *world) ends(e ledger.Entry, to ledger.State, cents int64) ledger.Entry {
	w.Helper()
	c := ledger.Change{To: to, By: ledger.ByChain, SpentAt: w.now}
	if cents >= 0 {
		c.Fee = new(payment.USD(cents) * payment.Cent)
	}
	return w.change(w.move(e, ledger.InDoubt, ledger.ByClient), c)
}

// Payments that fit only because fees were lower than they might have been are
// no breach, in any way of reading them.
func TestFeesPaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.ends(w.onLane(40), ledger.Settled, 1)
	w.now = w.now.Add(time.Minute)
	b := w.ends(w.onLane(38), ledger.Settled, 1)
	w.now = w.now.Add(time.Minute)
	c := w.ends(w.onLane(1), ledger.Cancelled, 2)
	w.now = w.now.Add(time.Minute)
	d := w.onLane(8) // 41 + 39 + 2 + 18 cents under a dollar
	for _, e := range []ledger.Entry{a, b, c, d} {
		t.Logf("%s counts for %s of %s", e.State, e.Spent, e.Cost)
	}
	for _, o := range []check.Options{{Policy: w.rules}, {Policy: w.rules, NoEvents: true}} {
		w.wants(w.run(o, nil))
	}
	// Without the fees it would be one, and with more money it is.
	w.wants(w.run(check.Options{Policy: w.rules}, func(e *ledger.Entry) {
		if e.Spent = e.Cost; e.State == ledger.Cancelled {
			e.Spent = 0
		}
	}), "over $1 / 30m per host", "another spending than its record")
}

// Each fact of a variant and of what was spent is held against the events.
func TestLaneFindings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settled := w.ends(w.onLane(10), ledger.Settled, 3)
	w.now = w.now.Add(time.Second)
	e := w.onLane(10)
	w.now = w.now.Add(9 * time.Second)
	e = w.change(e, ledger.Change{To: ledger.Authorized, Variant: &ledger.Variant{ChallengeID: "two", Realm: "r", Echo: []byte("e"), Validity: time.Minute}})
	w.wants(w.run(check.Options{Policy: w.rules}, nil))
	for _, tc := range []struct {
		want string
		bend func(*ledger.Entry)
	}{
		{"another challenge than its record", func(e *ledger.Entry) { e.ChallengeID = "three" }},
		{"another validity than its record", func(e *ledger.Entry) { e.SignBefore = e.SignBefore.Add(-time.Second) }},
		{"I10: it is signed until", func(e *ledger.Entry) { e.SignBefore = e.ValidBefore.Add(time.Second) }},
		{"another number of variants", func(e *ledger.Entry) { e.Variants = 2 }},
		{"I5: it was permitted for 4", func(e *ledger.Entry) { e.Variants = 4 }},
		{"I10: it is valid for 1m9s", func(e *ledger.Entry) { e.Variants, e.SignBefore = 0, e.SignBefore.Add(-time.Second) }},
		{"another payer, key, echo or other part", func(e *ledger.Entry) { e.Echo = []byte("f") }},
		{"I6: it is authorized and counts for $0.19", func(e *ledger.Entry) { e.Spent = 19 * payment.Cent }},
	} {
		t.Run(tc.want, func(t *testing.T) {
			w := *w
			w.TB = t
			w.wants(w.run(check.Options{}, func(b *ledger.Entry) {
				if b.ID == e.ID {
					tc.bend(b)
				}
			}), tc.want)
		})
	}
	w.wants(w.run(check.Options{NoEvents: true}, func(b *ledger.Entry) {
		if b.ID == settled.ID {
			b.Spent = 9 * payment.Cent // less than it moved
		}
	}), "I6: it is settled and counts for $0.09")
}

// A lane's nonce that was not used goes to another payment, and what the chain
// shows of it is that one's.
func TestLaneEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dead := w.onLane(10)
	w.now = w.now.Add(time.Minute)
	dead = w.ends(dead, ledger.ExpiredUnused, -1)
	paid := w.onLane(10)
	if paid.Slot != dead.Slot {
		t.Fatalf("%s after %s", paid.Slot, dead.Slot)
	}
	paid = w.ends(paid, ledger.Settled, 2)
	failed := w.ends(w.onLane(10), ledger.Cancelled, 2)
	use := func(e ledger.Entry, at time.Time) payment.Settlement {
		return payment.Settlement{Slot: e.Slot, TxHash: "0x01", Time: at, Moved: e.Terms.Recipients}
	}
	burnt := payment.Settlement{Slot: failed.Slot, TxHash: "0x02", Time: w.now, Failed: true}
	for _, tc := range []struct {
		name string
		uses []payment.Settlement
		want []string
	}{
		{"all is well", []payment.Settlement{use(paid, w.now), burnt}, nil},
		{"while the first was valid", []payment.Settlement{use(paid, dead.AuthorizedAt.Add(time.Second)), burnt}, []string{string(dead.ID) + ": I8: it is expired_unused"}},
		{"a failure that was taken for a payment", []payment.Settlement{{Slot: paid.Slot, TxHash: "0x01", Time: w.now, Failed: true}, burnt}, []string{string(paid.ID) + ": I8: it is settled, and the chain shows its cancellation or failure"}},
		{"a payment that was taken for a failure", []payment.Settlement{use(paid, w.now), use(failed, w.now)}, []string{string(failed.ID) + ": I8: it is cancelled, and 0x01 moved"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := *w
			w.TB = t
			w.wants(w.run(check.Options{Policy: w.rules, Uses: tc.uses}, nil), tc.want...)
		})
	}
	w.wants(w.run(check.Options{NoEvents: true}, func(e *ledger.Entry) { e.Slot = paid.Slot }), "I4: its slot is that of an earlier")
}

// A payment that waited for a person has a lane's nonce after one that was made
// later: each signature and each use is that of the one that had it then.
func TestLaneByOrderOfUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.n++
	waits := w.askLane(w.n, 45) // and ten cents for the fee, which makes it ask
	if waits.State != ledger.PendingApproval {
		t.Fatalf("%s, %v", waits.State, waits.Reasons)
	}
	w.now = w.now.Add(time.Second)
	dead := w.onLane(10)
	w.now = w.now.Add(5 * time.Minute)
	dead = w.ends(dead, ledger.ExpiredUnused, -1)
	w.approve(waits)
	w.now = w.now.Add(5 * time.Minute)
	paid := w.askLane(1, 45)
	if paid.ID != waits.ID || paid.State != ledger.Authorized || paid.Slot != dead.Slot {
		t.Fatalf("%s is %s on %s, after %s", paid.ID, paid.State, paid.Slot, dead.Slot)
	}
	paid = w.ends(paid, ledger.Settled, 2)
	sign := func(at time.Time) check.Signature { return check.Signature{Slot: paid.SlotKey(), At: at} }
	until := func(end time.Time) check.Signature {
		s := sign(paid.AuthorizedAt.Add(-2 * time.Minute))
		s.Until = end
		return s
	}
	use := func(at time.Time) payment.Settlement {
		return payment.Settlement{Slot: paid.Slot, TxHash: "0x01", Time: at, Moved: paid.Terms.Recipients}
	}
	both := []check.Signature{sign(paid.AuthorizedAt.Add(time.Second)), sign(dead.AuthorizedAt)}
	for _, tc := range []struct {
		name string
		o    check.Options
		want []string
	}{
		{"all is well", check.Options{Signatures: both, Uses: []payment.Settlement{use(w.now)}}, nil},
		{"the later one alone", check.Options{Signatures: both[:1], Uses: []payment.Settlement{use(w.now)}}, nil},
		{"the earlier one alone", check.Options{Signatures: both[1:]}, nil},
		{"signed before anybody had it", check.Options{Signatures: append(both[:2:2], sign(dead.AuthorizedAt.Add(-time.Minute)))}, []string{string(dead.ID) + ": I3: it was signed"}},
		{"signed when nobody had it", check.Options{Signatures: append(both[:2:2], sign(paid.AuthorizedAt.Add(-2*time.Minute)))}, []string{string(paid.ID) + ": I3: it was signed"}},
		{"what is dead signed again", check.Options{Signatures: append(both[:2:2], until(dead.ValidBefore))}, nil},
		{"the later one signed before", check.Options{Signatures: append(both[:2:2], until(paid.ValidBefore))}, []string{string(paid.ID) + ": I3: it was signed"}},
		{"used while the first was valid", check.Options{Uses: []payment.Settlement{use(dead.AuthorizedAt.Add(time.Second))}}, []string{string(dead.ID) + ": I6: 0x01 moved something else", string(paid.ID) + ": I8: it is settled, and the chain shows nothing"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := *w
			w.TB = t
			tc.o.Policy = w.rules
			problems := w.run(tc.o, nil)
			w.wants(problems, tc.want...)
			if len(problems) > 2 {
				t.Errorf("%d problems: %v", len(problems), problems)
			}
		})
	}
}

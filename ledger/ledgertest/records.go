package ledgertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// testDenied finds denials in the record, with their reasons.
func testDenied(w *world) {
	e := w.reserve(w.fetch(key("k"), func(r *ledger.Request) {
		r.Verdict = denied(r.Verdict)
		r.Verdict.Policy = payment.Hash{7}
	}))
	got := w.want(w.entry(e.ID), ledger.Denied)
	w.same(got, e)
	if len(got.Reasons) != 1 || got.Reasons[0].Text != "evil.example is denied" || got.Policy != (payment.Hash{7}) || got.Version != 1 || !got.Slot.IsZero() {
		w.Errorf("the record is %+v", got)
	}
	// Even the zero verdict is a denial with a reason.
	zero := w.want(w.reserve(w.fetch(func(r *ledger.Request) { r.Verdict = policy.Verdict{} })), ledger.Denied)
	if len(zero.Reasons) == 0 {
		w.Errorf("a denial without a reason")
	}
	w.want(w.reserve(w.fetch(func(r *ledger.Request) { r.Verdict.Status = 77 })), ledger.Denied)
	w.verify()
}

// testEntries queries by agent, state, host and time, in both orders.
func testEntries(w *world) {
	var all []payment.ID
	for i := range 12 {
		a, h := "trader", "feed.example"
		if i%2 == 1 {
			a = "other"
		}
		if i%3 == 1 {
			h = "news.example"
		}
		e := w.allow(w.fetch(agent(a), host(h), path(fmt.Sprint("/", i))))
		if i%4 == 0 {
			w.move(e, ledger.InDoubt, ledger.ByClient)
		}
		all = append(all, e.ID)
		if i%2 == 1 {
			w.clock.Advance(time.Minute)
		}
	}
	for _, tt := range []struct {
		name string
		q    ledger.Query
		want []int
	}{
		{"all", ledger.Query{}, []int{11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}},
		{"oldest", ledger.Query{Oldest: true}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		{"limit", ledger.Query{Limit: 3}, []int{11, 10, 9}},
		{"oldest three", ledger.Query{Limit: 3, Oldest: true}, []int{0, 1, 2}},
		{"agent", ledger.Query{Agent: "other"}, []int{11, 9, 7, 5, 3, 1}},
		{"host", ledger.Query{Host: "news.example"}, []int{10, 7, 4, 1}},
		{"state", ledger.Query{States: []ledger.State{ledger.InDoubt}}, []int{8, 4, 0}},
		{"states", ledger.Query{States: []ledger.State{ledger.InDoubt, ledger.Authorized}, Limit: 2}, []int{11, 10}},
		{"since", ledger.Query{Since: noon.Add(4 * time.Minute)}, []int{11, 10, 9, 8}},
		{"until", ledger.Query{Until: noon.Add(time.Minute)}, []int{1, 0}},
		{"between", ledger.Query{Since: noon.Add(time.Minute), Until: noon.Add(2 * time.Minute), Agent: "trader"}, []int{2}},
		{"after", ledger.Query{After: all[5], Limit: 3}, []int{4, 3, 2}},
		{"after, oldest", ledger.Query{After: all[8], Oldest: true}, []int{9, 10, 11}},
		{"after one of others", ledger.Query{After: all[6], Agent: "other"}, []int{5, 3, 1}},
		{"after the last", ledger.Query{After: all[0]}, nil},
		{"none", ledger.Query{Agent: "nobody"}, nil},
		{"none of that state", ledger.Query{States: []ledger.State{ledger.Settled}}, nil},
	} {
		var got []int
		for e, err := range w.s.Entries(w.ctx, tt.q) {
			if err != nil {
				w.Fatalf("%s: %v", tt.name, err)
			}
			for i, id := range all {
				if id == e.ID {
					got = append(got, i)
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			w.Errorf("%s gives %v, want %v", tt.name, got, tt.want)
		}
	}
	for _, err := range w.s.Entries(w.ctx, ledger.Query{After: payment.NewID(w.now())}) {
		if !errors.Is(err, ledger.ErrNotFound) {
			w.Errorf("after a payment that is not there: %v", err)
		}
	}
	// An iteration may be left, and the store called from within one.
	for e, err := range w.s.Entries(w.ctx, ledger.Query{}) {
		if err != nil {
			w.Fatalf("Entries: %v", err)
		}
		w.entry(e.ID)
		w.allow(w.fetch(path("/within")))
		break
	}
}

// testChains reads the events of a payment that went all the way, and replays
// them.
func testChains(w *world) {
	e := w.ask(w.fetch(asks(), watched(), key("a secret key"), func(r *ledger.Request) {
		r.Offer.Echo = []byte("the echo of the seller")
		r.Offer.ChallengeID = "challenge \"1\" é\u202e\n"
	}))
	w.decide(e, true)
	e = w.allow(w.fetch(asks(), watched(), key("a secret key"), func(r *ledger.Request) {
		r.Offer.Echo = []byte("the echo of the seller")
		r.Offer.ChallengeID = "challenge \"2\" é\u202e\n"
	}))
	w.clock.Advance(time.Second)
	e = w.move(e, ledger.Authorized, ledger.ByClient, func(c *ledger.Change) { c.Sent = 1 })
	e = w.move(e, ledger.InDoubt, ledger.ByClient, func(c *ledger.Change) { c.Note = "reset by peer" })
	e = w.move(e, ledger.Claimed, ledger.ByClient, delivered, func(c *ledger.Change) {
		c.Receipt = &payment.Receipt{Claim: payment.ClaimPaid, TxHash: "0xfeed", Code: "ok"}
	})
	e = w.move(e, ledger.Settled, ledger.ByChain, spentAt(w.now()), func(c *ledger.Change) { c.Who = "block 7" })

	events, err := w.s.Events(w.ctx, e.ID)
	if err != nil {
		w.Fatalf("Events: %v", err)
	}
	var moves []string
	for i, ev := range events {
		moves = append(moves, ev.From.String()+">"+ev.To.String())
		if ev.Payment != e.ID || ev.Seq != int64(i)+1 || ev.At.IsZero() {
			w.Errorf("event %d: %+v", i+1, ev)
		}
		w.canonical(ev.Data)
		for _, secret := range []string{"a secret key", "the echo"} {
			if bytes.Contains(ev.Data, []byte(secret)) {
				w.Errorf("event %d tells %q: %s", i+1, secret, ev.Data)
			}
		}
	}
	want := "proposed>pending_approval pending_approval>approved approved>authorized authorized>authorized authorized>in_doubt in_doubt>claimed claimed>settled"
	if got := strings.Join(moves, " "); got != want {
		w.Errorf("the events are %s", got)
	}
	if err := ledger.VerifyChain(events); err != nil {
		w.Errorf("VerifyChain: %v", err)
	}
	if events[len(events)-1].Hash != e.Head || e.Version != int64(len(events)) {
		w.Errorf("the head is %v at version %d", e.Head, e.Version)
	}
	replayed, err := ledger.Replay(events)
	if err != nil || replayed.State != e.State || replayed.Cost != e.Cost || replayed.TermsHash != e.TermsHash ||
		!replayed.SpentAt.Equal(e.SpentAt) || !replayed.AuthorizedAt.Equal(e.AuthorizedAt) || !replayed.ValidBefore.Equal(e.ValidBefore) ||
		replayed.SlotKey() != e.Slot.String() || replayed.Receipt.TxHash != "0xfeed" || !replayed.Delivered {
		w.Errorf("replayed: %+v, %v", replayed, err)
	}

	// Every change of any link is seen.
	for i := range events {
		for name, change := range map[string]func(*ledger.Event){
			"payment": func(ev *ledger.Event) { ev.Payment = payment.NewID(noon) },
			"seq":     func(ev *ledger.Event) { ev.Seq++ },
			"at":      func(ev *ledger.Event) { ev.At = ev.At.Add(time.Microsecond) },
			"from":    func(ev *ledger.Event) { ev.From++ },
			"to":      func(ev *ledger.Event) { ev.To = ledger.ExpiredUnused },
			"by":      func(ev *ledger.Event) { ev.By = ledger.ByOperator },
			"data":    func(ev *ledger.Event) { ev.Data = append(bytes.Clone(ev.Data), ' ') },
			"prev":    func(ev *ledger.Event) { ev.Prev[0]++ },
			"hash":    func(ev *ledger.Event) { ev.Hash[31]++ },
		} {
			forged := append([]ledger.Event(nil), events...)
			change(&forged[i])
			if ledger.VerifyChain(forged) == nil {
				w.Errorf("event %d with another %s verifies", i+1, name)
			}
		}
		if i > 0 && ledger.VerifyChain(append(append([]ledger.Event(nil), events[:i]...), events[i+1:]...)) == nil && i < len(events)-1 {
			w.Errorf("without event %d it verifies", i+1)
		}
	}
	// Also where a link is forged with its hash, and the next one's Prev.
	for i := range len(events) - 1 {
		forged := append([]ledger.Event(nil), events...)
		forged[i].Data = []byte(`{"forged":true}`)
		forged[i].Hash = forged[i].Sum()
		forged[i+1].Prev = forged[i].Hash
		if ledger.VerifyChain(forged) == nil {
			w.Errorf("a forged event %d verifies", i+1)
		}
	}
	if ledger.VerifyChain(nil) == nil {
		w.Errorf("no events verify")
	}
	if _, err := w.s.Events(w.ctx, payment.NewID(noon)); !errors.Is(err, ledger.ErrNotFound) {
		w.Errorf("Events of nothing: %v, want ErrNotFound", err)
	}
	w.verify()
}

// canonical demands one JSON object with sorted keys, no spaces and no floats.
func (w *world) canonical(data []byte) {
	w.Helper()
	var v map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		w.Errorf("event data %s: %v", data, err)
		return
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		w.Errorf("event data: %v", err)
	}
	if got := bytes.TrimSpace(out.Bytes()); !bytes.Equal(got, data) {
		w.Errorf("event data is not canonical:\n%s\nwant\n%s", data, got)
	}
}

// testCopies changes all that was given to the store and came from it.
func testCopies(w *world) {
	r := w.fetch(payees(payment.Address{19: 1}, payment.Address{19: 2}), func(r *ledger.Request) {
		r.Offer.Echo = []byte("echo")
		r.Verdict.Reasons = []policy.Reason{{Status: payment.Allowed, Code: "kept"}}
	})
	e := w.allow(r)
	spoil := func(e ledger.Entry) {
		e.Terms.Recipients[0] = payment.Recipient{}
		e.Echo[0] = 'X'
		e.Reasons[0].Code = "spoiled"
	}
	check := func(what string) {
		w.Helper()
		got := w.entry(e.ID)
		if got.Terms.Hash() != got.TermsHash || string(got.Echo) != "echo" || got.Reasons[0].Code != "kept" {
			w.Errorf("after a change to %s the ledger has %v, echo %q, reasons %v", what, got.Terms.Recipients, got.Echo, got.Reasons)
		}
	}
	spoil(ledger.Entry{Terms: r.Payment.Terms, Echo: r.Offer.Echo, Reasons: r.Verdict.Reasons})
	check("the request")
	spoil(e)
	check("what Reserve gave")
	spoil(w.entry(e.ID))
	check("what Entry gave")
	spoil(w.move(w.entry(e.ID), ledger.InDoubt, ledger.ByClient))
	check("what Advance gave")
	for e, err := range w.s.Entries(w.ctx, ledger.Query{}) {
		if err == nil {
			spoil(e)
		}
	}
	check("what Entries gave")
	events, _ := w.s.Events(w.ctx, e.ID)
	events[0].Data[0] = 'X'
	if events, _ = w.s.Events(w.ctx, e.ID); ledger.VerifyChain(events) != nil {
		w.Errorf("a change to what Events gave broke the chain")
	}
	asked := w.ask(w.fetch(path("/asked"), asks()))
	w.approval(asked.ApprovalID).Terms.Recipients[0] = payment.Recipient{}
	if a := w.approval(asked.ApprovalID); a.Terms.Hash() != a.TermsHash {
		w.Errorf("a change to what Approval gave changed the approval")
	}
	w.verify()
}

// testHostile gives text that is none of the store's business where text is
// taken, and IDs that are none.
func testHostile(w *world) {
	for _, s := range hostile {
		if _, err := w.s.Entry(w.ctx, payment.ID(s)); !errors.Is(err, ledger.ErrNotFound) {
			w.Errorf("Entry(%q): %v, want ErrNotFound", s, err)
		}
		if _, err := w.s.Events(w.ctx, payment.ID(s)); !errors.Is(err, ledger.ErrNotFound) {
			w.Errorf("Events(%q): %v, want ErrNotFound", s, err)
		}
		if _, err := w.s.Approvals().Approval(w.ctx, payment.ApprovalID(s), w.now()); !errors.Is(err, ledger.ErrNotFound) {
			w.Errorf("Approval(%q): %v, want ErrNotFound", s, err)
		}
		if _, err := w.s.Advance(w.ctx, ledger.Change{ID: payment.ID(s), To: ledger.Claimed, Now: w.now()}); !errors.Is(err, ledger.ErrNotFound) {
			w.Errorf("Advance(%q): %v, want ErrNotFound", s, err)
		}
		if _, _, err := w.s.Reserve(w.ctx, w.fetch(func(r *ledger.Request) { r.Payment.ID = payment.ID(s) })); err == nil {
			w.Errorf("a payment with the ID %q was stored", s)
		}
		l := scoped(atMost(10*payment.Dollar, ever), policy.Scope{Kind: policy.ScopeHost, Agent: s + "!", Host: s})
		e := w.allow(w.fetch(agent(s+"!"), host(s), path(s), key(s), caps(l), func(r *ledger.Request) {
			r.Payment.Purpose, r.Offer.Realm, r.Offer.ChallengeID = s, s, s
		}))
		got := w.entry(e.ID)
		w.same(got, e)
		if got.Agent != s+"!" || got.Host != s || got.Purpose != s || got.ChallengeID != s {
			w.Errorf("%q was stored as %q, %q, %q, %q", s, got.Agent, got.Host, got.Purpose, got.ChallengeID)
		}
		if u := w.use(l); u.Count != 1 {
			w.Errorf("host %q counts %d payments, want 1", s, u.Count)
		}
		n := 0
		for _, err := range w.s.Entries(w.ctx, ledger.Query{Agent: s + "!", Host: s}) {
			if n++; err != nil {
				w.Fatalf("Entries: %v", err)
			}
		}
		if n != 1 {
			w.Errorf("agent %q has %d entries", s, n)
		}
	}
	for name, change := range map[string]with{
		"agent":       func(r *ledger.Request) { r.Payment.Agent = "" },
		"recipients":  func(r *ledger.Request) { r.Payment.Terms.Recipients = nil },
		"fingerprint": func(r *ledger.Request) { r.Fingerprint = payment.Hash{} },
		"echo":        func(r *ledger.Request) { r.Offer.Echo = make([]byte, payment.MaxEcho+1) },
	} {
		r := w.fetch()
		change(&r)
		if _, _, err := w.s.Reserve(w.ctx, r); err == nil {
			w.Errorf("a request without a good %s was stored", name)
		}
	}
	w.verify()
}

var hostile = []string{
	"../../etc/passwd", "..%2f..%2f", "%2e%2e/", "a\x00b", "' OR '1'='1", `" OR ""="`, "1; DROP TABLE entries; --", "%", "_", "*", "?", "$1", ":id", "@p",
	"\xff\xfe", "\u202e\u200b", strings.Repeat("A", 1000), "01ARZ3NDEKTSV4RRFFQ69G5FAV ", "01arz3ndektsv4rrffq69g5fav", "{}", `{"a":1}`, "NULL", "-1", "\n", " ", "ß", "İ", "𝟘", "0x00", "appr_", "appr_' --",
}

// testContexts calls with a context that has ended.
func testContexts(w *world) {
	e := w.allow(w.fetch())
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	r := w.fetch(path("/late"))
	if _, _, err := w.s.Reserve(ctx, r); !errors.Is(err, context.Canceled) {
		w.Errorf("Reserve: %v, want context.Canceled", err)
	}
	if _, err := w.s.Advance(ctx, ledger.Change{ID: e.ID, Version: e.Version, To: ledger.Claimed, Now: w.now()}); !errors.Is(err, context.Canceled) {
		w.Errorf("Advance: %v, want context.Canceled", err)
	}
	if _, err := w.s.Entry(ctx, e.ID); !errors.Is(err, context.Canceled) {
		w.Errorf("Entry: %v, want context.Canceled", err)
	}
	if _, err := w.s.Events(ctx, e.ID); !errors.Is(err, context.Canceled) {
		w.Errorf("Events: %v, want context.Canceled", err)
	}
	if _, err := w.s.Use(ctx, []policy.Limit{atMost(1, ever)}, w.now()); !errors.Is(err, context.Canceled) {
		w.Errorf("Use: %v, want context.Canceled", err)
	}
	if _, err := w.s.Approvals().List(ctx, "", false, w.now()); !errors.Is(err, context.Canceled) {
		w.Errorf("List: %v, want context.Canceled", err)
	}
	n := 0
	for _, err := range w.s.Entries(ctx, ledger.Query{}) {
		if n++; !errors.Is(err, context.Canceled) {
			w.Errorf("Entries: %v, want context.Canceled", err)
		}
	}
	if n != 1 {
		w.Errorf("Entries yielded %d times, want one error", n)
	}
	// Nothing took effect.
	if _, err := w.s.Entry(w.ctx, r.Payment.ID); !errors.Is(err, ledger.ErrNotFound) {
		w.Errorf("after a cancelled Reserve: %v", err)
	}
	w.want(w.entry(e.ID), ledger.Authorized)

	// Cancelled in the middle of many, each took effect whole or not at all.
	l := atMost(1000*payment.Dollar, ever)
	ctx, cancel = context.WithCancel(w.ctx)
	ids := make([]payment.ID, 64)
	w.together(64, func(i int) {
		r := w.fetch(path(fmt.Sprint("/", i)), caps(l))
		ids[i] = r.Payment.ID
		if i == 32 {
			cancel()
		}
		if _, _, err := w.s.Reserve(ctx, r); err != nil && !errors.Is(err, context.Canceled) {
			w.Errorf("Reserve: %v", err)
		}
	})
	stored := payment.USD(1)
	for _, id := range ids {
		if _, err := w.s.Entry(w.ctx, id); err == nil {
			stored++
		}
	}
	w.uses(l, stored*payment.Dollar, int64(stored))
	w.verify()
}

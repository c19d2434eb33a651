package canopy_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
)

// twoOf is a policy by which two of three people have to say yes.
const twoOf = openPolicy + "approvers = [\"ana\", \"ben\", \"cyd\"]\nquorum = 2\n"

// hire lets people of these names rule, and returns what each of them rules by.
func (w *world) hire(names ...string) map[string]func(canopy.ApprovalID, bool) (canopy.Approval, error) {
	w.t.Helper()
	register, err := approvals.NewRegister(w.store, w.clock.Now)
	must(w.t, err)
	people := map[string]func(canopy.ApprovalID, bool) (canopy.Approval, error){}
	for _, name := range names {
		c, err := register.Add(context.Background(), name)
		must(w.t, err)
		people[name] = func(id canopy.ApprovalID, approve bool) (canopy.Approval, error) {
			return w.client.Decide(context.Background(), id, canopy.Ruling{Approve: approve, By: name, Credential: c.Reveal()})
		}
	}
	return people
}

// Decide takes the word of the approvers whom the policy names, each with a
// credential of their own, and of nobody else. Attack 53.
func TestAttack53_DecideNeedsAnApprover(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: twoOf})
		people := w.hire("ana", "ben", "eve")
		_, url := w.sells(report)
		id := w.pending(w.get(url)).Result.ApprovalID
		for name, tt := range map[string]struct {
			r    canopy.Ruling
			want error
		}{
			"no credential": {canopy.Ruling{By: "ana"}, canopy.ErrCredential},
			"a wrong one":   {canopy.Ruling{By: "ana", Credential: "canopy_ana_" + strings.Repeat("a", 52)}, canopy.ErrCredential},
			"nobody":        {canopy.Ruling{}, approvals.ErrNoName},
			"the agent":     {canopy.Ruling{By: "tester"}, ledger.ErrSelf},
			"in no form":    {canopy.Ruling{Credential: "hunter2"}, canopy.ErrCredential},
		} {
			for _, approve := range []bool{true, false} {
				tt.r.Approve = approve
				_, err := w.client.Decide(w.context(), id, tt.r)
				if !errors.Is(err, tt.want) || tt.r.Credential != "" && strings.Contains(err.Error(), tt.r.Credential) {
					t.Errorf("%s, approve %v: %v, want %v", name, approve, err, tt.want)
				}
			}
		}
		if _, err := people["eve"](id, true); !errors.Is(err, ledger.ErrNotNamed) {
			t.Errorf("who is not named: %v", err)
		}
		if _, err := w.client.DecideInChat(w.context(), id, canopy.Ruling{Approve: true}); !errors.Is(err, canopy.ErrChatDisabled) {
			t.Errorf("in the chat: %v", err)
		}
		desk := approvals.NewDesk(w.store, "cli", w.clock.Now)
		if _, err := desk.Rule(w.context(), id, canopy.Ruling{Approve: true, By: "ana"}); !errors.Is(err, canopy.ErrCredential) {
			t.Errorf("at the desk without a credential: %v", err)
		}
		if a, err := w.client.ApprovalStatus(w.context(), id); err != nil || a.Status != ledger.ApprovalPending || len(a.Votes) != 0 {
			t.Fatalf("it is %+v, %v", a, err)
		}

		a, err := people["ana"](id, true)
		if err != nil || a.Status != ledger.ApprovalPending || a.Yes() != 1 || a.Votes[0].Via != "client" {
			t.Errorf("one of two: %+v, %v", a, err)
		}
		w.pending(w.get(url))
		w.signed(0)
		if a, err = people["ben"](id, true); err != nil || a.Status != ledger.ApprovalGranted {
			t.Errorf("two of two: %+v, %v", a, err)
		}
		w.bought(w.get(url))
		w.spent(report)

		// Another agent's client does not see it.
		w.clock.Advance(time.Second)
		id = w.pending(w.get(url)).Result.ApprovalID
		other := newWorld(t, setup{policy: twoOf, config: func(_ *world, c *canopy.Config) { c.Agent, c.Store = "other", w.store }})
		if _, err := other.client.Decide(w.context(), id, canopy.Ruling{Approve: true, By: "ana", Credential: "x"}); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("another agent's client: %v", err)
		}
		if strings.Contains(w.logs.String(), "canopy_ana_") {
			t.Errorf("a credential is logged: %s", w.logs)
		}
	})
}

// Whoever waits goes on once the quorum is there, and not before: a Fetch that
// waits, WaitForApproval and the next equal call, and Resume of a transfer.
func TestGoesOnAfterAQuorum(t *testing.T) {
	for name, wait := range map[string]func(w *world, url string, id canopy.ApprovalID) got{
		"WithWait": func(w *world, url string, _ canopy.ApprovalID) got { return w.get(url, canopy.WithWait(time.Hour)) },
		"WaitForApproval": func(w *world, url string, id canopy.ApprovalID) got {
			a, err := w.client.WaitForApproval(w.context(), id)
			if err != nil || a.Status != ledger.ApprovalGranted {
				w.t.Errorf("%s, %v", a.Status, err)
			}
			return w.get(url)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{policy: twoOf})
				people := w.hire("ana", "ben", "cyd")
				s, url := w.sells(report)
				id := w.pending(w.get(url)).Result.ApprovalID
				var wg sync.WaitGroup
				wg.Go(func() {
					for _, name := range []string{"cyd", "ana"} {
						time.Sleep(time.Minute)
						w.signed(0)
						if _, err := people[name](id, true); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					}
				})
				start := time.Now()
				g := w.bought(wait(w, url, id))
				if took := time.Since(start); took < 2*time.Minute || took > 2*time.Minute+2*time.Second {
					t.Errorf("it took %v, want two minutes", took)
				}
				if g.paid.ApprovalID != id {
					t.Errorf("carried out as %+v", g.paid)
				}
				wg.Wait()
				w.handed(s, 1)
				w.spent(report)
			})
		})
	}
}

// The chat rules where the policy lets it, is recorded as the chat, and is the
// agent under no other name.
func TestDecideInChat(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: openPolicy + "chat_approval = true\n"})
		_, url := w.sells(report)
		id := w.pending(w.get(url)).Result.ApprovalID
		if _, err := w.client.Decide(w.context(), id, canopy.Ruling{Approve: true, By: "ana"}); !errors.Is(err, canopy.ErrNoApprovers) {
			t.Errorf("as a person: %v", err)
		}
		if _, err := w.client.DecideInChat(w.context(), id, canopy.Ruling{Approve: true, By: "Tester"}); !errors.Is(err, ledger.ErrSelf) {
			t.Errorf("as the agent: %v", err)
		}
		a, err := w.client.DecideInChat(w.context(), id, canopy.Ruling{Approve: true, Reason: "go on"})
		if err != nil || a.Status != ledger.ApprovalGranted || a.By != "chat" || a.Via != "chat" || a.Comment != "go on" {
			t.Errorf("%+v, %v", a, err)
		}
		w.bought(w.get(url))

		// A policy that has it off by now refuses it, for what was asked before too.
		id = w.pending(w.get(url)).Result.ApprovalID
		off := newWorld(t, setup{config: func(_ *world, c *canopy.Config) { c.Store = w.store }})
		if _, err := off.client.DecideInChat(w.context(), id, canopy.Ruling{Approve: true}); !errors.Is(err, canopy.ErrChatDisabled) {
			t.Errorf("switched off: %v", err)
		}
	})
}

// An approval serves the payment, the agent and the terms that it names: each of
// three of each, against each. Attack 56.
func TestAttack56_Swaps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		agents := []string{"one", "two", "three"}
		var clients []*world
		paths, prices := []string{"/goods/a", "/goods/b", "/goods/c"}, []canopy.USD{report, report + canopy.Dollar, report - canopy.Dollar}
		s := canopytest.NewSeller(w.chain, canopytest.SellerConfig{Routes: []canopytest.Route{{Pattern: "GET /goods/", Price: report}}})
		for _, name := range agents {
			o := newWorld(t, setup{policy: strings.Replace(openPolicy, "$20 / 24h", "$200 / 24h", 1) + "approval_ttl = \"1h\"\n", config: func(o *world, c *canopy.Config) {
				c.Agent, c.Store = name, w.store
				c.Treasury.Chains = nil // balances are read by none of them
			}})
			o.net.Serve(t, "127.0.0.1:8402", s)
			clients = append(clients, o)
		}
		call := func(agent, path, price int) got {
			s.SetPrice("GET /goods/", prices[price])
			return clients[agent].get("http://127.0.0.1:8402" + paths[path])
		}
		for agent := range agents {
			for path := range paths {
				for _, o := range append(clients, w) { // what was asked before is over
					o.clock.Advance(2 * time.Hour)
				}
				p := clients[agent].pending(call(agent, path, 0))
				w.rule(p.Result.ApprovalID, true)
				for a := range agents {
					for q := range paths {
						for price := range prices {
							if a == agent && q == path && price == 0 {
								continue
							}
							if g := call(a, q, price); g.err == nil {
								t.Fatalf("the approval of %s for %s served %s for %s at %s: %+v", agents[agent], paths[path], agents[a], paths[q], prices[price], g.paid)
							}
						}
					}
				}
				if g := call(agent, path, 0); g.err != nil || g.paid.ApprovalID != p.Result.ApprovalID {
					t.Fatalf("the approval of %s for %s was not carried out: %+v, %v", agents[agent], paths[path], g.paid, g.err)
				}
			}
		}
		w.handed(s, 9)
	})
}

// An approver lets a call go over a cap, and the very same call goes on, once.
func TestOverride(t *testing.T) {
	const document = "[policy.default]\nmax_payment = \"$10\"\ncaps = [\"$10 / 24h\"]\nallow = [\"*\"]\napprovers = [\"ana\"]\n"
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: document})
		register, err := approvals.NewRegister(w.store, w.clock.Now)
		must(t, err)
		credential, err := register.Add(w.context(), "ana")
		must(t, err)
		_, url := w.sells(report)
		w.bought(w.get(url + "/first"))
		refused := w.denied(w.get(url, canopy.WithKey("k")), "cap_exceeded")
		over := func(id canopy.PaymentID) (canopy.Approval, error) {
			return w.store.(ledger.Overrider).Override(w.context(), ledger.Override{
				Payment: id, Approvers: []string{"ana"}, By: "ana", Credential: credential.Reveal(), Reason: "it is due", Policy: w.rules.Hash(), Now: w.clock.Now(),
			})
		}
		a, err := over(refused.Result.PaymentID)
		must(t, err)
		if status, err := w.client.ApprovalStatus(w.context(), a.ID); err != nil || status.Status != ledger.ApprovalGranted || !status.Override {
			t.Errorf("%+v, %v", status, err)
		}
		w.denied(w.get(url+"/other"), "cap_exceeded")
		if g := w.bought(w.get(url, canopy.WithKey("k"))); g.paid.PaymentID != a.Payment || g.paid.ApprovalID != a.ID {
			t.Errorf("carried out as %+v, want %s", g.paid, a.Payment)
		}
		w.spent(2 * report)
		w.denied(w.get(url), "cap_exceeded")
	})
}

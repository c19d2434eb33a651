package canopy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	ledgercheck "github.com/canopy-go/canopy/ledger/check"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/x402"
)

// maxGas is a thousandth of the coin: five times what a transaction costs at the
// chain's first base fee.
const maxGas = 1e15

// gasNode is the chain's node, which a test bends.
type gasNode struct {
	*canopytest.Chain
	quote func(payment.GasQuote) (payment.GasQuote, error)
	send  func(raw []byte) error // before it is handed over; an error keeps it
	blind bool                   // it shows no receipts
}

func (n *gasNode) Receipt(ctx context.Context, hash string) (found, ok bool, block payment.Block, err error) {
	if n.blind {
		return false, false, payment.Block{}, nil
	}
	return n.Chain.Receipt(ctx, hash)
}

func (n *gasNode) Gas(ctx context.Context, a canopy.Address, size int) (payment.GasQuote, error) {
	q, err := n.Chain.Gas(ctx, a, size)
	if err == nil && n.quote != nil {
		return n.quote(q)
	}
	return q, err
}

func (n *gasNode) Broadcast(ctx context.Context, raw []byte) (string, error) {
	if n.send != nil {
		if err := n.send(raw); err != nil {
			return "", err
		}
	}
	return n.Chain.Broadcast(ctx, raw)
}

// carriers is a world whose client pays by transactions of its own.
type carriers struct {
	*world
	node *gasNode
}

func newCarriers(t testing.TB, s setup) *carriers {
	t.Helper()
	out := &carriers{}
	config := s.config
	s.config = func(w *world, c *canopy.Config) {
		out.node = &gasNode{Chain: w.chain}
		c.Treasury.Chains = []canopy.Chain{out.node}
		c.Treasury.Gas = map[canopy.ChainID]canopy.Gas{payment.Base: {Max: payment.UnitsOf(maxGas)}}
		w.chain.FundCoin(w.spy.Address(), payment.UnitsOf(1e18))
		if config != nil {
			config(w, c)
		}
	}
	out.world = newWorld(t, s)
	return out
}

// pay pays, and fails the test unless it is allowed.
func (w *carriers) pay(t canopy.Transfer) (canopy.Result, ledger.Entry) {
	w.t.Helper()
	r, err := w.client.Pay(context.Background(), t)
	must(w.t, err)
	return r, w.state(r.PaymentID, ledger.Claimed)
}

func (w *carriers) payDoubt(t canopy.Transfer) *canopy.InDoubtError {
	w.t.Helper()
	_, err := w.client.Pay(context.Background(), t)
	return as[*canopy.InDoubtError](w.t, err)
}

// payDenied pays, and fails the test unless it is denied with the code and
// nothing was signed.
func (w *carriers) payDenied(t canopy.Transfer, code string) canopy.Result {
	w.t.Helper()
	before := w.spy.Signatures()
	r, err := w.client.Pay(context.Background(), t)
	must(w.t, err)
	if r.Status != canopy.Denied || r.Code != code || w.spy.Signatures() != before {
		w.t.Errorf("%s (%s) after %d signatures, want %s", r.Status, r.Reason, w.spy.Signatures()-before, code)
	}
	return r
}

// burnt fails the test where the account paid more for gas than the payment
// had, or the ledger is not sound.
func (w *carriers) burnt(id canopy.PaymentID, most uint64) {
	w.t.Helper()
	var sum payment.Units
	for _, tx := range w.chain.Carried() {
		sum, _ = sum.Add(tx.Paid)
		if tx.Sender != w.spy.Address() || tx.Token != w.chain.Dollar().Address {
			w.t.Errorf("a transaction of %s to %s", tx.Sender, tx.Token)
		}
	}
	if sum.Cmp(payment.UnitsOf(most)) > 0 {
		w.t.Errorf("gas of %s, and at most %s was allowed", sum.Coin(), payment.UnitsOf(most).Coin())
	}
	w.sound()
	o := ledgercheck.Options{GasPerDay: map[payment.ChainID]payment.Units{payment.Base: payment.UnitsOf(10 * maxGas)}}
	for _, s := range w.spy.Calls() {
		o.Signatures = append(o.Signatures, ledgercheck.Signature{Slot: s.Slot, At: w.clock.Now()})
	}
	report, err := ledgercheck.Run(context.Background(), w.store, o)
	must(w.t, err)
	for _, p := range report.Problems {
		w.t.Error(p)
	}
}

func TestCarry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newCarriers(t, setup{})
		preview, err := w.client.Preview(context.Background(), dollars(dime, ""))
		must(t, err)
		if preview.Status != canopy.Allowed || preview.Gas != payment.UnitsOf(maxGas) {
			t.Errorf("preview %+v", preview)
		}
		r, e := w.pay(dollars(dime, ""))
		all := w.chain.Carried()
		if len(all) != 1 || !all[0].Mined || all[0].Err != nil || r.TxHash != all[0].Hash || r.Gas != payment.UnitsOf(maxGas) || r.Settlement != canopy.SettlementClaimed {
			t.Fatalf("%+v, %+v", r, all)
		}
		if tx := all[0]; tx.Nonce != 0 || tx.GasLimit != 200_000 || tx.MaxFee != 2*1e9+1e6+1 || tx.MaxTip != 1e6 {
			t.Errorf("%+v", tx)
		}
		w.chain.AssertTransfers(t, canopytest.Move{From: w.client.Address(), To: friend, Amount: dime})
		if len(e.Carries) != 1 || e.Sends != 1 || e.Gas != payment.UnitsOf(maxGas) || len(w.spy.Digests()) != 2 {
			t.Errorf("%d transactions, sent %d times, %d digests", len(e.Carries), e.Sends, len(w.spy.Digests()))
		}
		w.chain.Finalize()
		w.reconcile()
		w.state(r.PaymentID, ledger.Settled)
		if again, err := w.client.Pay(context.Background(), dollars(dime, "second")); err != nil || again.State != ledger.Claimed || w.chain.Carried()[1].Nonce != 1 {
			t.Errorf("the next one: %+v, %v", again, err)
		}
		w.spent(2 * dime)
		w.burnt(r.PaymentID, 2*maxGas)
	})
}

// A facilitator is preferred where there is one, and costs no gas.
func TestCarryFacilitatorFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTransfers(t, setup{config: func(w *world, c *canopy.Config) {
			c.Treasury.Gas = map[canopy.ChainID]canopy.Gas{payment.Base: {Max: payment.UnitsOf(maxGas)}}
		}}, canopytest.FacilitatorConfig{})
		if r := w.pay(dollars(dime, "")); !r.Gas.IsZero() || len(w.chain.Carried()) != 0 || w.f.Settles() != 1 {
			t.Errorf("%+v, %d transactions", r, len(w.chain.Carried()))
		}
		w.once(dime)
	})
}

// What would cost too much, or cannot be known, is denied before anything is
// signed.
func TestCarryDenied(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newCarriers(t, setup{})
		deny := func(code, text string, quote func(*payment.GasQuote) error) {
			t.Helper()
			w.node.quote = func(q payment.GasQuote) (payment.GasQuote, error) { err := quote(&q); return q, err }
			if r := w.payDenied(dollars(dime, ""), code); !strings.Contains(r.Reason, text) {
				t.Errorf("%s: %q, want %q", code, r.Reason, text)
			}
		}
		deny(canopy.CodeInsufficientGas, "Insufficient gas: 0.001 can be needed, and the account holds 0.000999999999999999 of the coin of base",
			func(q *payment.GasQuote) error { q.Coin = payment.UnitsOf(maxGas - 1); return nil })
		deny(canopy.CodeMaxGas, "Gas too dear", func(q *payment.GasQuote) error { q.BaseFee = 4_500_000_000; return nil })
		deny(canopy.CodeMaxGas, "Gas too dear", func(q *payment.GasQuote) error { q.BaseFee = 1<<64 - 1; return nil })
		deny(canopy.CodeMaxGas, "Gas too dear", func(q *payment.GasQuote) error { q.Tip = 1<<64 - 1; return nil })
		deny(canopy.CodeMaxGas, "Gas too dear", func(q *payment.GasQuote) error { q.DataFee = payment.UnitsOf(maxGas); return nil })
		deny(canopy.CodeGasUnknown, "no node of base tells", func(q *payment.GasQuote) error { return errors.New("no node answered") })
		w.node.quote = func(payment.GasQuote) (payment.GasQuote, error) { panic("a node that panics") }
		w.payDenied(dollars(dime, ""), canopy.CodeGasUnknown)
		if n := len(w.chain.Carried()); n != 0 {
			t.Errorf("%d transactions", n)
		}
		w.spy.AssertNothingSigned(t)

		// Dear, and yet within the bound: what is left after it pays for no bump.
		w.node.quote = func(q payment.GasQuote) (payment.GasQuote, error) { q.BaseFee = 4_400_000_000; return q, nil }
		_, e := w.pay(dollars(dime, ""))
		if fee := e.Carries[0].MaxFee; fee != 5_000_000_000 {
			t.Errorf("a fee of %d", fee)
		}
		w.burnt(e.ID, maxGas)
	})
}

// TestCarryPerDay: a day has ten times the gas of a payment, and frees with it.
func TestCarryPerDay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newCarriers(t, setup{policy: capped("$20 / 24h")})
		var first ledger.Entry
		for i := range 10 {
			_, e := w.pay(dollars(dime, fmt.Sprint(i)))
			if i == 0 {
				first = e
			}
		}
		r := w.payDenied(dollars(dime, "one more"), ledger.CodeGasPerDay)
		if want := "Gas cap exceeded: 0.01 + 0.001 > 0.01 / 24h of the coin of base"; r.Reason != want {
			t.Errorf("%q, want %q", r.Reason, want)
		}
		w.chain.Finalize()
		w.reconcile()
		w.payDenied(dollars(dime, "settled"), ledger.CodeGasPerDay)
		time.Sleep(first.ValidBefore.Add(24 * time.Hour).Sub(w.clock.Now()))
		w.pay(dollars(dime, "the next day"))
		w.spent(11 * dime)
	})
}

// TestCarryBump: what is not mined is replaced by one that pays a quarter more,
// with the same nonce and the same authorization, at most twice.
func TestCarryBump(t *testing.T) {
	for name, tt := range map[string]struct {
		base  uint64 // from the first sending on
		bumps int
		paid  bool
	}{
		"not needed":       {1e9, 0, true},
		"one is enough":    {2_300_000_000, 1, true},
		"the fees rise":    {2_600_000_000, 1, true}, // the second looks at the fee of then
		"beyond the bound": {5_100_000_000, 0, false},
		"nobody mines it":  {1 << 50, 0, false},
	} {
		bubbleSub(t, name, func(t *testing.T) {
			w := newCarriers(t, setup{})
			w.node.send = func([]byte) error { w.chain.SetBaseFee(tt.base); return nil }
			if tt.paid {
				_, e := w.pay(dollars(dime, ""))
				all := w.chain.Carried()
				if len(e.Carries) != tt.bumps+1 || len(all) != tt.bumps+1 || e.Receipt.TxHash != all[tt.bumps].Hash {
					t.Fatalf("%d transactions, %d sent", len(e.Carries), len(all))
				}
				for i := 1; i < len(all); i++ {
					if all[i].Nonce != all[0].Nonce || all[i].MaxFee < all[i-1].MaxFee+all[i-1].MaxFee/4 || all[i-1].Mined {
						t.Errorf("%+v after %+v", all[i], all[i-1])
					}
				}
				w.spent(dime)
				w.burnt(e.ID, maxGas)
				return
			}
			began := w.clock.Now()
			d := w.payDoubt(dollars(dime, "k"))
			if d.Phase != canopy.SentUnknown || d.Result.TxHash != w.chain.Carried()[0].Hash || d.Result.TxHash == "" {
				t.Errorf("%+v", d)
			}
			if took := w.clock.Now().Sub(began); took > time.Minute {
				t.Errorf("it took %v", took)
			}
			w.spent(0)
			// The price falls: what was sent lands, and the equal call sees it.
			w.node.send = nil
			w.chain.SetBaseFee(1e9)
			w.chain.Mine()
			r, err := w.client.Pay(context.Background(), dollars(dime, "k"))
			must(t, err)
			if r.State != ledger.Claimed || r.PaymentID != d.Result.PaymentID {
				t.Errorf("%+v", r)
			}
			w.spent(dime)
			w.burnt(r.PaymentID, maxGas)
		})
	}
}

// TestCarryBumpsTwice: a node whose pool is full of better ones sees three
// transactions and no more, and the equal call goes on with the newest.
func TestCarryBumpsTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newCarriers(t, setup{})
		refused := errors.New("the pool is full")
		var sent int
		w.node.send = func([]byte) error { sent++; return refused }
		d := w.payDoubt(dollars(dime, "k"))
		e := w.state(d.Result.PaymentID, ledger.InDoubt)
		if sent != 3 || len(e.Carries) != 3 || e.Sends != 3 || !errors.Is(d, refused) {
			t.Errorf("sent %d times, %d transactions: %v", sent, len(e.Carries), d)
		}
		for i := 1; i < len(e.Carries); i++ {
			last, c := e.Carries[i-1], e.Carries[i]
			if c.Nonce != last.Nonce || c.MaxFee != last.MaxFee+last.MaxFee/4+1 || c.MaxTip != last.MaxTip+last.MaxTip/4+1 {
				t.Errorf("%+v after %+v, want a quarter more", c, last)
			}
		}
		w.node.send = nil
		r, err := w.client.Resume(context.Background(), e.ID)
		must(t, err)
		if e = w.state(r.PaymentID, ledger.Claimed); len(e.Carries) != 3 || e.Sends != 4 {
			t.Errorf("%d transactions, sent %d times", len(e.Carries), e.Sends)
		}
		w.spent(dime)
		w.burnt(e.ID, maxGas)
	})
}

// TestCarryNonceTaken: where another transaction of the key used the nonce, the
// same authorization goes with the next one.
func TestCarryNonceTaken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newCarriers(t, setup{})
		low := payment.GasQuote{}
		first := true
		w.node.quote = func(q payment.GasQuote) (payment.GasQuote, error) { low = q; return q, nil }
		w.pay(dollars(dime, "before"))
		w.chain.Finalize()
		w.reconcile() // it holds its nonce no more
		w.node.quote = func(q payment.GasQuote) (payment.GasQuote, error) {
			if first && w.spy.Signatures() > 2 { // after the payment was authorized
				first = false
				return low, nil // a node that is behind: the nonce is used
			}
			return q, nil
		}
		_, e := w.pay(dollars(dime, "after"))
		if len(e.Carries) != 2 || e.Carries[0].Nonce != 0 || e.Carries[1].Nonce != 1 {
			t.Errorf("%+v", e.Carries)
		}
		w.spent(2 * dime)
		w.burnt(e.ID, 2*maxGas)
	})
}

// TestCarryBlindNode: a node that shows no receipts does not have a second
// transaction made once the chain shows the authorization used.
func TestCarryBlindNode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newCarriers(t, setup{})
		w.node.blind = true
		d := w.payDoubt(dollars(dime, "k"))
		e := w.state(d.Result.PaymentID, ledger.InDoubt)
		if all := w.chain.Carried(); len(all) != 1 || len(e.Carries) != 1 || e.Receipt.Claim != payment.ClaimUsed || e.Receipt.TxHash != all[0].Hash {
			t.Errorf("%d transactions, %+v", len(all), e.Receipt)
		}
		w.spent(dime)
		w.chain.Finalize()
		w.reconcile()
		w.state(e.ID, ledger.Settled)
		w.burnt(e.ID, maxGas)
	})
}

// TestCarryLyingNode: a node that tells of another nonce keeps a payment from
// being made, and cannot have it made twice or dearer.
func TestCarryLyingNode(t *testing.T) {
	for name, lie := range map[string]func(*payment.GasQuote){
		"a nonce far ahead":   func(q *payment.GasQuote) { q.Nonce, q.Mined = 1<<40, 1<<40 },
		"the last nonce":      func(q *payment.GasQuote) { q.Nonce = 1<<64 - 1 },
		"a base fee of 0":     func(q *payment.GasQuote) { q.BaseFee, q.Tip = 0, 0 },
		"everything is mined": func(q *payment.GasQuote) { q.Mined = 1 << 62 },
	} {
		bubbleSub(t, name, func(t *testing.T) {
			w := newCarriers(t, setup{})
			w.node.quote = func(q payment.GasQuote) (payment.GasQuote, error) { lie(&q); return q, nil }
			_, err := w.client.Pay(context.Background(), dollars(dime, "k"))
			if err != nil {
				as[*canopy.InDoubtError](t, err)
			}
			w.node.quote = nil
			r, err := w.client.Pay(context.Background(), dollars(dime, "k"))
			var d *canopy.InDoubtError
			if err != nil && !errors.As(err, &d) {
				t.Fatal(err)
			}
			if moved := w.chain.Spent(w.spy.Address()); moved != 0 && moved != dime {
				t.Errorf("%s moved", moved)
			}
			w.burnt(r.PaymentID, maxGas)
			if cost, ok := payment.CarryCost(w.only().Carries); !ok || cost.Cmp(payment.UnitsOf(maxGas)) > 0 {
				t.Errorf("transactions for %s", cost.Coin())
			}
		})
	}
}

// TestCarryFrozen: a freeze stops the transaction at each of its steps.
func TestCarryFrozen(t *testing.T) {
	for n := 1; n <= 2; n++ { // before the authorization is signed, and the transaction
		bubbleSub(t, fmt.Sprint(n), func(t *testing.T) {
			w := newCarriers(t, setup{})
			signs := 0
			w.spy.Before(func(ctx context.Context, _ canopytest.Signed) {
				if signs++; signs == n {
					must(t, w.client.Freeze(ctx, "stop"))
				}
			})
			d := w.payDoubt(dollars(dime, "k"))
			e := w.state(d.Result.PaymentID, ledger.InDoubt)
			if d.Phase != canopy.SignedNotSent || len(w.chain.Carried()) != 0 || e.Sends != 0 || len(e.Carries) != n-1 || w.spy.Signatures() != n {
				t.Errorf("%s, %d transactions, %d sent, %d signatures", d.Phase, len(e.Carries), len(w.chain.Carried()), w.spy.Signatures())
			}
			// Frozen: nothing more is signed, by whatever call.
			_, err := w.client.Resume(context.Background(), e.ID)
			as[*canopy.InDoubtError](t, err)
			w.payDenied(dollars(dime, "k"), "frozen")
			if len(w.chain.Carried()) != 0 || w.spy.Signatures() != n {
				t.Error("it was signed or sent while frozen")
			}
			must(t, w.store.(ledger.Freezer).Unfreeze(context.Background(), w.client.Agent(), "ana", "go on"))
			w.pay(dollars(dime, "k"))
			w.spent(dime)
			w.burnt(e.ID, maxGas)
		})
	}
}

// TestCarryForged: a transaction that is not what was permitted is not sent, and
// freezes the agent.
func TestCarryForged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newCarriers(t, setup{config: func(w *world, c *canopy.Config) {
			c.Rails = []canopy.Rail{forger{c.Rails[0].(carryingRail)}}
		}})
		d := w.payDoubt(dollars(dime, ""))
		if frozen, _, err := w.store.(ledger.Freezer).Frozen(context.Background(), w.client.Agent()); !frozen || err != nil || len(w.chain.Carried()) != 0 {
			t.Errorf("frozen %t, %v, %d transactions: %v", frozen, err, len(w.chain.Carried()), d)
		}
	})
}

type carryingRail interface {
	canopy.Rail
	canopy.Transferer
	canopy.Carrier
}

// forger pays a higher fee than was permitted.
type forger struct{ carryingRail }

func (f forger) Carry(ctx context.Context, g payment.CarryGrant, s payment.Signer) ([]byte, string, error) {
	g.Carry.MaxFee++
	return f.carryingRail.Carry(ctx, g, s)
}

// dying is a store whose process dies at the nth change, before or after its
// commit: nothing that it is asked afterwards happens.
type dying struct {
	ledger.Store
	mu   sync.Mutex
	n    int
	kept bool // the change itself is committed
	dead bool
}

var errDead = errors.New("the process is dead")

func (m *dying) Advance(ctx context.Context, c ledger.Change) (ledger.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return ledger.Entry{}, errDead
	}
	if m.n--; m.n >= 0 {
		return m.Store.Advance(ctx, c)
	}
	m.dead = true
	if m.kept {
		_, _ = m.Store.Advance(ctx, c)
	}
	return ledger.Entry{}, errDead
}

// TestCarryCrash dies at every commit of a payment, before and after it, and has
// another process go on: the money moves once, for no more gas than was allowed.
func TestCarryCrash(t *testing.T) {
	for n := range 3 { // the transaction, its hash, the outcome
		for _, kept := range []bool{false, true} {
			bubbleSub(t, fmt.Sprintf("%d %t", n, kept), func(t *testing.T) {
				m := &dying{n: n, kept: kept}
				w := newCarriers(t, setup{store: func(s ledger.Store) ledger.Store { m.Store = s; return m }})
				w.node.send = func([]byte) error {
					if m.dead {
						t.Error("a dead process sends")
					}
					return nil
				}
				_, err := w.client.Pay(context.Background(), dollars(dime, "k"))
				if n < 2 && err == nil || !m.dead {
					t.Fatalf("it lives: %v", err)
				}
				memory := m.Store.(*ledger.Memory)
				cfg := w.cfg
				cfg.Store = memory.Share(ledger.Options{Now: w.clock.Now}, "next", func(string) bool { return false })
				next, err := canopy.New(cfg)
				must(t, err)
				w.node.send = nil
				r, err := next.Pay(context.Background(), dollars(dime, "k"))
				must(t, err)
				w.store = cfg.Store
				e := w.state(r.PaymentID, ledger.Claimed)
				if len(e.Carries) != 1 {
					t.Errorf("%d transactions", len(e.Carries))
				}
				w.spent(dime)
				w.burnt(e.ID, maxGas)
				w.chain.Finalize()
				w.client = next
				w.reconcile()
				w.state(r.PaymentID, ledger.Settled)
			})
		}
	}
}

// TestCarryGap dies with a transaction that was permitted and never left, before
// and after its hash is kept. The payments after it do not wait for its nonce, and
// its own call still pays it, once.
func TestCarryGap(t *testing.T) {
	for n, kept := range map[int]bool{0: true, 1: true} {
		bubbleSub(t, fmt.Sprint(n), func(t *testing.T) {
			m := &dying{n: n, kept: kept}
			w := newCarriers(t, setup{policy: capped("$20 / 24h"), store: func(s ledger.Store) ledger.Store { m.Store = s; return m }})
			if _, err := w.client.Pay(context.Background(), dollars(dime, "first")); err == nil || len(w.chain.Carried()) != 0 {
				t.Fatalf("it lives: %v, %d transactions", err, len(w.chain.Carried()))
			}
			cfg := w.cfg
			cfg.Store = m.Store.(*ledger.Memory).Share(ledger.Options{Now: w.clock.Now}, "next", func(string) bool { return false })
			next, err := canopy.New(cfg)
			must(t, err)
			w.client, w.store = next, cfg.Store
			began := w.clock.Now()
			w.pay(dollars(2*dime, "second"))
			_, third := w.pay(dollars(3*dime, "third"))
			if took := w.clock.Now().Sub(began); took > 5*time.Second || third.Carries[0].Nonce != 1 {
				t.Errorf("they took %v, the third with nonce %d", took, third.Carries[0].Nonce)
			}
			w.spent(5 * dime)
			_, first := w.pay(dollars(dime, "first"))
			w.spent(6 * dime)
			w.burnt(first.ID, 3*maxGas)
			w.chain.Finalize()
			w.reconcile()
			for _, e := range w.entries() {
				w.state(e.ID, ledger.Settled)
			}
		})
	}
}

// TestCarryCancelled: a caller that leaves finds the payment in doubt, with its
// transaction, and the equal call finds it paid.
func TestCarryCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newCarriers(t, setup{})
		w.chain.SetMining(canopytest.Manual)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		_, err := w.client.Pay(ctx, dollars(dime, "k"))
		d := as[*canopy.InDoubtError](t, err)
		if !errors.Is(err, context.DeadlineExceeded) || d.Result.TxHash != w.chain.Carried()[0].Hash {
			t.Errorf("%v, %+v", err, d.Result)
		}
		w.chain.Mine()
		_, e := w.pay(dollars(dime, "k"))
		if len(w.chain.Carried()) != 1 || e.Sends != 1 {
			t.Errorf("%d transactions, sent %d times", len(w.chain.Carried()), e.Sends)
		}
		w.spent(dime)
	})
}

// TestCarryOvertaken: somebody else hands our authorization to the chain first.
// Our transaction fails, the money moved once, and the chain tells.
func TestCarryOvertaken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newCarriers(t, setup{})
		w.node.send = func(raw []byte) error {
			e := w.only()
			must(t, w.chain.Cancel(w.chain.Dollar(), e.Slot.From, e.Slot.NonceID))
			return nil
		}
		d := w.payDoubt(dollars(dime, ""))
		if d.Code != "reverted" || d.Phase != canopy.RefusedAfter {
			t.Errorf("%+v", d)
		}
		w.spent(0)
		w.chain.Finalize()
		w.reconcile()
		e := w.state(d.Result.PaymentID, ledger.Cancelled)
		w.burnt(e.ID, maxGas)
		if paid := w.chain.Carried()[0].Paid; paid.IsZero() {
			t.Error("a transaction that failed costs its gas")
		}
	})
}

// TestCarryMany: eight payments at once have a nonce each, and all are made.
func TestCarryMany(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newCarriers(t, setup{policy: capped("$20 / 24h")})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				r, err := w.client.Pay(context.Background(), dollars(dime, fmt.Sprint(i)))
				if err != nil || r.State != ledger.Claimed {
					t.Errorf("%+v, %v", r, err)
				}
			})
		}
		wg.Wait()
		w.spent(8 * dime)
		nonces := map[uint64]bool{}
		for _, tx := range w.chain.Carried() {
			nonces[tx.Nonce] = true
		}
		if len(nonces) != 8 {
			t.Errorf("%d nonces", len(nonces))
		}
	})
}

// TestCarryWithoutGas: a payment that was authorized for a facilitator gets no
// transaction, though they are configured by now.
func TestCarryWithoutGas(t *testing.T) {
	bubble(t, func(t *testing.T) {
		down := errors.New("it is down")
		w := newCarriers(t, setup{config: func(w *world, c *canopy.Config) {
			rail, err := x402.New(x402.Config{Facilitators: map[payment.ChainID]x402.Facilitator{
				payment.Base: {URL: "https://facilitator.example", Transport: unreached{down}},
			}})
			must(t, err)
			c.Rails = []canopy.Rail{rail}
		}})
		d := w.payDoubt(dollars(dime, "k"))
		if !errors.Is(d, down) {
			t.Fatal(d)
		}
		before := w.spy.Signatures()
		rail, err := x402.New(x402.Config{})
		must(t, err)
		cfg := w.cfg
		cfg.Rails = []canopy.Rail{rail}
		next, err := canopy.New(cfg)
		must(t, err)
		for _, pay := range []func() (canopy.Result, error){
			func() (canopy.Result, error) { return next.Pay(context.Background(), dollars(dime, "k")) },
			func() (canopy.Result, error) { return next.Resume(context.Background(), d.Result.PaymentID) },
		} {
			_, err := pay()
			if d := as[*canopy.InDoubtError](t, err); !strings.Contains(d.Error(), "authorized for a facilitator") {
				t.Error(d)
			}
		}
		if w.spy.Signatures() != before || len(w.chain.Carried()) != 0 {
			t.Errorf("%d signatures more, %d transactions", w.spy.Signatures()-before, len(w.chain.Carried()))
		}
		w.spent(0)
	})
}

// unreached is a transport that reaches nobody.
type unreached struct{ err error }

func (f unreached) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

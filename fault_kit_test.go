package canopy_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/ledger"
	ledgercheck "github.com/canopy-go/canopy/ledger/check"
	"github.com/canopy-go/canopy/ledger/sqlite"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// A fault is played on a ledger in memory and on one in a file. After each
// commit, each call of the client and each step of the scenario, and at its end
// whatever happened before, ledger/check holds the whole ledger against the
// invariants, with all that the signer signed and all that the chain shows.
// docs/faults.md says which test is of which row.

// play plays a fault on both ledgers.
func play(t *testing.T, s setup, f func(*testing.T, *world)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { playOn(t, s, inMemory, f) })
	t.Run("file", func(t *testing.T) { playOn(t, s, inFile, f) })
}

// playFile plays one whose point is a restart or the disk.
func playFile(t *testing.T, s setup, f func(*testing.T, *world)) {
	t.Helper()
	playOn(t, s, inFile, f)
}

func playOn(t *testing.T, s setup, open func(*world) powers, f func(*testing.T, *world)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		s.open = func(w *world) ledger.Store {
			w.audit = &audit{w: w, past: &ledgercheck.Past{}, store: open(w), expected: map[string]bool{}}
			w.audit.free.L = &w.audit.mu
			w.life = &life{}
			return audited{w.audit.store, w.audit}
		}
		w := newWorld(t, s)
		defer w.audit.end()
		f(t, w)
	})
}

func inMemory(w *world) powers {
	return ledger.NewMemory(ledger.Options{Now: w.clock.Now, Elapsed: w.elapsed})
}

func inFile(w *world) powers { return openFile(w, filepath.Join(w.dir(), "canopy.db")) }

func openFile(w *world, path string) powers {
	w.t.Helper()
	o := sqlite.Options{Now: w.clock.Now, Elapsed: w.elapsed, StateDir: w.stateDir, Account: w.spyAddress()}
	s, err := sqlite.Open(path, o)
	must(w.t, err)
	w.t.Cleanup(func() { s.Close() })
	w.path = path
	return s
}

func (w *world) dir() string {
	w.t.Helper()
	if w.disk != "" {
		return w.disk
	}
	return w.t.(interface{ TempDir() string }).TempDir()
}

func (w *world) spyAddress() payment.Address {
	if w.stateDir == "" {
		return payment.Address{} // nothing is remembered
	}
	return w.spy.Address()
}

// powers are all that a store of this module can do.
type powers interface {
	ledger.Store
	ledger.Freezer
	ledger.Acker
	ledger.Verifier
	ledger.Cursors
	ledger.SlotFinder
	ledger.Recoverer
	ledger.Prober
}

// audit checks a world's ledger.
type audit struct {
	w    *world
	past *ledgercheck.Past

	mu       sync.Mutex
	free     sync.Cond
	busy     int // commits under way; -1 while the ledger is checked
	store    powers
	signed   []ledgercheck.Signature
	secrets  [][]byte
	expected map[string]bool // problems that the scenario is about, and whether they came
	final    time.Time
}

// expects has the check find a problem of that kind, which is then none.
func (a *audit) expects(kind string) { a.expected[kind] = false }

// slots is how many were signed into, by processes that are gone too.
func (a *audit) slots() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[string]bool{}
	for _, s := range a.signed {
		all[s.Slot] = true
	}
	return len(all)
}

// commit lets f change the ledger, and checks it.
func (a *audit) commit(f func()) {
	a.take(func() bool { return a.busy >= 0 }, 1)
	f()
	a.give(1)
	a.run("a commit")
}

func (a *audit) take(may func() bool, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for !may() {
		a.free.Wait()
	}
	a.busy += n
}

func (a *audit) give(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy -= n
	a.free.Broadcast()
}

// newSecrets is how many of the latest signatures are looked for before the end,
// where all are.
const newSecrets = 16

// run checks the ledger, and fails the test where anything does not hold.
func (a *audit) run(after string) {
	a.w.t.Helper()
	a.take(func() bool { return a.busy == 0 }, -1)
	defer a.give(-1)
	a.mu.Lock()
	store, o := a.store, ledgercheck.Options{Policy: a.w.rules, Past: a.past, Final: a.final, Signatures: slices.Clone(a.signed), Secrets: slices.Clone(a.secrets)}
	if n := len(o.Secrets) - newSecrets; n > 0 && after != "the end" {
		o.Secrets = o.Secrets[n:]
	}
	a.mu.Unlock()
	if store == nil {
		return // between two processes
	}
	o.Uses = a.w.uses()
	r, err := ledgercheck.Run(context.Background(), store, o)
	if err != nil {
		a.w.t.Errorf("after %s the ledger cannot be checked: %v", after, err)
	}
	for _, p := range r.Problems {
		known := false
		for kind := range a.expected {
			if strings.Contains(p, kind) {
				a.expected[kind], known = true, true
			}
		}
		if !known {
			a.w.t.Errorf("after %s: %s", after, p)
		}
	}
}

// end checks for the last time, whatever became of the scenario, and looks for
// secrets beside the ledger.
func (a *audit) end() {
	a.w.t.Helper()
	a.run("the end")
	for kind, came := range a.expected {
		if !came {
			a.w.t.Errorf("no check found %q", kind)
		}
	}
	places := map[string][]byte{"the log": []byte(a.w.logs.String())}
	if a.w.path != "" {
		for _, suffix := range []string{"", "-wal"} {
			if b, err := os.ReadFile(a.w.path + suffix); err == nil {
				places["canopy.db"+suffix] = b
			}
		}
	}
	for where, b := range places {
		for _, s := range append(a.secrets, []byte(testKey)) {
			if bytes.Contains(b, s) || bytes.Contains(bytes.ToLower(b), []byte(hex.EncodeToString(s))) {
				a.w.t.Errorf("I16: %s holds a secret", where)
			}
		}
	}
}

// step is one step of a scenario: the ledger is checked after it, also where it
// fails the test.
func (w *world) step(what string, f func()) {
	w.t.Helper()
	defer w.audit.run(what)
	f()
}

// refused is a step in which nothing may be signed, and nothing leave (I11).
func (w *world) refused(what string, f func()) {
	w.t.Helper()
	signed, sent := w.spy.Signatures(), len(w.wire.Payments())
	w.step(what, f)
	if n := w.spy.Signatures(); n != signed {
		w.t.Errorf("I11: %s: %d signatures were made", what, n-signed)
	}
	if n := len(w.wire.Payments()); n != sent {
		w.t.Errorf("I11: %s: %d payments left", what, n-sent)
	}
}

// over is the end of a scenario with a chain: once it is final that every
// validity is over, two rounds leave no hold (I12).
func (w *world) over() {
	w.t.Helper()
	w.clock.Advance(11 * time.Minute)
	w.chain.Finalize()
	for range 2 {
		_, err := w.client.Reconcile(context.Background())
		must(w.t, err)
	}
	w.audit.mu.Lock()
	w.audit.final = w.chain.Final().Time
	w.audit.mu.Unlock()
	w.audit.run("all is final")
}

// uses is what the chain shows of the account, whatever its nodes say.
func (w *world) uses() []payment.Settlement {
	var out []payment.Settlement
	uses := w.chain.AuthorizationUses() // first: each one's transfer is there by then
	transfers := w.chain.Transfers()
	for _, u := range uses {
		if u.From != w.spy.Address() {
			continue
		}
		s := payment.Settlement{
			Slot:   payment.Slot{Kind: payment.SlotEVM, Chain: w.chain.ID(), Token: u.Token, From: u.From, NonceID: u.Nonce},
			TxHash: u.TxHash, Block: u.Block.Number, Time: u.Block.Time, Canceled: u.Canceled,
		}
		for _, t := range transfers {
			if t.TxHash == u.TxHash && t.Token == u.Token && t.Nonce == u.Nonce && !u.Canceled {
				s.Moved = append(s.Moved, payment.Recipient{Address: t.To, Amount: t.Value})
			}
		}
		out = append(out, s)
	}
	return append(out, w.tempoUses()...)
}

// audited is a store whose every commit is checked.
type audited struct {
	powers
	a *audit
}

func (s audited) Reserve(ctx context.Context, r ledger.Request) (e ledger.Entry, u []policy.Use, err error) {
	s.a.commit(func() { e, u, err = s.powers.Reserve(ctx, r) })
	return e, u, err
}

func (s audited) Advance(ctx context.Context, c ledger.Change) (e ledger.Entry, err error) {
	s.a.commit(func() { e, err = s.powers.Advance(ctx, c) })
	return e, err
}

func (s audited) Recover(ctx context.Context) (n int, err error) {
	s.a.commit(func() { n, err = s.powers.Recover(ctx) })
	return n, err
}

func (s audited) Freeze(ctx context.Context, agent, by, why string) (err error) {
	s.a.commit(func() { err = s.powers.Freeze(ctx, agent, by, why) })
	return err
}

func (s audited) Approvals() ledger.Approvals { return ruled{s.powers.Approvals(), s.a} }

// ruled are approvals whose every ruling is checked.
type ruled struct {
	ledger.Approvals
	a *audit
}

func (r ruled) Decide(ctx context.Context, d ledger.Decision) (a ledger.Approval, err error) {
	r.a.commit(func() { a, err = r.Approvals.Decide(ctx, d) })
	return a, err
}

// witness is a signer's own log.
type witness struct {
	payment.Signer
	w *world
}

func (s witness) Deterministic() bool { return payment.IsDeterministic(s.Signer) }

func (s witness) Sign(ctx context.Context, p payment.Permit, digest [32]byte) ([]byte, error) {
	if err := s.w.life.at(s.w, beforeSign); err != nil {
		return nil, err
	}
	sig, err := s.Signer.Sign(ctx, p, digest)
	if err != nil {
		return nil, err
	}
	a := s.w.audit
	a.mu.Lock()
	a.signed = append(a.signed, ledgercheck.Signature{Slot: p.Slot(), At: s.w.clock.Now()})
	a.secrets = append(a.secrets, slices.Clone(sig[:64]))
	a.mu.Unlock()
	if err := s.w.life.at(s.w, afterSign); err != nil {
		return nil, err
	}
	return sig, nil
}

// moment is where in a payment its process dies.
type moment string

const (
	beforeT1    moment = "before the first commit"
	afterT1     moment = "after the first commit"
	beforeSign  moment = "before signing"
	afterSign   moment = "after signing"
	beforeSend  moment = "before sending"
	afterAnswer moment = "after the answer"
	beforeT2    moment = "before the second commit"
	afterT2     moment = "after the second commit"
)

// life is that of one process: once it is over, nothing that the process had
// changes anything.
type life struct {
	dies  moment
	over  atomic.Bool
	image string // of the ledger when it died
}

// at ends the process where that is its moment.
func (l *life) at(w *world, m moment) error {
	if m != "" && l.dies == m && !l.over.Load() {
		l.end(w)
	}
	if l.over.Load() {
		return fmt.Errorf("%w %s", errKilled, l.dies)
	}
	return nil
}

func (l *life) end(w *world) {
	l.over.Store(true)
	l.image = w.image()
}

// image copies the ledger's files as they are, and returns the copy's path.
func (w *world) image() string {
	dir := w.dir()
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(w.path + suffix)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "canopy.db"+suffix), b, 0o600)
		}
		if err != nil {
			w.t.Errorf("the ledger's files: %v", err)
		}
	}
	return filepath.Join(dir, "canopy.db")
}

// mortals has a world's process die at a moment of each of its payments.
func mortals(at moment) setup {
	return setup{
		config: func(w *world, c *canopy.Config) {
			watching(w, c)
			w.dieAt(c, at)
		},
	}
}

// dieAt puts the process's parts where they die with it.
func (w *world) dieAt(c *canopy.Config, at moment) {
	w.life = &life{dies: at}
	own := w.life
	c.Store = mortalStore{c.Store.(powers), w, own}
	paid := func(r *http.Request) bool {
		return r.Header.Get("PAYMENT-SIGNATURE")+r.Header.Get("X-PAYMENT")+r.Header.Get("Authorization") != ""
	}
	w.wire.Before = func(r *http.Request) error {
		if !paid(r) {
			return own.at(w, "")
		}
		return own.at(w, beforeSend)
	}
	w.wire.After = func(r *http.Response) error {
		if r.Request == nil || !paid(r.Request) {
			return own.at(w, "")
		}
		return own.at(w, afterAnswer)
	}
}

// another makes a further client of another process on the same ledger: with a
// handle of its own, where the ledger is a file.
func (w *world) another() *canopy.Client {
	w.t.Helper()
	c := w.cfg
	if w.path != "" {
		c.Store = audited{openFile(w, w.path), w.audit}
	}
	client, err := canopy.New(c)
	must(w.t, err)
	return client
}

// restart begins another process on the files that the one before left.
func (w *world) restart() {
	w.t.Helper()
	if !w.life.over.Load() {
		w.life.end(w)
	}
	w.restartFrom(w.life.image)
}

// restartFrom begins another process on the ledger at path.
func (w *world) restartFrom(path string) {
	w.t.Helper()
	w.life.over.Store(true)
	a := w.audit
	a.mu.Lock()
	old := a.store
	a.store = nil
	a.mu.Unlock()
	old.Close()
	next := openFile(w, path)
	a.mu.Lock()
	a.store = next
	a.mu.Unlock()
	w.store = audited{next, a}
	w.changed(func(c *canopy.Config) {
		c.Store = w.store
		w.dieAt(c, "")
	})
	a.run("the restart")
}

// changed makes another client, of a configuration that change was made to.
func (w *world) changed(change func(*canopy.Config)) {
	w.t.Helper()
	c := w.cfg
	change(&c)
	var err error
	w.client, err = canopy.New(c)
	must(w.t, err)
}

// mortalStore is a store that dies with its process.
type mortalStore struct {
	powers
	w    *world
	life *life
}

func (s mortalStore) Reserve(ctx context.Context, r ledger.Request) (ledger.Entry, []policy.Use, error) {
	if err := s.life.at(s.w, beforeT1); err != nil {
		return ledger.Entry{}, nil, err
	}
	e, u, err := s.powers.Reserve(ctx, r)
	if err == nil && e.State == ledger.Authorized {
		if err := s.life.at(s.w, afterT1); err != nil {
			return ledger.Entry{}, nil, err
		}
	}
	return e, u, err
}

func (s mortalStore) Advance(ctx context.Context, c ledger.Change) (ledger.Entry, error) {
	if err := s.life.at(s.w, beforeT2); err != nil {
		return ledger.Entry{}, err
	}
	e, err := s.powers.Advance(ctx, c)
	if err == nil {
		err = s.life.at(s.w, afterT2)
	}
	return e, err
}

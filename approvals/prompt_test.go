package approvals_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// keyboard is a person at a prompt: what they type and what they see.
type keyboard struct {
	t     *testing.T
	typed *io.PipeWriter
	store ledger.Store
	p     *approvals.Prompt
	ended chan error

	mu  sync.Mutex
	out bytes.Buffer
}

func (k *keyboard) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.out.Write(b)
}

// seen is what was shown since the last time.
func (k *keyboard) seen() string {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.out.String()
	k.out.Reset()
	return s
}

func (k *keyboard) types(s string) string {
	io.WriteString(k.typed, s)
	return k.seen()
}

func (k *keyboard) asks(e ledger.Entry) string {
	k.t.Helper()
	a, err := k.store.Approvals().Approval(context.Background(), e.ApprovalID, time.Now())
	if err != nil {
		k.t.Fatal(err)
	}
	if err := k.p.Notify(context.Background(), a); err != nil {
		k.t.Fatal(err)
	}
	return k.seen()
}

func (k *keyboard) is(e ledger.Entry, want ledger.ApprovalStatus) ledger.Approval {
	k.t.Helper()
	a, err := k.store.Approvals().Approval(context.Background(), e.ApprovalID, time.Now())
	if err != nil || a.Status != want {
		k.t.Errorf("it is %s, %v, want %s", a.Status, err, want)
	}
	return a
}

// atKeyboard runs f with a prompt that is running.
func atKeyboard(t *testing.T, store ledger.Store, f func(*keyboard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		in, typed := io.Pipe()
		if store == nil {
			store = ledger.NewMemory(ledger.Options{Now: time.Now})
		}
		k := &keyboard{t: t, typed: typed, store: store, ended: make(chan error, 1)}
		var err error
		k.p, err = approvals.NewPrompt(approvals.PromptConfig{
			Desk: approvals.NewDesk(store, "terminal", nil), By: "ana", In: in, Out: k, Unattended: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { k.ended <- k.p.Run(ctx) }()
		f(k)
		cancel()
		typed.Close()
		synctest.Wait()
	})
}

func TestPrompt(t *testing.T) {
	atKeyboard(t, nil, func(k *keyboard) {
		e := pendingAs(t, k.store, "/report", "numbers\x1b[2J for \u202ethe report")
		said := k.asks(e)
		for _, want := range []string{
			"pays", "$7.50", payment.Address{9}.String(), "GET https://feed.example/report", "Amount $7.50 exceeds approval threshold of $5",
			"bot", `"numbers[2J for the report"`, e.TermsHash.String(), "Pay it?",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("%q is not shown in\n%s", want, said)
			}
		}
		if strings.ContainsAny(said, "\x1b\u202e") {
			t.Errorf("another's characters move the terminal: %q", said)
		}
		if said := k.types("what?\n"); !strings.Contains(said, "neither yes nor no") {
			t.Errorf("said %q", said)
		}
		k.is(e, ledger.ApprovalPending)
		if said := k.types("yes, as agreed\n"); !strings.Contains(said, "Approved") {
			t.Errorf("said %q", said)
		}
		if a := k.is(e, ledger.ApprovalGranted); a.By != "ana" || a.Via != "terminal" || a.Comment != "as agreed" {
			t.Errorf("ruled as %+v", a)
		}

		e = pending(t, k.store, "/no")
		k.asks(e)
		k.types("n too dear\n")
		if a := k.is(e, ledger.ApprovalRefused); a.Comment != "too dear" {
			t.Errorf("ruled as %+v", a)
		}

		// Enter, nonsense and a line without end leave it open.
		for _, typed := range []string{"\n", "a\nb\nc\n", strings.Repeat("y", 5000) + "\n" + strings.Repeat("yes ", 2000) + "\n" + "\n"} {
			e = pending(t, k.store, "/open"+fmt.Sprint(len(typed)))
			k.asks(e)
			if said := k.types(typed); !strings.Contains(said, "Left open: canopy approvals approve "+string(e.ApprovalID)) {
				t.Errorf("said %q", said)
			}
			k.is(e, ledger.ApprovalPending)
		}

		// What was typed before the question answers nothing.
		k.types("y\n")
		k.types("y\ny\n")
		e = pending(t, k.store, "/early")
		k.asks(e)
		k.is(e, ledger.ApprovalPending)
		k.types("n\n")

		// One at a time, in order; what somebody else ruled on is not asked.
		first, second, third := pending(t, k.store, "/1"), pending(t, k.store, "/2"), pending(t, k.store, "/3")
		k.asks(first)
		k.asks(second)
		k.asks(third)
		desk := approvals.NewDesk(k.store, "cli", nil)
		if _, err := desk.Rule(context.Background(), second.ApprovalID, approvals.Ruling{By: "ben"}); err != nil {
			t.Fatal(err)
		}
		if said := k.types("y\n"); strings.Contains(said, string(second.ApprovalID)) || !strings.Contains(said, "/3") {
			t.Errorf("said %q", said)
		}
		if _, err := desk.Rule(context.Background(), third.ApprovalID, approvals.Ruling{By: "ben"}); err != nil {
			t.Fatal(err)
		}
		if said := k.types("y\n"); !strings.Contains(said, "It is denied already") {
			t.Errorf("said %q", said)
		}
		k.is(first, ledger.ApprovalGranted)

		// An expiry ends the question.
		e = pending(t, k.store, "/late")
		k.asks(e)
		time.Sleep(25 * time.Hour)
		if said := k.seen(); !strings.Contains(said, "expired") {
			t.Errorf("said %q", said)
		}

		// The end of the input ends the prompt, and nothing else.
		e = pending(t, k.store, "/eof")
		k.asks(e)
		io.WriteString(k.typed, "yes")
		k.typed.Close()
		if err := <-k.ended; !errors.Is(err, approvals.ErrPromptOver) {
			t.Errorf("Run: %v", err)
		}
		if err := k.p.Notify(context.Background(), approvals.Approval{}); !errors.Is(err, approvals.ErrPromptOver) {
			t.Errorf("Notify: %v", err)
		}
		k.is(e, ledger.ApprovalPending)
	})
}

// Where the policy names approvers the prompt takes no answer.
func TestPromptTakesNoCredential(t *testing.T) {
	atKeyboard(t, nil, func(k *keyboard) {
		e := pendingBy(t, k.store, "/named", "ana")
		if said := k.asks(e); strings.Contains(said, "Pay it?") || !strings.Contains(said, "canopy approvals approve "+string(e.ApprovalID)) {
			t.Errorf("said %q", said)
		}
		k.types("yes\n")
		k.is(e, ledger.ApprovalPending)
	})
}

// changedTerms is a ledger whose stored terms were changed by somebody.
type changedTerms struct{ ledger.Store }

func (s changedTerms) Approvals() ledger.Approvals { return changedApprovals{s.Store.Approvals()} }

type changedApprovals struct{ ledger.Approvals }

func (s changedApprovals) Approval(ctx context.Context, id payment.ApprovalID, now time.Time) (ledger.Approval, error) {
	a, err := s.Approvals.Approval(ctx, id, now)
	a.Terms.Origin = "https://friend.example"
	return a, err
}

// What is shown is what is ruled on (attack 74).
func TestAttack74_PromptShowsNoOtherTerms(t *testing.T) {
	store := ledger.NewMemory(ledger.Options{Now: time.Now})
	atKeyboard(t, changedTerms{store}, func(k *keyboard) {
		e := pending(t, store, "/changed")
		if said := k.asks(e); strings.Contains(said, "Pay it?") || !strings.Contains(said, "is not shown") {
			t.Errorf("said %q", said)
		}
		k.types("yes\n")
		k.is(e, ledger.ApprovalPending)
	})
}

func TestPromptIsBounded(t *testing.T) {
	t.Parallel()
	store := ledger.NewMemory(ledger.Options{})
	desk := approvals.NewDesk(store, "terminal", nil)
	p, err := approvals.NewPrompt(approvals.PromptConfig{Desk: desk, By: "ana", In: strings.NewReader(""), Out: io.Discard, Unattended: true})
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for range 1000 {
		if p.Notify(context.Background(), approvals.Approval{}) != nil {
			failed++
		}
	}
	if failed != 900 {
		t.Errorf("%d of 1,000 were not taken, want 900", failed)
	}
}

func TestPromptWantsATerminal(t *testing.T) {
	t.Parallel()
	desk := approvals.NewDesk(ledger.NewMemory(ledger.Options{}), "terminal", nil)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	zero, err := os.Open("/dev/zero")
	if err != nil {
		zero = null // not on this system
	}
	defer zero.Close()
	for name, in := range map[string]io.Reader{"text": strings.NewReader("y\n"), "a pipe": r, "nothing": null, "zeros": zero} {
		if _, err := approvals.NewPrompt(approvals.PromptConfig{Desk: desk, By: "ana", In: in, Out: io.Discard}); !errors.Is(err, approvals.ErrNoTerminal) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, cfg := range map[string]approvals.PromptConfig{
		"no desk": {By: "ana", In: r, Out: w, Unattended: true}, "nobody": {Desk: desk, In: r, Out: w, Unattended: true},
		"no input": {Desk: desk, By: "ana", Out: w, Unattended: true},
	} {
		if _, err := approvals.NewPrompt(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

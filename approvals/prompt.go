package approvals

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/ledger"
)

// PromptConfig is what a Prompt is made of. Desk, In, Out and By are required.
type PromptConfig struct {
	Desk *Desk // rules: made by NewDesk, say with via terminal
	By   string

	// In is where the person types, and nobody else reads: what they typed
	// before a question was shown answers nothing.
	In  io.Reader
	Out io.Writer

	// Unattended lets In be something else than a terminal, where anything that
	// can write to it can say yes.
	Unattended bool

	Clock clock.Clock // what waiting goes by; the system's where nil
}

// Prompt is a Channel that asks a person at the keyboard of the program itself.
// It is for programs that a person starts and watches. It asks one question at a
// time, oldest first, and never keeps a payment waiting for itself: Notify
// returns at once, and the answer comes when it comes. Where the policy names
// approvers it only tells, since their credentials have no place in the program
// that pays. It is safe for concurrent use.
type Prompt struct {
	cfg   PromptConfig
	queue chan Approval

	mu    sync.Mutex
	ended error // why nobody answers any more
}

// Errors of a Prompt.
var (
	ErrNoTerminal = errors.New("approvals: nobody sits at the prompt: its input is no terminal")
	ErrPromptOver = errors.New("approvals: the prompt has ended: its input is closed")
)

// maxQuestions is how many wait to be asked; what comes beyond that is ruled on
// by another way.
const maxQuestions = 100

// NewPrompt returns a prompt, which asks nothing until Run. It is ErrNoTerminal
// where In is no terminal and Unattended is not set.
func NewPrompt(cfg PromptConfig) (*Prompt, error) {
	switch {
	case cfg.Desk == nil:
		return nil, errors.New("approvals: PromptConfig.Desk is nil")
	case cfg.In == nil || cfg.Out == nil:
		return nil, errors.New("approvals: PromptConfig.In and Out are required")
	case strings.TrimSpace(cfg.By) == "":
		return nil, fmt.Errorf("approvals: PromptConfig.By: %w", ErrNoName)
	case !cfg.Unattended && !isTerminal(cfg.In):
		return nil, ErrNoTerminal
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.System{}
	}
	return &Prompt{cfg: cfg, queue: make(chan Approval, maxQuestions)}, nil
}

func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && isTTY(f)
}

// Notify puts a among the questions. It is ErrPromptOver once In has ended.
func (p *Prompt) Notify(_ context.Context, a Approval) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return p.ended
	}
	select {
	case p.queue <- a:
		return nil
	default:
		return fmt.Errorf("approvals: %d questions wait at the prompt already", maxQuestions)
	}
}

// Run asks what there is to ask until ctx ends, and returns nil then, or until In
// ends, and returns ErrPromptOver. What was not answered waits on, for another way
// of ruling. It runs once. A read of a terminal cannot be interrupted: one that is
// under way when ctx ends takes one line more.
func (p *Prompt) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := make(chan string)
	go p.read(ctx, lines)
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-lines: // nothing was asked
			if !ok {
				return p.over()
			}
		case a := <-p.queue:
			if err := p.ask(ctx, a, lines); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return nil
			}
		}
	}
}

func (p *Prompt) over() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = ErrPromptOver
	return p.ended
}

// maxTyped is how much of a line is read; a longer one is no answer.
const maxTyped = 2 << 10

// read hands out the lines of In, and closes lines at its end.
func (p *Prompt) read(ctx context.Context, lines chan<- string) {
	defer close(lines)
	r := bufio.NewReaderSize(p.cfg.In, maxTyped)
	for {
		line, err := r.ReadSlice('\n')
		text := string(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n')
			text = ""
		}
		if err != nil {
			return // a line without an end was not finished: it answers nothing
		}
		select {
		case lines <- text:
		case <-ctx.Done():
			return
		}
	}
}

// maxAsked is how often one question is asked where the answer is none.
const maxAsked = 3

// ask shows one approval and takes the answer to it. The error is that In ended.
func (p *Prompt) ask(ctx context.Context, a Approval, lines <-chan string) error {
	now, err := p.cfg.Desk.store.Approvals().Approval(ctx, a.ID, p.cfg.Desk.now())
	if err != nil || now.Status != ledger.ApprovalPending {
		return nil // somebody was faster
	}
	m, err := messageOf(now, "", p.cfg.Desk.now())
	if err != nil {
		p.say("\n%s is not shown: %v\n", a.ID, err)
		return nil
	}
	p.say("%s", m.prompt())
	if len(now.Approvers) > 0 {
		p.say("Rule on it with: canopy approvals approve %s, or deny\n", a.ID)
		return nil
	}
	expired, stop := p.cfg.Clock.After(max(now.ExpiresAt.Sub(p.cfg.Desk.now()), 0))
	defer stop()
	for range maxAsked {
		p.say("Pay it? yes, or no, and a reason if you like; Enter leaves it open: ")
		select {
		case <-ctx.Done():
			return nil
		case <-expired:
			p.say("\nIt has expired.\n")
			return nil
		case line, ok := <-lines:
			if !ok {
				p.say("\nLeft open.\n")
				return p.over()
			}
			r, answered := answerOf(line)
			switch {
			case answered:
				r.By, r.TermsHash = p.cfg.By, m.Data.TermsHash // what was shown
				p.rule(ctx, a, r)
				return nil
			case strings.TrimSpace(line) == "":
				p.say("Left open: canopy approvals approve %s, or deny\n", a.ID)
				return nil
			}
			p.say("That is neither yes nor no. ")
		}
	}
	p.say("Left open: canopy approvals approve %s, or deny\n", a.ID)
	return nil
}

func (p *Prompt) rule(ctx context.Context, a Approval, r Ruling) {
	got, err := p.cfg.Desk.Rule(ctx, a.ID, r)
	switch {
	case errors.Is(err, ledger.ErrDecided):
		p.say("It is %s already.\n", got.Status)
	case err != nil:
		p.say("Not recorded: %s\n", plaintext.Clean(err.Error(), maxWords))
	default:
		p.say("%s.\n", strings.ToUpper(got.Status.String()[:1])+got.Status.String()[1:])
	}
}

func (p *Prompt) say(format string, args ...any) { fmt.Fprintf(p.cfg.Out, format, args...) }

// answerOf reads a line as yes or no and a reason.
func answerOf(line string) (Ruling, bool) {
	word, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
	r := Ruling{Reason: plaintext.Clean(reason, maxWords)}
	switch strings.ToLower(strings.TrimRight(word, ",.:")) {
	case "y", "yes":
		r.Approve = true
	case "n", "no":
	default:
		return Ruling{}, false
	}
	return r, true
}

// prompt is m for a terminal: built from the stored terms, in words of ours, and
// what others wrote quoted.
func (m Message) prompt() string {
	d := &m.Data
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s "+format+"\n", append([]any{name}, args...)...)
	}
	fmt.Fprintf(&b, "\nA payment waits for you: %s\n", d.ApprovalID)
	if d.FeeUSD > 0 {
		line("pays", "%s and a fee of at most %s, %s together", d.AmountUSD, d.FeeUSD, d.CostUSD)
	} else {
		line("pays", "%s", d.CostUSD)
	}
	for i, r := range d.Recipients {
		name := "to"
		if i > 0 {
			name = "and to"
		}
		if len(d.Recipients) > 1 {
			line(name, "%s, %s", r.Address, r.AmountUSD)
		} else {
			line(name, "%s", r.Address)
		}
	}
	line("in", "%s", d.Asset)
	switch {
	case d.URL != "":
		line("for", "%s %s", plaintext.Clean(d.Method, 20), d.URL)
	case d.Memo != "":
		line("for", "a direct transfer, with the memo %q", d.Memo)
	default:
		line("for", "a direct transfer")
	}
	line("because", "%s", d.Reason)
	line("agent", "%s", d.Agent)
	if d.Purpose != "" {
		line("it says", "%q", d.Purpose)
	}
	line("until", "%s", d.ExpiresAt.Local().Format(time.DateTime))
	line("terms", "%s", d.TermsHash)
	return b.String()
}

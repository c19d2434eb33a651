package dashboard

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/canopy-go/canopy/ledger"
)

// watch is what the ledger looked like a moment ago, for all that watch it: they
// share one look.
type watch struct {
	turn slots // of whoever looks

	mu   sync.Mutex
	last *look
	at   time.Time // by the machine's own clock
}

// look is what a watching page shows, and by what it sees a change.
type look struct {
	pending []ledger.Approval // oldest first
	freezes map[string]string
	newest  string // the last payment, with its version

	marks [3]string // of the topics, in their order
}

var topics = [3]string{"approvals", "freezes", "payments"}

func (l *look) id() string { return strings.Join(l.marks[:], "-") }

// look reads the ledger where the last look is older than age.
func (w *watch) look(ctx context.Context, p *Page, age time.Duration) (*look, error) {
	select {
	case w.turn <- struct{}{}:
		defer w.turn.give()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l := w.recent(age); l != nil {
		return l, nil
	}
	l, err := p.lookNow(ctx)
	if err == nil {
		w.mu.Lock()
		w.last, w.at = l, time.Now()
		w.mu.Unlock()
	}
	return l, err
}

func (w *watch) recent(age time.Duration) *look {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last != nil && time.Since(w.at) < age {
		return w.last
	}
	return nil
}

func (p *Page) lookNow(ctx context.Context) (*look, error) {
	var l look
	var err error
	if l.pending, err = p.cfg.Store.Approvals().List(ctx, "", true, p.cfg.Now()); err != nil {
		return nil, err
	}
	slices.SortStableFunc(l.pending, func(a, b ledger.Approval) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	if l.freezes, err = p.freezer.Freezes(ctx); err != nil {
		return nil, err
	}
	for e, err := range p.cfg.Store.Entries(ctx, ledger.Query{Limit: 1}) {
		if err != nil {
			return nil, err
		}
		l.newest = fmt.Sprint(e.ID, " ", e.Version)
	}
	h := sha256.New()
	mark := func(i int) {
		l.marks[i] = hex.EncodeToString(h.Sum(nil)[:8])
		h.Reset()
	}
	for _, a := range l.pending {
		fmt.Fprintln(h, a.ID, a.Version)
	}
	mark(0)
	for _, f := range freezesOf(l.freezes) {
		fmt.Fprintf(h, "%q %q\n", f.Agent, f.Reason)
	}
	mark(1)
	fmt.Fprint(h, l.newest)
	mark(2)
	return &l, nil
}

// change is what a page is told: what is new, and what to show of it at once.
type change struct {
	Topics  []string `json:"topics"`
	Pending int      `json:"pending"`
	Frozen  bool     `json:"frozen"`
}

// changes are the topics in which l differs from what a page with the id has.
func (l *look) changes(id string) []string {
	marks := strings.Split(id, "-")
	var out []string
	for i, t := range topics {
		if len(marks) != len(topics) || marks[i] != l.marks[i] {
			out = append(out, t)
		}
	}
	return out
}

// heartbeat is how often a stream without news says that it is alive.
const heartbeat = 15 * time.Second

// events streams changes to a page, as server-sent events: from what the page
// says that it has, in Last-Event-ID or since, on. It ends with the session.
func (p *Page) events(w http.ResponseWriter, r *http.Request, s *session) {
	if !p.streams.take() {
		w.Header().Set("Retry-After", "30")
		refuse(w, http.StatusServiceUnavailable, "Too many pages watch at once.")
		return
	}
	defer p.streams.give()
	has := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("since"))
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(text string) bool {
		out.SetWriteDeadline(time.Now().Add(10 * time.Second)) // where it cannot, the server's own holds
		_, err := fmt.Fprint(w, text)
		return err == nil && out.Flush() == nil
	}
	if !send("retry: 3000\n\n") {
		return
	}
	tick := time.NewTicker(p.cfg.Poll)
	defer tick.Stop()
	told := time.Now()
	for {
		if s, err := p.live(r, false); err == nil && s == nil {
			send("event: over\ndata: {}\n\n")
			return
		}
		l, err := p.watch.look(r.Context(), p, p.cfg.Poll/2)
		if err != nil {
			return // the page tries again
		}
		if news := l.changes(has); len(news) > 0 {
			has = l.id()
			data, _ := json.Marshal(change{news, len(l.pending), len(l.freezes) > 0}) // it has no value that fails
			if !send("id: " + has + "\ndata: " + string(data) + "\n\n") {
				return
			}
			told = time.Now()
		} else if time.Since(told) >= heartbeat {
			if !send(": alive\n\n") {
				return
			}
			told = time.Now()
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-s.ctx.Done():
			send("event: over\ndata: {}\n\n")
			return
		}
	}
}

package dashboard

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/ledger"
)

// attempts are the logins that failed, by who tried and as whom.
type attempts struct {
	mu sync.Mutex
	of map[attempter]failures
}

type attempter struct{ from, name string }

type failures struct {
	n    int
	last time.Time
}

func newAttempts() attempts { return attempts{of: map[attempter]failures{}} }

// After freeFailures every further one doubles the wait, up to maxWait, after
// which nothing is held against anybody any more.
const (
	freeFailures  = 5
	maxWait       = 5 * time.Minute
	maxAttempters = 4096
)

// wait is how long k has to wait before it may try again.
func (a *attempts) wait(k attempter, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.of[k]
	if f.n < freeFailures {
		return 0
	}
	d := min(time.Second<<min(f.n-freeFailures, 20), maxWait)
	return max(0, f.last.Add(d).Sub(now))
}

func (a *attempts) failed(k attempter, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.of[k]; !ok && len(a.of) >= maxAttempters {
		for other, f := range a.of {
			if now.Sub(f.last) > maxWait {
				delete(a.of, other)
			}
		}
		if len(a.of) >= maxAttempters {
			k = attempter{} // they share what is left
		}
	}
	f := a.of[k]
	if now.Sub(f.last) > 2*maxWait {
		f.n = 0
	}
	a.of[k] = failures{f.n + 1, now}
}

func (a *attempts) passed(k attempter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, k)
}

// loginView is the page to log in.
type loginView struct {
	view
	Next    string
	Problem string
	Nobody  bool // no approver was added yet
	Again   bool // a link led here: whoever is logged in may go on
}

func (p *Page) loginPage(w http.ResponseWriter, r *http.Request) {
	next := nextPage(r.URL.Query().Get("next"))
	if s, err := p.live(r, false); err == nil && s != nil {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	v := loginView{view: p.view(r, nil, "Log in", ""), Next: next, Again: r.Header.Get("Sec-Fetch-Site") == "cross-site"}
	all, err := p.register.List(r.Context())
	if err != nil {
		p.broken(w, r, nil, err)
		return
	}
	v.Nobody = true
	for _, a := range all {
		v.Nobody = v.Nobody && !a.RevokedAt.IsZero()
	}
	p.render(w, r, http.StatusOK, "login", v)
}

func (p *Page) login(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		refuse(w, http.StatusBadRequest, "The form could not be read.")
		return
	}
	now := p.cfg.Now()
	credential := approvals.Credential(strings.TrimSpace(r.PostForm.Get("credential")))
	name, _ := credential.Name()
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		from = r.RemoteAddr
	}
	who := attempter{from, ledger.FoldApprover(name)}
	v := loginView{view: p.view(r, nil, "Log in", ""), Next: nextPage(r.PostForm.Get("next"))}
	if wait := p.attempts.wait(who, now); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
		v.Problem = "Too many attempts failed. Wait " + span(wait.Round(time.Second)+time.Second) + ", then try again."
		p.render(w, r, http.StatusTooManyRequests, "login", v)
		return
	}
	name, err = p.register.Check(r.Context(), credential.Reveal())
	switch {
	case errors.Is(err, approvals.ErrCredential):
		p.attempts.failed(who, now)
		p.cfg.Logger.Warn("dashboard: a login failed", "from", from)
		v.Problem = "That is not the credential of an approver. It begins with canopy_ and the approver's name, and was shown once, when it was made."
		p.render(w, r, http.StatusForbidden, "login", v)
		return
	case err != nil:
		p.broken(w, r, nil, err)
		return
	}
	p.attempts.passed(who)
	if s, err := p.live(r, false); err == nil && s != nil {
		p.sessions.finish(s)
	}
	p.setCookie(w, p.sessions.begin(name, credential, now), int(p.cfg.Lifetime/time.Second))
	p.cfg.Logger.Info("dashboard: logged in", "approver", name, "from", from)
	http.Redirect(w, r, v.Next, http.StatusSeeOther)
}

func (p *Page) logout(w http.ResponseWriter, r *http.Request, s *session) {
	if _, err := s.spend(r, "logout", "", p.cfg.Now()); err != nil {
		p.fail(w, r, s, http.StatusForbidden, "That form was used already, or is too old.", "Load the page again, then log out.")
		return
	}
	p.sessions.finish(s)
	p.setCookie(w, "", -1)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

package dashboard

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/canopy-go/canopy/approvals"
)

// session is one login of an approver.
type session struct {
	key   [32]byte // hash of the cookie
	name  string
	began time.Time

	// credential is what the person logged in with: a ruling gives it on, and a
	// session ends where it is theirs no more.
	credential approvals.Credential

	ctx context.Context // ends with the session
	end context.CancelFunc

	mu    sync.Mutex
	used  time.Time
	forms forms
}

// sessions are those that are open, by the hash of the cookie.
type sessions struct {
	mu   sync.Mutex
	open map[[32]byte]*session
}

func newSessions() sessions { return sessions{open: map[[32]byte]*session{}} }

// maxSessions is how many are open at once: a further one ends the one that was
// idle the longest.
const maxSessions = 64

// secret is 256 random bits as text.
func secret() string {
	var b [32]byte
	rand.Read(b[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// begin opens a session and returns what its cookie holds.
func (s *sessions) begin(name string, credential approvals.Credential, now time.Time) string {
	cookie := secret()
	n := &session{key: sha256.Sum256([]byte(cookie)), name: name, credential: credential, began: now, used: now}
	n.ctx, n.end = context.WithCancel(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxSessions {
		var oldest *session
		for _, o := range s.open {
			if oldest == nil || o.idleSince().Before(oldest.idleSince()) {
				oldest = o
			}
		}
		s.drop(oldest)
	}
	s.open[n.key] = n
	return cookie
}

func (s *sessions) find(cookie string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[sha256.Sum256([]byte(cookie))]
}

func (s *sessions) finish(n *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(n)
}

func (s *sessions) drop(n *session) {
	delete(s.open, n.key)
	n.end()
}

func (n *session) idleSince() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.used
}

// touch is false where the session is over. act says that a person did
// something: a page that watches by itself keeps no session open.
func (n *session) touch(now time.Time, idle, lifetime time.Duration, act bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.used) >= idle || now.Sub(n.began) >= lifetime || n.ctx.Err() != nil {
		return false
	}
	if act {
		n.used = now
	}
	return true
}

// cookieName is that of the session's cookie: over TLS one that no other host
// can set. It tells the port, which browsers do not tell cookies apart by.
func (p *Page) cookieName() string {
	name := "canopy"
	if _, port, err := net.SplitHostPort(p.cfg.Hosts[0]); err == nil {
		name += "_" + port
	}
	if p.cfg.TLS {
		return "__Host-" + name
	}
	return name
}

func (p *Page) setCookie(w http.ResponseWriter, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: p.cookieName(), Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: p.cfg.TLS, SameSite: http.SameSiteStrictMode,
	})
}

// live is the session of r, whose approver may still rule, or nil.
func (p *Page) live(r *http.Request, act bool) (*session, error) {
	c, err := r.Cookie(p.cookieName())
	if err != nil {
		return nil, nil
	}
	s := p.sessions.find(c.Value)
	if s == nil {
		return nil, nil
	}
	if !s.touch(p.cfg.Now(), p.cfg.Idle, p.cfg.Lifetime, act) {
		p.sessions.finish(s)
		return nil, nil
	}
	switch _, err = p.register.Check(r.Context(), s.credential.Reveal()); {
	case errors.Is(err, approvals.ErrCredential): // rotated or revoked
		p.sessions.finish(s)
		return nil, nil
	case err != nil:
		return nil, err
	}
	return s, nil
}

// watching is what an open page asks for by itself: it keeps no session open.
const watching = "X-Canopy-Watching"

// authenticated lets in who is logged in, and sends others to the login.
func (p *Page) authenticated(h func(http.ResponseWriter, *http.Request, *session)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, err := p.live(r, r.Header.Get(watching) == "" && r.URL.Path != "/events")
		switch {
		case err != nil:
			p.broken(w, r, nil, err)
		case s != nil:
			h(w, r, s)
		case r.Method != http.MethodPost && r.URL.Path != "/events":
			http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		default:
			p.fail(w, r, nil, http.StatusUnauthorized, "You are not logged in, or your session has ended.", "Nothing was done. Log in and try again.")
		}
	}
}

// nextPage is where a login leads: one of the page's own addresses.
func nextPage(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !plainPath(u.EscapedPath()) || strings.ContainsAny(next, "\\\r\n") ||
		strings.HasPrefix(u.Path, "/login") || len(next) > 1000 {
		return "/"
	}
	return u.RequestURI()
}

package dashboard

import (
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Config is that of a Page.
type Config struct {
	Store  ledger.Store   // required, with the powers ledger.ApproverStore and ledger.Freezer
	Policy *policy.Policy // required: caps are shown and simulated by it

	// Hosts are the values of the Host header that are answered, such as
	// 127.0.0.1:8402: required. Every other is refused.
	Hosts []string

	TLS  bool           // it is served over TLS: cookies are for TLS alone
	Zone *time.Location // of the instants shown; time.Local where nil

	// Asks are the chains whose nodes are asked, and Command is a command of the
	// program as it can be typed: both for the story of a payment.
	Asks    map[payment.ChainID]bool
	Command func(words string) string

	// Answers takes what people answer to webhooks, at AnswersPath: see
	// approvals.NewAnswers. It judges its requests by itself, but for their Host.
	// Nothing is there where it is nil.
	Answers http.Handler

	Now    func() time.Time // time.Now where nil
	Logger *slog.Logger     // logins, rulings and freezes; nothing where nil

	Idle     time.Duration // a session ends unused; 30 minutes where 0
	Lifetime time.Duration // a session ends anyway; 12 hours where 0
	Poll     time.Duration // how often a watching page looks at the ledger; a second where 0
}

// AnswersPath is where Config.Answers is.
const AnswersPath = "/answers"

// Page serves the dashboard. It is safe for concurrent use.
type Page struct {
	cfg      Config
	freezer  ledger.Freezer
	register *approvals.Register
	desk     *approvals.Desk
	cross    *http.CrossOriginProtection
	mux      *http.ServeMux
	views    map[string]*template.Template

	sessions sessions
	attempts attempts
	watch    watch
	streams  slots // pages that watch
	exports  slots // exports under way
}

// Bounds of what is served at once.
const (
	maxStreams = 64
	maxExports = 4
)

// New returns the page of a ledger. It does no I/O and starts nothing.
func New(cfg Config) (*Page, error) {
	switch {
	case cfg.Store == nil:
		return nil, errors.New("dashboard: Config.Store is nil")
	case cfg.Policy == nil:
		return nil, errors.New("dashboard: Config.Policy is nil")
	case len(cfg.Hosts) == 0:
		return nil, errors.New("dashboard: Config.Hosts is empty: it names the Host headers that are answered")
	}
	cfg.Hosts = slices.Clone(cfg.Hosts)
	for i, h := range cfg.Hosts {
		if h == "" || strings.ContainsAny(h, "/@ *") {
			return nil, fmt.Errorf("dashboard: Config.Hosts: %q is no value of a Host header", h)
		}
		cfg.Hosts[i] = strings.ToLower(h)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Zone == nil {
		cfg.Zone = time.Local
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	orElse := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	orElse(&cfg.Idle, 30*time.Minute)
	orElse(&cfg.Lifetime, 12*time.Hour)
	orElse(&cfg.Poll, time.Second)
	freezer, ok := cfg.Store.(ledger.Freezer)
	if !ok {
		return nil, errors.New("dashboard: the store cannot freeze")
	}
	register, err := approvals.NewRegister(cfg.Store, cfg.Now)
	if err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	p := &Page{
		cfg: cfg, freezer: freezer, register: register, desk: approvals.NewDesk(cfg.Store, "page", cfg.Now),
		cross: http.NewCrossOriginProtection(), views: templates(),
		sessions: newSessions(), attempts: newAttempts(), watch: watch{turn: make(slots, 1)}, streams: make(slots, maxStreams), exports: make(slots, maxExports),
	}
	p.mux = p.routes()
	return p, nil
}

// slots bound how much is done at once.
type slots chan struct{}

// take is false where all are taken; else the caller gives it back.
func (s slots) take() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s slots) give() { <-s }

// routes are all that is served. What is not under open needs a session.
func (p *Page) routes() *http.ServeMux {
	m := http.NewServeMux()
	open := func(pattern string, h http.HandlerFunc) { m.HandleFunc(pattern, h) }
	open("GET /static/{file}", p.static)
	open("GET /login", p.loginPage)
	open("POST /login", p.login)

	in := func(pattern string, h func(http.ResponseWriter, *http.Request, *session)) {
		m.HandleFunc(pattern, p.authenticated(h))
	}
	in("POST /logout", p.logout)
	in("GET /{$}", p.approvalsPage)
	in("GET /approvals/{id}", p.approvalPage)
	in("POST /approvals/{id}", p.rule)
	in("GET /spending", p.spendingPage)
	in("GET /ledger", p.ledgerPage)
	in("GET /ledger/export.csv", p.exportCSV)
	in("GET /ledger/export.jsonl", p.exportJSON)
	in("GET /payments/{id}", p.paymentPage)
	in("GET /policy", p.policyPage)
	in("GET /freeze", p.freezePage)
	in("POST /freeze", p.freeze)
	in("GET /events", p.events)
	in("/", func(w http.ResponseWriter, r *http.Request, s *session) {
		p.fail(w, r, s, http.StatusNotFound, "There is no such page.", "")
	})
	return m
}

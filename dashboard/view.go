package dashboard

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/canopy-go/canopy/ledger"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed static
var staticFiles embed.FS

// templates are the pages, each with the frame around it.
func templates() map[string]*template.Template {
	frame := template.Must(template.ParseFS(templateFiles, "templates/frame.html"))
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		panic("dashboard: " + err.Error())
	}
	all := map[string]*template.Template{}
	for _, name := range names {
		page := strings.TrimSuffix(strings.TrimPrefix(name, "templates/"), ".html")
		if page != "frame" {
			all[page] = template.Must(template.Must(frame.Clone()).ParseFS(templateFiles, name))
		}
	}
	return all
}

// view is what every page has.
type view struct {
	Title   string
	Section string // of the menu
	User    string
	Logout  string // token
	Pending int
	Frozen  []frozen
	Watch   string // what the page is up to date with

	now *look // nil where the ledger could not be read
	err error
}

// frozen is one freeze.
type frozen struct {
	Agent  string // empty for everybody
	Reason string
	Token  string // of the form that ends it, where the page has one
}

func (p *Page) view(r *http.Request, s *session, title, section string) view {
	v := view{Title: title, Section: section}
	if s == nil {
		return v
	}
	v.User, v.Logout = s.name, s.form(purpose{act: "logout"}, p.cfg.Now())
	if v.now, v.err = p.watch.look(r.Context(), p, 0); v.err == nil {
		v.Pending, v.Watch, v.Frozen = len(v.now.pending), v.now.id(), freezesOf(v.now.freezes)
	}
	return v
}

func freezesOf(all map[string]string) []frozen {
	var out []frozen
	for _, agent := range slices.Sorted(maps.Keys(all)) {
		out = append(out, frozen{Agent: clean(agent, 100), Reason: clean(all[agent], 300)})
	}
	return out
}

// render writes a page, whole or not at all.
func (p *Page) render(w http.ResponseWriter, r *http.Request, status int, page string, v any) {
	var b bytes.Buffer
	if err := p.views[page].ExecuteTemplate(&b, "frame", v); err != nil {
		p.cfg.Logger.Error("dashboard: a page could not be written", "page", page, "error", err)
		refuse(w, http.StatusInternalServerError, "This page could not be made.")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		b.WriteTo(w) // whoever has gone needs no answer
	}
}

// problemView is a page that says why there is no other.
type problemView struct {
	view
	Status    int
	What, How string
}

// fail says what went wrong, and what to do.
func (p *Page) fail(w http.ResponseWriter, r *http.Request, s *session, status int, what, how string) {
	p.render(w, r, status, "problem", problemView{p.view(r, s, "Not done", ""), status, what, how})
}

// broken reports what the ledger could not do.
func (p *Page) broken(w http.ResponseWriter, r *http.Request, s *session, err error) {
	if r.Context().Err() != nil {
		return // nobody waits for it
	}
	if errors.Is(err, ledger.ErrNotFound) {
		p.fail(w, r, s, http.StatusNotFound, "It is not on this ledger.", "Look for it in the ledger.")
		return
	}
	if errors.Is(err, context.DeadlineExceeded) {
		p.fail(w, r, s, http.StatusServiceUnavailable, "The ledger took too long to answer.", "Try again, or ask for less.")
		return
	}
	p.cfg.Logger.Error("dashboard: the ledger failed", "path", r.URL.Path, "error", err)
	p.fail(w, r, nil, http.StatusInternalServerError, "The ledger could not be read: "+clean(err.Error(), 400), "Nothing was changed.")
}

// static serves the page's own files: there are three, and no name of a file is
// ever made from a request.
func (p *Page) static(w http.ResponseWriter, r *http.Request) {
	kinds := map[string]string{"style.css": "text/css; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}
	name := r.PathValue("file")
	kind, ok := kinds[name]
	if !ok {
		refuse(w, http.StatusNotFound, "There is no such file.")
		return
	}
	b, err := staticFiles.ReadFile("static/" + name)
	if err != nil {
		refuse(w, http.StatusNotFound, "There is no such file.")
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Write(b) // whoever has gone needs no answer
}

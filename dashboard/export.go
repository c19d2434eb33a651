package dashboard

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/canopy-go/canopy/internal/export"
	"github.com/canopy-go/canopy/ledger"
)

func (p *Page) exportCSV(w http.ResponseWriter, r *http.Request, s *session) {
	p.export(w, r, s, "text/csv; charset=utf-8", "canopy.csv", export.CSV)
}

func (p *Page) exportJSON(w http.ResponseWriter, r *http.Request, s *session) {
	p.export(w, r, s, "application/jsonl", "canopy.jsonl", export.JSON)
}

// export streams the payments that the filter selects, oldest first. One that
// fails on the way breaks off: a short file is never taken for a whole one.
func (p *Page) export(w http.ResponseWriter, r *http.Request, s *session, kind, name string, write func(context.Context, io.Writer, ledger.Store, ledger.Query) error) {
	_, q, err := p.filterOf(r.URL.Query())
	if err != nil {
		p.fail(w, r, s, http.StatusBadRequest, err.Error()+".", "")
		return
	}
	if !p.exports.take() {
		w.Header().Set("Retry-After", "30")
		p.fail(w, r, s, http.StatusServiceUnavailable, "Too many exports are under way.", "Try again when one of them is done.")
		return
	}
	defer p.exports.give()
	q.Oldest, q.After, q.Limit = true, "", 0
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	if r.Method == http.MethodHead {
		return
	}
	if err := write(r.Context(), &patient{w, http.NewResponseController(w)}, p.cfg.Store, q); err != nil {
		if r.Context().Err() == nil {
			p.cfg.Logger.Error("dashboard: an export broke off", "error", err)
		}
		panic(http.ErrAbortHandler)
	}
}

// patient gives each piece of a long answer time of its own.
type patient struct {
	w   io.Writer
	out *http.ResponseController
}

func (p *patient) Write(b []byte) (int, error) {
	p.out.SetWriteDeadline(time.Now().Add(30 * time.Second)) // where it cannot, the server's own holds
	return p.w.Write(b)
}

package dashboard

import (
	"mime"
	"net/http"
	"slices"
	"strings"
)

// maxBody bounds a posted form.
const maxBody = 16 << 10

// headers are on every answer. The page has no script and no style but its own
// files, asks nobody else for anything, and is in no frame.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=(), payment=()",
	"Cache-Control":                "no-store",
}

// ServeHTTP serves the page, to the hosts of its Config alone.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range headers {
		w.Header().Set(name, value)
	}
	switch {
	case !slices.Contains(p.cfg.Hosts, strings.ToLower(r.Host)):
		refuse(w, http.StatusForbidden, "This page does not answer to that name.")
	case p.cfg.Answers != nil && r.URL.Path == AnswersPath:
		p.cfg.Answers.ServeHTTP(w, r)
	case !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost}, r.Method):
		w.Header().Set("Allow", "GET, HEAD, POST")
		refuse(w, http.StatusMethodNotAllowed, "The page is read with GET and acted on with POST.")
	case !plainPath(r.URL.EscapedPath()):
		refuse(w, http.StatusNotFound, "There is no such page.")
	case p.cross.Check(r) != nil:
		p.cfg.Logger.Warn("dashboard: a request of another site was refused", "path", r.URL.Path)
		refuse(w, http.StatusForbidden, "That came from another site, and was refused.")
	case r.Method == http.MethodPost && !isForm(r.Header.Get("Content-Type")):
		refuse(w, http.StatusUnsupportedMediaType, "Only the page's own forms are taken.")
	default:
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		p.mux.ServeHTTP(w, r)
	}
}

// isForm reports whether a body is what the page's own forms send.
func isForm(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/x-www-form-urlencoded"
}

// plainPath reports whether a path is made of the letters that the page's own
// paths are made of, and climbs nowhere: an id is told by its alphabet before
// anything looks at it.
func plainPath(path string) bool {
	if path == "" || path[0] != '/' || len(path) > 200 {
		return false
	}
	for i := range len(path) {
		c := path[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '/' && c != '_' && c != '.' {
			return false
		}
	}
	return !strings.Contains(path, "//") && !strings.Contains(path, "..") && !strings.Contains(path, "/.")
}

// refuse answers before anybody is known. The words are always ours.
func refuse(w http.ResponseWriter, status int, text string) { http.Error(w, text, status) }

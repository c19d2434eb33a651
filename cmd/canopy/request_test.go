package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A URL that cannot be fetched is told as such, before anything is sent; a URL
// in another one's query is none of its scheme.
func TestURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy)
	for raw, says := range map[string]string{
		"ftp://x.example/":  `URL: "ftp://x.example/": only https:// and http:// are fetched`,
		"file:///etc/hosts": "only https:// and http:// are fetched",
		"http://exa mple/":  `URL: "http://exa mple/" is none: invalid character " " in host name`,
		"https:///x":        `URL: "https:///x" has no host`,
		"":                  "has no host",
	} {
		for _, verb := range []string{"fetch", "check"} {
			contains(t, w.want(2, verb, raw).err, says, "See canopy "+verb+" --help")
		}
	}
	for raw, want := range map[string]string{
		"x.example": "https://x.example", "x.example/?u=http://y": "https://x.example/?u=http://y", "http://x.example": "http://x.example", "x.example#a://b": "https://x.example#a://b",
	} {
		if got := withScheme(raw); got != want {
			t.Errorf("%s is %s, want %s", raw, got, want)
		}
	}
}

// The request is the one that curl would send.
func TestFetchRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		rw.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(rw, "%s %s|%s|%s|%s|%s", r.Method, r.URL, r.Header.Get("Content-Type"), strings.Join(r.Header.Values("X-A"), ","), r.UserAgent(), b)
	}))
	defer srv.Close()
	file := filepath.Join(w.dir, "data")
	if err := os.WriteFile(file, []byte("a=1\r\nb=2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const form = "application/x-www-form-urlencoded"
	for name, tt := range map[string]struct {
		args  []string
		stdin string
		want  string
	}{
		"get":          {[]string{}, "", "GET /p?q=1||||"},
		"method":       {[]string{"-X", "DELETE"}, "", "DELETE /p?q=1||||"},
		"data":         {[]string{"-d", "x=1"}, "", "POST /p?q=1|" + form + "|||x=1"},
		"data twice":   {[]string{"-d", "x=1", "--data", "y=2"}, "", "POST /p?q=1|" + form + "|||x=1&y=2"},
		"data file":    {[]string{"-d", "@" + file}, "", "POST /p?q=1|" + form + "|||a=1b=2"},
		"data binary":  {[]string{"--data-binary", "@" + file}, "", "POST /p?q=1|" + form + "|||a=1\r\nb=2\n"},
		"data stdin":   {[]string{"-d", "@-"}, "in\n", "POST /p?q=1|" + form + "|||in"},
		"data raw":     {[]string{"--data-raw", "@x"}, "", "POST /p?q=1|" + form + "|||@x"},
		"empty data":   {[]string{"-d", ""}, "", "POST /p?q=1|" + form + "|||"},
		"put":          {[]string{"-X", "PUT", "-d", "x"}, "", "PUT /p?q=1|" + form + "|||x"},
		"content type": {[]string{"-H", "content-type: application/json", "-d", "{}"}, "", "POST /p?q=1|application/json|||{}"},
		"two headers":  {[]string{"-H", "x-a: 1", "-H", "X-A: 2"}, "", "GET /p?q=1||1,2||"},
		"agent":        {[]string{"-A", "me/1"}, "", "GET /p?q=1|||me/1|"},
		"no type":      {[]string{"-H", "Content-Type:", "-d", "x"}, "", "POST /p?q=1||||x"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"--config", w.config, "fetch", srv.URL + "/p?q=1"}, tt.args...)
			r := call(t, t.Context(), tt.stdin, args...)
			got := r.out
			if name != "agent" { // the program's own
				parts := strings.SplitN(got, "|", 5)
				if len(parts) == 5 && strings.HasPrefix(parts[3], "canopy/") {
					parts[3] = ""
				}
				got = strings.Join(parts, "|")
			}
			if r.code != 0 || got != tt.want {
				t.Errorf("exit %d, got %q, want %q; %s", r.code, got, tt.want, r.err)
			}
		})
	}
	for name, args := range map[string][]string{
		"head and data":  {"-I", "-d", "x"},
		"no such file":   {"-d", "@" + file + ".none"},
		"bad header":     {"-H", "nothing"},
		"header CRLF":    {"-H", "X: a\r\nY: b"},
		"bad method":     {"-X", "GE T"},
		"bad price":      {"--max-price", "ten"},
		"bad price unit": {"--max-price", "-1"},
		"empty key":      {"--key", ""},
		"odd key":        {"--key", "a\x01b"},
		"long key":       {"--key", strings.Repeat("k", 257)},
		"empty price":    {"--max-price", ""},
		"bad time":       {"--max-time", "soon"},
		"bad wait":       {"--wait", "-1s"},
		"two bodies":     {"--json", "-i"},
		"unknown flag":   {"--nope"},
		"no directory":   {"-o", filepath.Join(w.dir, "none", "x")},
	} {
		if r := w.run(append([]string{"fetch", srv.URL}, args...)...); r.code != 2 {
			t.Errorf("%s: exit %d, want 2: %s", name, r.code, r.err)
		}
	}
	if r := w.run("fetch", srv.URL, "-I"); r.code != 0 || !strings.HasPrefix(r.out, "HTTP/1.1 200 OK\n") || !strings.HasSuffix(r.out, "\n\n") {
		t.Errorf("-I: %+v", r)
	}
}

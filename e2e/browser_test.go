//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Browser is a headless Chromium, with pages that are told apart by name.
type Browser struct {
	t   testing.TB
	in  *json.Encoder
	out *bufio.Scanner
}

// chromiums are what the program is called.
var chromiums = []string{"chromium", "chromium-browser", "google-chrome"}

// NewBrowser starts one that ends with the test. Without Chromium the test fails.
func NewBrowser(t testing.TB) *Browser {
	t.Helper()
	path := os.Getenv("CHROMIUM")
	for _, name := range chromiums {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		t.Fatalf("there is no Chromium: none of %s is on the PATH (Debian: apt-get install chromium)", strings.Join(chromiums, ", "))
	}
	cmd := exec.Command("node", "browser.mjs", "--chromium", path)
	cmd.Dir = "peers"
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			cmd.Process.Kill()
			<-ended
		}
	})
	b := &Browser{t: t, in: json.NewEncoder(in), out: bufio.NewScanner(out)}
	b.out.Buffer(nil, 8<<20)
	var ready struct{ Version string }
	if !b.out.Scan() || json.Unmarshal(b.out.Bytes(), &ready) != nil || ready.Version == "" {
		t.Fatalf("Chromium does not start: %s", b.out.Text())
	}
	t.Logf("Chromium %s", ready.Version)
	return b
}

// do has the browser do something, and decodes what comes of it into value, where that is not nil.
func (b *Browser) do(value any, name string, args map[string]any) {
	b.t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	args["do"] = name
	if err := b.in.Encode(args); err != nil {
		b.t.Fatal(err)
	}
	var answer struct {
		Value json.RawMessage
		Error string
	}
	if !b.out.Scan() {
		b.t.Fatalf("%s: the browser ended: %v", name, b.out.Err())
	}
	if err := json.Unmarshal(b.out.Bytes(), &answer); err != nil || answer.Error != "" {
		b.t.Fatalf("%s %v: %v%s", name, args, err, answer.Error)
	}
	if value != nil {
		if err := json.Unmarshal(answer.Value, value); err != nil {
			b.t.Fatalf("%s: %v in %s", name, err, answer.Value)
		}
	}
}

// Heard are dialogs, errors and requests to other places since it was asked last.
func (b *Browser) Heard() (all []string) {
	b.t.Helper()
	b.do(&all, "heard", nil)
	return all
}

// Tab is one page of a Browser, with cookies of its own.
type Tab struct {
	*Browser
	name string
}

// Open opens a page of a size, in light or dark colours.
func (b *Browser) Open(name string, width, height int, scheme string) Tab {
	b.t.Helper()
	b.do(nil, "open", map[string]any{"page": name, "options": map[string]any{
		"viewport": map[string]int{"width": width, "height": height}, "colorScheme": scheme, "reducedMotion": "reduce",
	}})
	return Tab{b, name}
}

func (p Tab) with(kv ...any) map[string]any {
	m := map[string]any{"page": p.name}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i].(string)] = kv[i+1]
	}
	return m
}

// Goto loads an address and returns the status of the answer.
func (p Tab) Goto(url string) (status int) {
	p.t.Helper()
	p.do(&status, "goto", p.with("url", url))
	return status
}

// Fill types a text, Click clicks, Press presses a key, and Wait waits for an element.
func (p Tab) Fill(at, text string) { p.t.Helper(); p.do(nil, "fill", p.with("at", at, "text", text)) }
func (p Tab) Click(at string)      { p.t.Helper(); p.do(nil, "click", p.with("at", at)) }
func (p Tab) Press(key string)     { p.t.Helper(); p.do(nil, "press", p.with("key", key)) }
func (p Tab) Wait(at string)       { p.t.Helper(); p.do(nil, "wait", p.with("at", at)) }

// Text is what a person reads of an element.
func (p Tab) Text(at string) (text string) {
	p.t.Helper()
	p.do(&text, "text", p.with("at", at))
	return text
}

// Count is how many elements there are.
func (p Tab) Count(at string) (n int) {
	p.t.Helper()
	p.do(&n, "count", p.with("at", at))
	return n
}

// URL is the address that is shown.
func (p Tab) URL() (url string) {
	p.t.Helper()
	p.do(&url, "url", p.with())
	return url
}

// Evaluate decodes what a script gives.
func (p Tab) Evaluate(value any, script string) {
	p.t.Helper()
	p.do(value, "evaluate", p.with("script", script))
}

// Reads fails the test unless the page has all these texts.
func (p Tab) Reads(texts ...string) {
	p.t.Helper()
	body := p.Text("body")
	for _, s := range texts {
		if !strings.Contains(body, s) {
			p.t.Errorf("%s lacks %q:\n%s", p.URL(), s, body)
		}
	}
}

// Shot keeps a picture of the page in E2E_SHOTS, where that is set, and always looks whether it is wider than
// its window.
func (p Tab) Shot(name string, whole bool) {
	p.t.Helper()
	var over int
	p.Evaluate(&over, `document.documentElement.scrollWidth - document.documentElement.clientWidth`)
	if over > 0 {
		p.t.Errorf("%s: %s is %d pixels wider than its window", p.name, p.URL(), over)
	}
	if dir := os.Getenv("E2E_SHOTS"); dir != "" {
		p.do(nil, "shot", p.with("path", filepath.Join(dir, name+".png"), "whole", whole))
	}
}

// dark tells the worst contrast, in tenths, of the texts on a page against what is behind them.
const contrastScript = `(() => {
  const rgb = (c) => { const m = c.match(/[\d.]+/g).map(Number); return { c: m.slice(0, 3), a: m.length > 3 ? m[3] : 1 }; };
  const lum = (c) => { const f = c.map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * f[0] + 0.7152 * f[1] + 0.0722 * f[2]; };
  let worst = { ratio: 21, text: "" };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n; (n = walk.nextNode());) {
    const e = n.parentElement;
    if (!n.nodeValue.trim() || e.closest("svg, .hear, [hidden], option, script") || !e.getClientRects().length) continue;
    let back = e;
    while (back && rgb(getComputedStyle(back).backgroundColor).a === 0) back = back.parentElement;
    const a = lum(rgb(getComputedStyle(e).color).c), b = lum(back ? rgb(getComputedStyle(back).backgroundColor).c : [255, 255, 255]);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst.ratio) worst = { ratio, text: n.nodeValue.trim().slice(0, 60) };
  }
  return { tenths: Math.floor(worst.ratio * 10), text: worst.text };
})()`

// Readable fails the test where a text is too pale: under 4.5 to 1.
func (p Tab) Readable() {
	p.t.Helper()
	var worst struct {
		Tenths int
		Text   string
	}
	p.Evaluate(&worst, contrastScript)
	if worst.Tenths < 45 {
		p.t.Errorf("%s, %s: %q has a contrast of %d.%d to 1", p.name, p.URL(), worst.Text, worst.Tenths/10, worst.Tenths%10)
	}
}

// named are the controls of a page that say nothing to a screen reader.
const unnamedScript = `[...document.querySelectorAll("a, button, input:not([type=hidden]):not([hidden]), select, textarea, svg[role=img]")].filter((e) =>
  !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim() || e.labels?.length || e.querySelector?.("title"))).map((e) => e.outerHTML.slice(0, 120))`

// Named fails the test where a control has no name.
func (p Tab) Named() {
	p.t.Helper()
	var all []string
	p.Evaluate(&all, unnamedScript)
	for _, e := range all {
		p.t.Errorf("%s: no name for %s", p.URL(), e)
	}
	var headings []string
	p.Evaluate(&headings, `[...document.querySelectorAll("h1")].map((e) => e.innerText)`)
	if len(headings) != 1 {
		p.t.Errorf("%s has %d headings of the first rank: %s", p.URL(), len(headings), fmt.Sprint(headings))
	}
}

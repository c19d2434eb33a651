package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// neverBinds tells the caps that others reach first, always: a wider one that
// is not higher.
func (l *linter) neverBinds(t *table, caps []Limit, lines []int) {
	table := ""
	if t != nil {
		table = t.name
	}
	for i, c := range caps {
		if t != nil && i >= len(t.caps) {
			return // those of [org] are looked at by themselves
		}
		for j, o := range caps {
			if i == j || c.Counting != o.Counting || !wider(o, c) {
				continue
			}
			higher := o.USD > c.USD || o.Count > c.Count
			same := o.USD == c.USD && o.Count == c.Count
			if higher || same && wider(c, o) && i < j {
				continue
			}
			l.add(Finding{
				Level: Warning, Code: "never_binds", Table: table, Line: lines[i],
				Text: fmt.Sprintf("cap %s is never reached: %s counts no less and is reached first", quoteCap(c), quoteCap(o)),
			})
			break
		}
	}
}

// wider reports whether o counts whatever c counts.
func wider(o, c Limit) bool {
	scope := o.Scope.Kind == c.Scope.Kind || o.Scope.Kind == ScopeOrg || o.Scope.Kind == ScopeAgent && c.Scope.Kind != ScopeOrg
	return scope && o.Window.spans(c.Window)
}

// spans reports whether w counts, at every instant, whatever v counts. The
// longest day has 26 hours: a clock set back by two.
func (w Window) spans(v Window) bool {
	const slack = 2 * time.Hour
	switch {
	case w == v, w.Kind == Ever:
		return true
	case w.Kind == Rolling && v.Kind == Rolling:
		return w.Length >= v.Length
	case w.Kind == Rolling:
		longest := map[WindowKind]time.Duration{Day: 24*time.Hour + slack, Week: 7*24*time.Hour + slack, Month: 31*24*time.Hour + slack}
		most, ok := longest[v.Kind]
		return ok && w.Length >= most
	case v.Kind == Day:
		return w.Zone == v.Zone && (w.Kind == Week || w.Kind == Month)
	}
	return false
}

// hosting are names below which anybody can have one. It is not the whole
// list of public suffixes: that one brings net/http along.
var hosting = strings.Fields(`github.io gitlab.io vercel.app netlify.app pages.dev workers.dev trycloudflare.com herokuapp.com fly.dev
	onrender.com railway.app web.app firebaseapp.com appspot.com run.app amazonaws.com cloudfront.net azurewebsites.net azureedge.net
	windows.net ngrok.io ngrok.app ngrok-free.app replit.app repl.co glitch.me deno.dev surge.sh blogspot.com wordpress.com
	digitaloceanspaces.com ondigitalocean.app translate.goog sharepoint.com myshopify.com`)

// commonSuffix reports whether anybody can have a name below name: co.uk,
// github.io.
func commonSuffix(name string) bool {
	second, top, ok := strings.Cut(name, ".")
	if ok && len(top) == 2 && slices.Contains([]string{"co", "com", "net", "org", "ac", "edu", "gov", "gob", "or", "ne"}, second) {
		return true
	}
	return slices.Contains(hosting, name)
}

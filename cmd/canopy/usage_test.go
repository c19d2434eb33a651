package main

import (
	"strings"
	"testing"

	"github.com/canopy-go/canopy/payment"
)

func TestGlobalFlagsAnywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent))
	url := w.url + "/cent"
	for _, args := range [][]string{
		{"--config", w.config, "--json", "--agent", "chatty", "check", url},
		{"check", "--config", w.config, "--json", "--agent", "chatty", url},
		{"check", url, "--agent=chatty", "--json", "--config=" + w.config},
		{"--json", "check", url, "--config", w.config, "--agent", "chatty", "--no-color", "--quiet"},
		{"-q", "--config", w.config, "check", "--agent", "chatty", url, "--json", "-v"},
	} {
		r := call(t, t.Context(), "", args...)
		if r.code != 0 || r.object(t)["status"] != "allowed" {
			t.Errorf("canopy %v: %+v", args, r)
		}
	}
	for _, args := range [][]string{
		{"approvals", "--json", "list", "--config", w.config}, {"--json", "approvals", "list", "--config", w.config},
		{"--config", w.config, "ledger", "list", "--json"},
	} {
		if r := call(t, t.Context(), "", args...); r.code != 0 || r.out != "[]\n" {
			t.Errorf("canopy %v: %+v", args, r)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"nothing", "fetch", "fetch a b", "--nope", "fetch --nope x", "approvals nothing", "approvals show", "ledger resolve", "freeze",
		"preview 0x12 1", "preview 0x2096a1dd90dd45F9b6C2FB2C3CF0e0d1c7C4287C -1", "preview 0x2096a1dd90dd45f9b6c2fb2c3cf0e0d1c7c4287c 1 --chain mars",
		"ledger resolve 01J9ZC3V5Y8Q2T4W6X8Z0A1B2C --reason x", "ledger resolve 01J9ZC3V5Y8Q2T4W6X8Z0A1B2C --settled 0x1 --reason x",
		"ledger resolve 01J9ZC3V5Y8Q2T4W6X8Z0A1B2C --unused --settled 0x1 --reason x", "init extra", "version extra", "config check x",
		"completion", "completion nosh", "completion bash extra",
		"fetch ftp://x.example/", "fetch mailto://x.example", "fetch https:///x", "fetch https://:443/", "fetch http://[::1",
		"check ftp://x.example/", "check https:///x", "check http://%zz/",
	} {
		if r := call(t, t.Context(), "", strings.Fields(args)...); r.code != 2 || r.err == "" || r.out != "" {
			t.Errorf("canopy %s: %+v", args, r)
		}
	}
	contains(t, call(t, t.Context(), "", "completion", "nosh").err, `"nosh" is no shell that it knows: there are bash, fish, powershell, zsh`)
	if r := call(t, t.Context(), "", "--json", "fetch"); r.code != 2 || r.err != "" || r.object(t)["status"] != "error" {
		t.Errorf("%+v", r)
	}
}

// A variable of the shell that is not set is no limit that was meant.
func TestEmptyMaxPrice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent))
	for _, verb := range []string{"fetch", "check", "policy explain"} {
		r := w.want(2, append(strings.Fields(verb), w.url+"/cent", "--max-price", "")...)
		contains(t, r.err, "--max-price: it is empty", "See canopy "+verb+" --help")
	}
	w.chain.AssertSpent(t, w.payer, 0)
}

// A key that is none is a mistake of usage, told by the flag's name.
func TestOddKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent))
	for key, says := range map[string]string{"": "it is empty", "a\nb": "no control characters", strings.Repeat("k", 257): "1 to 256 bytes, not 257"} {
		r := w.want(2, "fetch", w.url+"/cent", "--key", key)
		contains(t, r.err, "--key: ", says, "See canopy fetch --help")
		if strings.Contains(r.err, "WithKey") {
			t.Errorf("%q", r.err)
		}
	}
	w.want(0, "fetch", w.url+"/cent", "--key", strings.Repeat("k", 256))
	w.chain.AssertSpent(t, w.payer, payment.Cent)
}

// Every command has help with an example, and completion works in four shells.
func TestHelp(t *testing.T) {
	t.Parallel()
	var walk func(path []string)
	walk = func(path []string) {
		r := call(t, t.Context(), "", append(path, "--help")...)
		if r.code != 0 || r.out == "" {
			t.Errorf("canopy %v --help: exit %d", path, r.code)
		}
		if !strings.Contains(r.out, "Available Commands") && !strings.Contains(r.out, "Examples:") {
			t.Errorf("canopy %v --help has no example", path)
		}
		a := &app{}
		c, _, err := a.root().Find(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, sub := range c.Commands() {
			walk(append(path[:len(path):len(path)], sub.Name()))
		}
	}
	walk(nil)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := call(t, t.Context(), "", "completion", shell); r.code != 0 || len(r.out) < 500 || !strings.Contains(r.out, "canopy") {
			t.Errorf("completion %s: exit %d, %d bytes", shell, r.code, len(r.out))
		}
	}
	if r := call(t, t.Context(), ""); r.code != 0 || !strings.Contains(r.out, "canopy fetch") {
		t.Errorf("no command: %+v", r)
	}
	if r := call(t, t.Context(), "", "version", "--json"); r.code != 0 || r.object(t)["version"] == "" {
		t.Errorf("version: %+v", r)
	}
}

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/payment"
)

// ownWorld is a world with a ledger, the files of a process that has it open,
// and a keystore that the configuration names. Paths are relative to w.dir.
func ownWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent), route("POST /cent", payment.Cent))
	w.want(0, "fetch", w.url+"/cent")
	w.want(0, "init", "--config", filepath.Join(w.dir, "keystore", "canopy.toml"), "--password-env", passwordEnv)
	b, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	keystore := strings.Replace(string(b), "key_env = \""+keyEnv+"\"", "keystore = \"keystore/key.json\"\npassword_env = \""+passwordEnv+"\"", 1)
	if err := os.WriteFile(w.config, []byte(keystore), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(w.dir, "out"), 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

// links makes names in out/ that lead to target: by symlink, through a linked
// directory, and where the file is there by hard link.
func (w *world) links(target string) []string {
	w.t.Helper()
	out := filepath.Join(w.dir, "out")
	at := filepath.Join(w.dir, target)
	slug := strings.ReplaceAll(target, "/", "_")
	soft, dir := filepath.Join(out, "soft-"+slug), filepath.Join(out, "dir-"+slug)
	if os.Symlink(at, soft) != nil || os.Symlink(filepath.Dir(at), dir) != nil {
		w.t.Fatal("no symbolic links here")
	}
	names := []string{
		at, soft, filepath.Join(dir, filepath.Base(at)),
		out + "/../" + target, dir + "/../" + filepath.Base(filepath.Dir(at)) + "/" + filepath.Base(at),
	}
	if runtime.GOOS == "linux" {
		names = append(names, "/proc/self/root"+at)
	}
	return names
}

// An answer is not written over what the program itself lives by.
func TestFetchOutputSparesOwnFiles(t *testing.T) {
	t.Parallel()
	w := ownWorld(t)
	paid := len(w.seller.Requests())
	for target, what := range map[string]string{
		"canopy.toml":             "the configuration",
		"keystore/key.json":       "the keystore",
		"canopy.db":               "the ledger",
		"canopy.db-wal":           "the ledger",
		"canopy.db-shm":           "the ledger",
		"canopy.db-journal":       "the ledger",
		"canopy.db-lock":          "the ledger",
		"canopy.db-owner-01JD":    "the ledger",
		"state/ledger-other.json": "the directory that remembers the ledger",
	} {
		at := filepath.Join(w.dir, target)
		before, _ := os.ReadFile(at)
		for _, name := range w.links(target) {
			r := w.run("fetch", w.url+"/cent?"+target, "-o", name)
			if r.code != 2 || !strings.Contains(r.err, what) || !strings.Contains(r.err, "nothing was sent") {
				t.Errorf("-o %s: exit %d, want 2 and %q: %s", name, r.code, what, r.err)
			}
			if after, _ := os.ReadFile(at); string(after) != string(before) {
				t.Fatalf("-o %s changed %s", name, target)
			}
		}
	}
	for _, target := range []string{"canopy.toml", "keystore/key.json"} {
		hard := filepath.Join(w.dir, "out", "hard-"+filepath.Base(target))
		if err := os.Link(filepath.Join(w.dir, target), hard); err != nil {
			t.Fatal(err)
		}
		if r := w.run("fetch", w.url+"/cent?hard", "-o", hard); r.code != 2 {
			t.Errorf("-o a hard link to %s: exit %d: %s", target, r.code, r.err)
		}
	}
	if n := len(w.seller.Requests()); n != paid {
		t.Errorf("%d requests were sent", n-paid)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "canopy.db-owner-01JD")); err == nil {
		t.Error("a refused file was made")
	}
	w.want(0, "config", "check")
	if r := w.run("ledger", "verify"); r.code != 0 {
		t.Errorf("ledger verify: exit %d: %s", r.code, r.err)
	}
}

// What holds the key, or what was paid, is not sent to a seller.
func TestFetchDataSparesOwnFiles(t *testing.T) {
	t.Parallel()
	w := ownWorld(t)
	paid := len(w.seller.Requests())
	refused := map[string]string{}
	for target, what := range map[string]string{
		"keystore/key.json": "the keystore", "canopy.db": "the ledger", "canopy.db-lock": "the ledger",
	} {
		for _, name := range w.links(target) {
			refused[name] = what
		}
	}
	if runtime.GOOS == "linux" {
		link := filepath.Join(w.dir, "out", "environ")
		if err := os.Symlink("/proc/self/environ", link); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"/proc/self/environ", "/proc/thread-self/environ", "/proc/1/environ", "/proc/self/task/../environ", "/proc/self/root/proc/self/environ", link} {
			refused[name] = "the environment of a process"
		}
	}
	for name, what := range refused {
		for _, flag := range []string{"-d", "--data-binary"} {
			r := w.run("fetch", w.url+"/cent", flag, "a=1", flag, "@"+name)
			if r.code != 2 || !strings.Contains(r.err, what) || strings.Contains(r.err, "no such file") {
				t.Errorf("%s @%s: exit %d, want 2 and %q: %s", flag, name, r.code, what, r.err)
			}
		}
	}
	if n := len(w.seller.Requests()); n != paid {
		t.Errorf("%d requests were sent", n-paid)
	}
}

// Other files are as curl has them, beside the ledger too.
func TestFetchOtherFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent), route("POST /cent", payment.Cent))
	for _, name := range []string{"answer", "canopy.json", "canopy.db.json", "state.json"} {
		at := filepath.Join(w.dir, name)
		w.want(0, "fetch", w.url+"/cent?"+name, "-o", at)
		if b, err := os.ReadFile(at); err != nil || string(b) != "{\"path\":\"/cent\"}\n" {
			t.Errorf("-o %s: %q, %v", name, b, err)
		}
		w.want(0, "fetch", w.url+"/cent?"+name, "-d", "@"+at)
	}
	link := filepath.Join(w.dir, "link") // to a file that is not there yet
	if err := os.Symlink("later", link); err != nil {
		t.Fatal(err)
	}
	w.want(0, "fetch", w.url+"/cent?link", "-o", link)
	if _, err := os.Stat(filepath.Join(w.dir, "later")); err != nil {
		t.Error(err)
	}
}

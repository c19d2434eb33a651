//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger/sqlite"
)

// binaryDir is where binary builds; TestMain removes it.
var binaryDir string

// binary is the path of the program, built once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	var err error
	if binaryDir, err = os.MkdirTemp("", "canopy-e2e-"); err != nil {
		return "", err
	}
	path := filepath.Join(binaryDir, "canopy")
	if out, err := exec.Command("go", "build", "-o", path, "../cmd/canopy").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// shell runs the program in a directory with a configuration of its own.
type shell struct {
	dir   string
	payer Account
	chain *Chain
	path  string
	env   []string // of its own, such as NAME=value
}

// newShell writes canopy.toml, as a person would, around the policy and the network table.
func newShell(t testing.TB, c *Chain, policyDoc, network string, units uint64) *shell {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	sh := &shell{dir: t.TempDir(), payer: c.Payer(t, units), chain: c, path: path}
	doc := "[treasury]\nkey_env = \"CANOPY_KEY\"\n" + network + policyDoc
	if err := os.WriteFile(filepath.Join(sh.dir, "canopy.toml"), []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	return sh
}

const allowLoopback = "[network]\nallow_private = [\"127.0.0.0/8\"]\n"

// ran is what a run of the program left.
type ran struct {
	args     []string
	code     int
	out, err string
}

// run runs the program and fails t if the exit code is another.
func (sh *shell) run(t testing.TB, code int, args ...string) ran {
	t.Helper()
	r := sh.exec(t, 0, args...)
	if r.code != code {
		t.Errorf("%s\nwant exit code %d", r, code)
	}
	return r
}

// command is a run of the program that has not begun.
func (sh *shell) command(args ...string) *exec.Cmd {
	cmd := exec.Command(sh.path, args...)
	cmd.Dir = sh.dir
	cmd.Env = append([]string{
		"CANOPY_KEY=" + sh.payer.HexKey(), "HOME=" + sh.dir, "XDG_STATE_HOME=" + filepath.Join(sh.dir, "state"),
		"PATH=" + os.Getenv("PATH"), "USER=ana",
	}, sh.env...)
	return cmd
}

// exec runs the program, with Ctrl-C after some time where that is not 0.
func (sh *shell) exec(t testing.TB, after time.Duration, args ...string) ran {
	t.Helper()
	cmd := sh.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Start()
	if err == nil {
		if after > 0 {
			defer time.AfterFunc(after, func() { cmd.Process.Signal(os.Interrupt) }).Stop()
		}
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Errorf("canopy: %v", err)
		return ran{args: args, code: -1}
	}
	r := ran{args, cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
	if strings.Contains(strings.ToLower(r.out+r.err), sh.payer.HexKey()[2:]) {
		t.Errorf("%s\nit shows the key", r)
	}
	return r
}

func (r ran) String() string {
	return fmt.Sprintf("canopy %s: exit %d\n%s%s", strings.Join(r.args, " "), r.code, r.out, r.err)
}

// has fails t unless each text is in one of the streams.
func (r ran) has(t testing.TB, texts ...string) ran {
	t.Helper()
	for _, s := range texts {
		if !strings.Contains(r.out+r.err, s) {
			t.Errorf("%s\nwant %q in it", r, s)
		}
	}
	return r
}

// json decodes standard output, which must be one JSON value and nothing else.
func (r ran) json(t testing.TB, out any) ran {
	t.Helper()
	if err := json.Unmarshal([]byte(r.out), out); err != nil {
		t.Fatalf("%s\nstandard output is not JSON: %v", r, err)
	}
	return r
}

// reckon is that of a buyer.
func (sh *shell) reckon(t testing.TB) {
	t.Helper()
	s := sh.open(t)
	defer s.Close()
	reckon(t, sh.chain, s, sh.payer.Address)
}

// open opens the program's ledger.
func (sh *shell) open(t testing.TB) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(sh.dir, "canopy.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const shellPolicy = `
[policy.default]
max_payment   = "$10"
caps          = ["$9 / 24h"]
approve_above = "$5"
allow         = ["host:127.0.0.1"]
`

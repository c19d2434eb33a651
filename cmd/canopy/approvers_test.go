package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/payment"
)

const namedPolicy = `
[policy.default]
max_payment = "$2"
caps = ["$30 / 24h"]
approve_above = "$1"
allow = ["host:127.0.0.1"]
approvers = ["ana", "Ben", "cyd"]
quorum = 2
[policy.trader]
from = "default"
quorum = 1
`

// person adds an approver, and returns the file that has their credential.
func (w *world) person(name string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), name)
	w.want(0, "approvers", "add", name, "--credential-file", path, "--quiet")
	return path
}

func (w *world) asks(url string, args ...string) string {
	w.t.Helper()
	return w.want(3, append([]string{"fetch", url, "--json"}, args...)...).object(w.t)["approval_id"].(string)
}

func credentialIn(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func TestApprovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, namedPolicy, route("GET /dear", 150*payment.Cent))
	contains(t, w.want(0, "approvers", "list").out, "Nobody has a credential yet")
	r := w.want(0, "approvers", "add", "ana")
	ana := strings.TrimSpace(r.out)
	if !strings.HasPrefix(ana, "canopy_ana_") || strings.Contains(ana, "\n") || len(ana) != len("canopy_ana_")+52 {
		t.Errorf("standard output is not the credential alone: %q", r.out)
	}
	contains(t, r.err, "shown this once", "keep it from the agent")
	r = w.want(0, "approvers", "add", "ben", "--json")
	wantKeys(t, r, "name credential")
	ben := r.object(t)["credential"].(string)
	contains(t, w.want(0, "approvers", "add", "dan").err, "No policy names dan")

	for name, want := range map[string]string{"ANA": "already", "a b": "1 to 64", "": "1 to 64", "trader": "no agent approves", "Default": "no agent approves", "agt_x": "id of an agent"} {
		r := w.run("approvers", "add", name)
		if r.code == 0 || r.out != "" {
			t.Errorf("add %q: exit %d, %s", name, r.code, r.out)
		}
		contains(t, r.err, want)
	}
	for _, args := range [][]string{{"rotate", "eve"}, {"revoke", "eve"}} {
		contains(t, w.want(1, append([]string{"approvers"}, args...)...).err, "no approver eve")
	}

	// A file of one's own, and never over another.
	path := filepath.Join(t.TempDir(), "c")
	if r := w.want(0, "approvers", "rotate", "ana", "--credential-file", path); r.out != "" || strings.Contains(r.err, "canopy_ana_") {
		t.Errorf("the credential is shown and written: %s %s", r.out, r.err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	if next := credentialIn(t, path); next == ana || !strings.HasPrefix(next, "canopy_ana_") {
		t.Errorf("the file holds %q", next)
	}
	w.want(2, "approvers", "rotate", "ana", "--credential-file", path)
	w.want(1, "approvers", "add", "ben", "--credential-file", path+"2")
	if _, err := os.Stat(path + "2"); !os.IsNotExist(err) {
		t.Errorf("a file without a credential is left: %v", err)
	}

	contains(t, w.want(0, "approvers", "revoke", "ben").err, "policy default needs 2 of its approvers, and 1 may rule")
	r = w.want(0, "approvers", "list")
	contains(t, r.out, "ana", "ben", "revoked", "dan", "default trader")
	contains(t, r.err, "A policy names cyd, who has no credential")
	var list []map[string]any
	if err := json.Unmarshal([]byte(w.want(0, "approvers", "list", "--json").out), &list); err != nil || len(list) != 3 {
		t.Fatalf("%v, %v", list, err)
	}
	if list[0]["name"] != "ana" || list[0]["rotatedAt"] == nil || list[1]["status"] != "revoked" || list[2]["status"] != "active" || len(list[2]["namedBy"].([]any)) != 0 {
		t.Errorf("%v", list)
	}
	said := w.want(0, "approvers", "list").out + w.want(0, "approvers", "list", "--json").out
	if strings.Contains(said, "canopy_") || strings.Contains(said, ben) {
		t.Errorf("the list tells a credential: %s", said)
	}
}

// Where the policy names approvers, two of them say yes, each by a credential;
// nobody else is heard, and nobody twice.
func TestApproveByCredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t, namedPolicy, route("GET /dear", 150*payment.Cent))
	ana, ben, dan := w.person("ana"), w.person("ben"), w.person("dan")
	id := w.asks(w.url + "/dear")
	contains(t, w.want(0, "approvals", "show", id).out, "2 of ana, Ben, cyd")
	rule := func(verb, file string, args ...string) result {
		return w.run(append([]string{"approvals", verb, id, "--yes", "--credential-file", file}, args...)...)
	}
	if r := w.want(2, "approvals", "approve", id, "--yes", "--by", "ana"); !strings.Contains(r.err, "--credential-file") {
		t.Errorf("without a credential: %s", r.err)
	}
	bad := filepath.Join(t.TempDir(), "bad")
	for text, want := range map[string]string{"hunter2": "credential", strings.Replace(credentialIn(t, ben), "ben", "ana", 1): "credential", "": "credential"} {
		if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := rule("approve", bad, "--json")
		if v := r.object(t); r.code != 1 || v["code"] != want || text != "" && strings.Contains(r.out+r.err, text) {
			t.Errorf("with %q: exit %d, %s %s", text, r.code, r.out, r.err)
		}
	}
	if r := rule("approve", dan, "--json"); r.code != 1 || r.object(t)["code"] != "not_named" {
		t.Errorf("who is not named: %d, %s", r.code, r.out)
	}
	if r := rule("approve", ana, "--by", "ben", "--json"); r.code != 1 || r.object(t)["code"] != "credential" {
		t.Errorf("as somebody else: %d, %s", r.code, r.out)
	}
	w.want(3, "approvals", "wait", id, "--timeout", "10ms")

	r := rule("approve", ana, "--reason", "for the report")
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	contains(t, r.out, "pending by ana")
	contains(t, r.err, "1 of 2 have said yes: it waits for 1 of Ben, cyd")
	if r := rule("approve", ana, "--json"); r.code != 1 || r.object(t)["code"] != "already_voted" {
		t.Errorf("twice: %d, %s", r.code, r.out)
	}
	contains(t, w.want(0, "approvals", "show", id).out, "yes by ana via cli", "for the report")
	w.want(3, "fetch", w.url+"/dear")
	var list []struct {
		Approvers []string
		Quorum    int
		Votes     []struct {
			By, Via string
			Approve bool
			Comment string
		}
	}
	if err := json.Unmarshal([]byte(w.want(0, "approvals", "list", "--json").out), &list); err != nil || len(list) != 1 || list[0].Quorum != 2 || len(list[0].Approvers) != 3 ||
		len(list[0].Votes) != 1 || list[0].Votes[0].By != "ana" || !list[0].Votes[0].Approve || list[0].Votes[0].Comment != "for the report" {
		t.Errorf("%+v, %v", list, err)
	}

	// The rotated and the revoked are not heard.
	if err := os.WriteFile(bad, []byte(credentialIn(t, ben)), 0o600); err != nil {
		t.Fatal(err)
	}
	os.Remove(ben)
	w.want(0, "approvers", "rotate", "ben", "--credential-file", ben)
	if r := rule("approve", bad, "--json"); r.code != 1 || r.object(t)["code"] != "credential" {
		t.Errorf("a rotated credential: %d, %s", r.code, r.out)
	}
	r = w.runIn(credentialIn(t, ben)+"\n", "approvals", "approve", id, "--yes", "--credential-file", "-")
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	contains(t, r.out, "approved by ben")
	if v := w.want(0, "approvals", "show", id, "--json").object(t); len(v["votes"].([]any)) != 2 || v["status"] != "approved" {
		t.Errorf("%v", v)
	}
	w.want(0, "fetch", w.url+"/dear")

	// One no is enough.
	id = w.asks(w.url+"/dear", "--agent", "trader")
	if r := rule("deny", ben); r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	w.want(4, "approvals", "wait", id)

	// No flag takes a credential: every process can read a command line.
	for _, cmd := range []string{"approve", "deny"} {
		if help := w.want(0, "approvals", cmd, "--help").out; strings.Contains(help, "--credential ") {
			t.Errorf("%s takes a credential on the command line:\n%s", cmd, help)
		}
	}
}

// runIn is run with something on standard input.
func (w *world) runIn(stdin string, args ...string) result {
	w.t.Helper()
	return call(w.t, w.t.Context(), stdin, append([]string{"--config", w.config}, args...)...)
}

// newLines is a writer that hands out what it is given, line by line.
func newLines() (*io.PipeWriter, chan string) {
	r, pw := io.Pipe()
	lines := make(chan string, 1000)
	go func() {
		var buf bytes.Buffer
		b := make([]byte, 4096)
		for {
			n, err := r.Read(b)
			buf.Write(b[:n])
			for {
				line, e := buf.ReadString('\n')
				if e != nil {
					buf.WriteString(line)
					break
				}
				lines <- line
			}
			if err != nil {
				close(lines)
				return
			}
		}
	}()
	return pw, lines
}

// Watch shows what waits, what comes and how it ends, until it is told to end.
func TestApprovalsWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, namedPolicy, route("GET /dear", 150*payment.Cent), route("GET /other", 160*payment.Cent))
	ana, ben := w.person("ana"), w.person("ben")
	first := w.asks(w.url + "/dear")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, said := newLines()
	done := make(chan int, 1)
	go func() {
		code := run(ctx, []string{"--config", w.config, "approvals", "watch", "--json"}, strings.NewReader(""), out, io.Discard)
		out.Close()
		done <- code
	}()
	next := func() map[string]any {
		t.Helper()
		select {
		case line := <-said:
			var v map[string]any
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatalf("%v: %q", err, line)
			}
			return v
		case <-time.After(10 * time.Second):
			t.Fatal("nothing is shown")
			return nil
		}
	}
	if v := next(); v["approvalId"] != first || v["status"] != "pending" || v["terms"] == nil {
		t.Errorf("what waited: %v", v)
	}
	second := w.asks(w.url + "/other")
	if v := next(); v["approvalId"] != second || v["costUsd"] != 1.6 {
		t.Errorf("what came: %v", v)
	}
	w.want(0, "approvals", "approve", first, "--yes", "--credential-file", ana)
	if v := next(); v["approvalId"] != first || v["status"] != "pending" || len(v["votes"].([]any)) != 1 {
		t.Errorf("a vote: %v", v)
	}
	w.want(0, "approvals", "deny", first, "--yes", "--credential-file", ben)
	if v := next(); v["approvalId"] != first || v["status"] != "denied" || v["decidedBy"] != "ben" {
		t.Errorf("its end: %v", v)
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("exit %d", code)
	}

	// For people: all that one rules on, and how.
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r := call(t, ctx, "", "--config", w.config, "approvals", "watch", "--agent", "default")
	contains(t, r.out, "$1.60", "/other", "2 of ana, Ben, cyd", "canopy approvals approve "+second, "canopy approvals deny "+second)
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if r := call(t, ctx, "", "--config", w.config, "approvals", "watch", "--agent", "trader"); r.out != "" {
		t.Errorf("another agent's: %s", r.out)
	}
}

// Approvers who rule at the same moment, each in a process of their own: one
// outcome, and it is the record's.
func TestApproversAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, namedPolicy, route("GET /dear", 150*payment.Cent))
	bin := program(t)
	files := map[string]string{"ana": w.person("ana"), "ben": w.person("ben"), "cyd": w.person("cyd")}
	for range 4 {
		id := w.asks(w.url+"/dear", "--agent", "trader") // one of them is enough
		type ruled struct {
			by  string
			err error
			out []byte
		}
		answers := make(chan ruled, len(files))
		for by, file := range files {
			verb := "approve"
			if by == "cyd" {
				verb = "deny"
			}
			go func() {
				out, err := exec.Command(bin, "--config", w.config, "--json", "approvals", verb, id, "--yes", "--credential-file", file).Output()
				answers <- ruled{by, err, out}
			}()
		}
		winner := ""
		for range files {
			switch a := <-answers; {
			case a.err == nil && winner == "":
				winner = a.by
			case a.err == nil:
				t.Errorf("%s and %s both ruled", winner, a.by)
			case !strings.Contains(string(a.out), "already_decided"):
				t.Errorf("%s: %v, %s", a.by, a.err, a.out)
			}
		}
		want := "approved"
		if winner == "cyd" {
			want = "denied"
		}
		if v := w.want(0, "approvals", "show", id, "--json").object(t); v["status"] != want || len(v["votes"].([]any)) != 1 || v["votes"].([]any)[0].(map[string]any)["by"] != winner {
			t.Errorf("%s ruled, and it is %v", winner, v)
		}
		if want == "approved" {
			w.want(0, "fetch", w.url+"/dear", "--agent", "trader")
		}
	}
	w.want(0, "ledger", "verify")
}

// program builds the program.
func program(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "canopy")
	if b, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return bin
}

// No credential is in what other processes can read of the program that uses it,
// in its output or in the ledger.
func TestCredentialIsNotShown(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("/proc is Linux's")
	}
	w := newWorld(t, namedPolicy, route("GET /dear", 150*payment.Cent))
	ana := w.person("ana")
	id := w.asks(w.url + "/dear")
	secret := credentialIn(t, ana)[len("canopy_ana_"):]
	cmd := exec.Command(program(t), "--config", w.config, "-v", "approvals", "approve", id, "--yes", "--credential-file", "-")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // it waits for its input
	io.WriteString(in, credentialIn(t, ana)+"\n")
	for _, name := range []string{"cmdline", "environ"} {
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), name))
		if err == nil && strings.Contains(string(b), secret) {
			t.Errorf("%s shows the credential", name)
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	contains(t, said.String(), "pending by ana")
	if strings.Contains(said.String(), secret) {
		t.Errorf("the credential is printed: %s", &said)
	}
	for _, args := range [][]string{{"approvals", "show", id}, {"approvals", "show", id, "--json"}, {"approvals", "list", "--json"}, {"ledger", "export"}, {"ledger", "verify"}} {
		r := w.want(0, args...)
		if strings.Contains(r.out+r.err, secret) {
			t.Errorf("%v prints the credential", args)
		}
	}
	files, err := filepath.Glob(filepath.Join(w.dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), secret) {
			t.Errorf("%s holds the credential", path)
		}
	}
}

// The environment holds the credential of a person's own shell; a file that is
// named comes before it.
func TestCredentialFromTheEnvironment(t *testing.T) {
	w := newWorld(t, namedPolicy, route("GET /dear", 150*payment.Cent))
	ana, ben := w.person("ana"), w.person("ben")
	t.Setenv(credentialEnv, credentialIn(t, ana))
	id := w.asks(w.url + "/dear")
	contains(t, w.want(0, "approvals", "approve", id, "--yes").out, "pending by ana")
	contains(t, w.want(0, "approvals", "approve", id, "--yes", "--credential-file", ben).out, "approved by ben")
	t.Setenv(credentialEnv, "hunter2")
	id = w.asks(w.url+"/dear", "--agent", "trader")
	if r := w.want(1, "approvals", "deny", id, "--yes"); strings.Contains(r.err+r.out, "hunter2") {
		t.Errorf("the credential is printed: %s", r.err)
	}
}

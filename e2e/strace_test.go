//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// traced is one system call that a recorded process made. It was under way between two lines of the record.
type traced struct {
	name       string
	args       []string // as strace writes them
	result     string
	begin, end int
}

// recorded are all calls that change files or make changes durable, and those by which a change could go
// unseen. A name that this machine does not know is passed over.
const recorded = "?open,?openat,?openat2,?creat,?write,?writev,?pwrite64,?pwritev,?pwritev2,?ftruncate,?truncate,?fallocate,?fsync,?fdatasync," +
	"?sync,?syncfs,?sync_file_range,?msync,?mmap,?rename,?renameat,?renameat2,?link,?linkat,?symlink,?symlinkat,?unlink,?unlinkat,?mkdir,?mkdirat," +
	"?rmdir,?copy_file_range,?sendfile,?splice,?io_uring_setup"

// record runs a program under strace to its end and returns its calls, in the order in which they ended; one
// that came before another in the program does so here.
func record(t *testing.T, program string, args ...string) []traced {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Fatal("strace is not on the PATH: apt-get install strace")
	}
	file := filepath.Join(t.TempDir(), "calls")
	cmd := exec.Command(strace, append([]string{"-f", "-y", "-xx", "-s", "1048576", "-e", "signal=none", "-e", "trace=" + recorded, "-o", file, program}, args...)...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	stdout, err := cmd.StdoutPipe() // so that the program writes to a pipe
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, stdout)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("recording %s: %v\n%s\n(without the right to trace its own child, ptrace, a machine cannot run this test)", program, err, &complaints)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	calls, err := readCalls(f)
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

// readCalls reads what strace -f wrote.
func readCalls(r io.Reader) ([]traced, error) {
	type half struct {
		text  string
		begin int
	}
	var calls []traced
	open := map[string]half{} // by thread
	lines := bufio.NewReaderSize(r, 1<<20)
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("line %d of the record: %w", n, err)
		}
		thread, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		text = strings.TrimLeft(text, " ")
		begin := n
		if head, ok := strings.CutSuffix(text, " <unfinished ...>"); ok {
			open[thread] = half{head, n}
			continue
		}
		if rest, ok := strings.CutPrefix(text, "<... "); ok {
			_, rest, _ = strings.Cut(rest, " resumed>")
			text, begin = open[thread].text+rest, open[thread].begin
			delete(open, thread)
		}
		if strings.HasPrefix(text, "+++") || strings.HasPrefix(text, "---") {
			continue
		}
		c, err := readCall(text)
		if err != nil {
			return nil, fmt.Errorf("line %d of the record: %w", n, err)
		}
		c.begin, c.end = begin, n
		calls = append(calls, c)
	}
	return calls, nil
}

// readCall reads name(args) = result. Strings in it are hexadecimal, so no mark can stand in one.
func readCall(text string) (traced, error) {
	head, result, ok := cutLast(text, " = ")
	name, args, ok2 := strings.Cut(strings.TrimRight(head, " "), "(")
	args, ok3 := strings.CutSuffix(args, ")")
	if !ok || !ok2 || !ok3 {
		return traced{}, fmt.Errorf("not a call: %.200q", text)
	}
	return traced{name: name, args: strings.Split(args, ", "), result: result}, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// failed reports whether the call changed nothing.
func (c traced) failed() bool { return strings.HasPrefix(c.result, "-1") || c.result == "?" }

// path is the file that an open descriptor stands for, such as 9</the/path>.
func (c traced) path(arg string) (string, error) {
	_, s, ok := strings.Cut(arg, "<")
	s, ok2 := strings.CutSuffix(s, ">")
	if !ok || !ok2 {
		return "", fmt.Errorf("%s: %.100q is not a descriptor with its path", c.name, arg)
	}
	b, err := unhex(s)
	return string(b), err
}

// text is a quoted argument.
func (c traced) text(arg string) ([]byte, error) {
	s, ok := strings.CutPrefix(arg, `"`)
	s, ok2 := strings.CutSuffix(s, `"`)
	if !ok || !ok2 {
		return nil, fmt.Errorf("%s: %.100q is not a whole string", c.name, arg)
	}
	return unhex(s)
}

func (c traced) number(arg string) (int64, error) { return strconv.ParseInt(arg, 10, 64) }

func unhex(s string) ([]byte, error) {
	if len(s)%4 != 0 {
		return nil, fmt.Errorf("not hexadecimal: %.100q", s)
	}
	digits := make([]byte, 0, len(s)/2)
	for i := 0; i < len(s); i += 4 {
		if s[i:i+2] != `\x` {
			return nil, fmt.Errorf("not hexadecimal: %.100q", s)
		}
		digits = append(digits, s[i+2], s[i+3])
	}
	out := make([]byte, len(digits)/2)
	_, err := hex.Decode(out, digits)
	return out, err
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/canopy-go/canopy/internal/plaintext"
)

// terminal reports whether a person sits there: standard input and standard
// error are a terminal.
func (a *app) terminal() bool { return isTerminal(a.in) && isTerminal(a.err) }

func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// askSecret asks for something that is not shown while it is typed.
func (a *app) askSecret(ctx context.Context, what string) (string, error) {
	file, ok := a.in.(*os.File)
	if !ok {
		return "", errors.New("there is no terminal to ask on")
	}
	fd := int(file.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", errors.New("there is no terminal to ask on")
	}
	fmt.Fprintf(a.err, "%s: ", what)
	b, err := typed(ctx, func() (string, error) { b, err := term.ReadPassword(fd); return string(b), err })
	fmt.Fprintln(a.err)
	if err != nil {
		term.Restore(fd, before) // whoever read may still be reading
		return "", errors.New("nothing was typed")
	}
	return b, nil
}

// confirm asks for a yes. Without a terminal, only yes given beforehand is one.
func (a *app) confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if !a.terminal() || a.json {
		return exit{codeUsage, errors.New("this is not confirmed: look at it first, then add --yes")}
	}
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	line, err := typed(ctx, func() (string, error) { return bufio.NewReader(a.in).ReadString('\n') })
	if answer := strings.ToLower(strings.TrimSpace(line)); err != nil || answer != "y" && answer != "yes" {
		return exit{codeFailed, errors.New("nothing was changed")}
	}
	return nil
}

// typed is what read returns, or an error as soon as ctx ends: a read of a
// terminal cannot be interrupted.
func typed(ctx context.Context, read func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		text, err := read()
		done <- answer{text, err}
	}()
	select {
	case a := <-done:
		return a.text, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// me is the name of whoever runs the program.
func me() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return os.Getenv("USER")
}

// Colours of the terminal.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
)

// colour paints s where standard output is a terminal that wants it.
func (a *app) colour(code, s string) string {
	if a.noColor || os.Getenv("NO_COLOR") != "" || !isTerminal(a.out) {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// mood is the colour of a status or state.
func mood(s string) string {
	switch s {
	case "allowed", "approved", "settled", "claimed", "paid", "active":
		return green
	case "denied", "rejected", "expired", "approval_expired", "needs_operator", "frozen":
		return red
	}
	return yellow
}

// table prints aligned columns.
func (a *app) table(header []string, rows [][]string) {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(header, "\t"))
	for _, row := range rows {
		for i := range row {
			row[i] = show(row[i], 200)
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush()
}

// fields prints names and values; empty values are left out, and a status gets
// its colour.
func (a *app) fields(pairs ...string) {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			width = max(width, len(pairs[i]))
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			value := visibleLines(pairs[i+1])
			switch pairs[i] {
			case "status", "state", "verdict":
				value = a.colour(mood(value), value)
			}
			a.printf("%-*s  %s\n", width, pairs[i], value)
		}
	}
}

// show is s fit for one line of a terminal.
func show(s string, max int) string { return plaintext.Clean(s, max) }

// visibleLines is s fit for a terminal, its line ends kept.
func visibleLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		indent := len(l) - len(strings.TrimLeft(l, " "))
		lines[i] = l[:indent] + show(l, 4<<10)
	}
	return strings.Join(lines, "\n")
}

// screen is a writer for a terminal: what could move its cursor, change its
// colours or reorder its text is left out. Line ends and tabs pass.
type screen struct {
	w    io.Writer
	rest []byte // the begin of a character
	open bool   // the last line has no end
}

func (s *screen) Write(p []byte) (int, error) {
	b := append(s.rest, p...)
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		if !utf8.FullRune(b) {
			break
		}
		r, n := utf8.DecodeRune(b)
		switch {
		case r == '\n' || r == '\t' || r == ' ':
			out = append(out, byte(r))
		case r == utf8.RuneError && n == 1:
			out = append(out, '?')
		case plaintext.Clean(string(r), n) != "":
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	s.rest = append([]byte(nil), b...)
	if len(out) > 0 {
		s.open = out[len(out)-1] != '\n'
	}
	if _, err := s.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// patch is a unified diff, after a first line that says what it plants, and a
// second one where it concerns one rail only.
type patch struct {
	what  string
	rail  string // x402 or mpp; empty for a rule of both
	files []filePatch
}

type filePatch struct {
	path  string
	hunks []hunk
}

// hunk is a run of lines to be found and what stands in their place.
type hunk struct {
	line     int // where it was
	old, new []string
}

func parse(text string) (patch, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	p := patch{what: lines[0]}
	lines = lines[1:]
	if rail, ok := strings.CutPrefix(strings.Join(lines[:min(len(lines), 1)], ""), "rail: "); ok {
		if p.rail, lines = rail, lines[1:]; rail != "x402" && rail != "mpp" {
			return p, fmt.Errorf("%q is no rail", rail)
		}
	}
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "--- "):
		case strings.HasPrefix(line, "+++ b/"):
			p.files = append(p.files, filePatch{path: strings.TrimPrefix(line, "+++ b/")})
		case len(p.files) == 0:
			return p, fmt.Errorf("%q is not of a unified diff", line)
		case strings.HasPrefix(line, "@@ "):
			start, _, _ := strings.Cut(strings.TrimPrefix(line, "@@ -"), " ")
			start, _, _ = strings.Cut(start, ",")
			n, err := strconv.Atoi(start)
			if err != nil {
				return p, fmt.Errorf("%q names no line", line)
			}
			f := &p.files[len(p.files)-1]
			f.hunks = append(f.hunks, hunk{line: n})
		default:
			if err := p.files[len(p.files)-1].add(line); err != nil {
				return p, err
			}
		}
	}
	if len(p.files) == 0 {
		return p, fmt.Errorf("it changes nothing")
	}
	return p, nil
}

func (f *filePatch) add(line string) error {
	if len(f.hunks) == 0 {
		return fmt.Errorf("%s: %q is in no hunk", f.path, line)
	}
	h := &f.hunks[len(f.hunks)-1]
	rest := ""
	if line != "" {
		rest = line[1:]
	}
	switch {
	case line == "" || line[0] == ' ':
		h.old, h.new = append(h.old, rest), append(h.new, rest)
	case line[0] == '-':
		h.old = append(h.old, rest)
	case line[0] == '+':
		h.new = append(h.new, rest)
	default:
		return fmt.Errorf("%s: %q is not of a unified diff", f.path, line)
	}
	return nil
}

// apply changes source. Each hunk has to be there to the letter; where it is
// there several times, the place nearest to where it was counts.
func (f *filePatch) apply(source string) (string, error) {
	lines := strings.Split(source, "\n")
	shift := 0
	for _, h := range f.hunks {
		at, want := -1, h.line-1+shift
		for i := 0; i+len(h.old) <= len(lines); i++ {
			if slices.Equal(lines[i:i+len(h.old)], h.old) && (at < 0 || distance(i, want) < distance(at, want)) {
				at = i
			}
		}
		if at < 0 {
			return "", fmt.Errorf("it no longer applies: %s, near line %d", f.path, h.line)
		}
		lines = slices.Concat(lines[:at], h.new, lines[at+len(h.old):])
		shift += len(h.new) - len(h.old)
	}
	return strings.Join(lines, "\n"), nil
}

func distance(a, b int) int { return max(a-b, b-a) }

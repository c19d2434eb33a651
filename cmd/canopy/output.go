package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
)

// output is where a body goes.
type output struct {
	w    io.Writer
	seen *screen  // w, where it is a terminal
	file *os.File // of -o; nil for standard output
	made bool     // the file was not there before
	kept bool     // something was written
}

// open prepares the place for the body before anything is paid. A file that is
// there keeps its content until an answer arrives.
func (f *fetch) open(o own) (*output, error) {
	switch {
	case f.output == "-":
		return &output{w: f.out}, nil
	case f.output == "" && isTerminal(f.out):
		s := &screen{w: f.out}
		return &output{w: s, seen: s}, nil
	case f.output == "":
		return &output{w: f.out}, nil
	}
	if err := o.writable(f.output); err != nil {
		return nil, exit{codeUsage, fmt.Errorf("-o: nothing was sent: %w", err)}
	}
	_, err := os.Lstat(f.output)
	made := os.IsNotExist(err)
	file, err := os.OpenFile(f.output, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return nil, exit{codeUsage, fmt.Errorf("-o: nothing was sent: %w", err)}
	}
	return &output{w: file, file: file, made: made}, nil
}

// begin empties the file that the answer replaces.
func (o *output) begin() error {
	if o.file == nil || o.kept {
		return nil
	}
	o.kept = true
	if info, err := o.file.Stat(); err != nil || !info.Mode().IsRegular() {
		return err
	}
	return o.file.Truncate(0)
}

// copy streams the body.
func (o *output) copy(body io.Reader) (int64, error) {
	if err := o.begin(); err != nil {
		return 0, err
	}
	return io.Copy(o.w, body)
}

// head prints the status and the headers.
func (o *output) head(resp *http.Response) {
	if o.begin() != nil {
		return // copy says it
	}
	fmt.Fprintf(o.w, "%s %s\n", show(resp.Proto, 20), show(resp.Status, 200))
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		for _, v := range resp.Header[name] {
			fmt.Fprintf(o.w, "%s: %s\n", show(name, 200), show(v, 8<<10))
		}
	}
	fmt.Fprintln(o.w)
}

// endLine ends the last line on a terminal, before more is said there.
func (o *output) endLine() {
	if o.seen != nil && o.seen.open {
		fmt.Fprintln(o.seen)
	}
}

// sync reports what the disk says.
func (o *output) sync() error {
	if o.file == nil {
		return nil
	}
	err := o.file.Close()
	o.file = nil
	return err
}

func (o *output) close() {
	if o.file == nil {
		return
	}
	name := o.file.Name()
	o.file.Close()
	if o.made && !o.kept {
		os.Remove(name)
	}
}

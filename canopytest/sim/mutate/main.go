// Command mutate measures what the simulator can see. It plants the bugs of
// canopytest/sim/testdata/mutants one at a time, plays worlds with each, and
// tells after how many steps the simulator caught it.
//
//	go run ./canopytest/sim/mutate
//
// What breaks a rule of both rails has to be caught in a world with both and in
// one with MPP alone; what concerns one rail, in a world with that one.
//
// Nothing in the work tree changes: a mutant is built with go build -overlay. A
// mutant that is not caught fails the run, and so does a patch that no longer
// applies or builds: it has to be brought up to date.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	dir := flag.String("dir", "canopytest/sim/testdata/mutants", "where the patches are")
	steps := flag.Int("steps", 20_000, "steps of each seed")
	seeds := flag.Int("seeds", 20, "how many seeds until a mutant counts as missed")
	only := flag.String("run", "", "a regular expression that names of mutants match")
	part := flag.String("part", "0/1", "K/N tries every N-th mutant, from the K-th on")
	jobs := flag.Int("jobs", 2, "how many mutants are tried at once")
	flag.Parse()
	if err := run(*dir, *only, *part, *jobs, *steps, *seeds); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(dir, only, part string, jobs, steps, seeds int) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f string) bool { return !match.MatchString(filepath.Base(f)) })
	var from, step int
	if n, err := fmt.Sscanf(part, "%d/%d", &from, &step); n != 2 || err != nil || from < 0 || step < 1 {
		return fmt.Errorf("-part is a number, a slash and how many parts there are, not %q", part)
	}
	files = every(files, from, step)
	if len(files) == 0 {
		return fmt.Errorf("no patch in %s", dir)
	}
	tmp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	began := time.Now()
	outcomes := make([]outcome, len(files))
	queue := make(chan int)
	var wg sync.WaitGroup
	for range max(jobs, 1) {
		wg.Go(func() {
			for i := range queue {
				outcomes[i] = try(files[i], tmp, steps, seeds)
				fmt.Println(outcomes[i])
			}
		})
	}
	for i := range files {
		queue <- i
	}
	close(queue)
	wg.Wait()
	return summary(outcomes, time.Since(began))
}

// every is each n-th of files from the one with that number, modulo n, on.
func every(files []string, from, n int) []string {
	var out []string
	for i := from % n; i < len(files); i += n {
		out = append(out, files[i])
	}
	return out
}

// outcome is what became of one mutant.
type outcome struct {
	name, what string
	caught     []catch
	err        error
}

// catch is how a mutant was caught in worlds of some rails.
type catch struct {
	rail  string
	steps int    // until it was caught, over all seeds; 0 where it was not
	by    string // the invariant that broke
}

func (c catch) String() string {
	if c.steps == 0 {
		return c.rail + ": MISSED"
	}
	return fmt.Sprintf("%s: %d by %s", c.rail, c.steps, c.by)
}

// missed reports whether a world did not catch it.
func (o outcome) missed() bool {
	return o.err != nil || slices.ContainsFunc(o.caught, func(c catch) bool { return c.steps == 0 })
}

func (o outcome) String() string {
	switch {
	case o.err != nil:
		return fmt.Sprintf("FAILED  %-32s %v", o.name, o.err)
	case o.missed():
		return fmt.Sprintf("MISSED  %-28s %v %s", o.name, o.caught, o.what)
	}
	return fmt.Sprintf("caught  %-28s steps %v %s", o.name, o.caught, o.what)
}

func summary(all []outcome, took time.Duration) error {
	var steps []int
	missed := 0
	for _, o := range all {
		if o.missed() {
			missed++
			continue
		}
		for _, c := range o.caught {
			steps = append(steps, c.steps)
		}
	}
	slices.Sort(steps)
	if n := len(steps); n > 0 {
		fmt.Printf("%d of %d caught; half of them within %d steps, the last after %d; %s\n",
			len(all)-missed, len(all), steps[(n-1)/2], steps[n-1], took.Round(time.Second))
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d mutants were not caught", missed, len(all))
	}
	return nil
}

// try builds the simulator with one mutant and plays it.
func try(file, tmp string, steps, seeds int) outcome {
	o := outcome{name: strings.TrimSuffix(filepath.Base(file), ".patch")}
	raw, err := os.ReadFile(file)
	if err != nil {
		o.err = err
		return o
	}
	p, err := parse(string(raw))
	if o.what = p.what; err != nil {
		o.err = err
		return o
	}
	work := filepath.Join(tmp, o.name)
	if o.err = p.overlay(work); o.err != nil {
		return o
	}
	sim := filepath.Join(work, "sim")
	build := exec.Command("go", "build", "-overlay", filepath.Join(work, "overlay.json"), "-o", sim, "./canopytest/sim")
	if out, err := build.CombinedOutput(); err != nil {
		o.err = fmt.Errorf("it does not build: %s", bytes.TrimSpace(out))
		return o
	}
	defer os.Remove(sim)
	rails := []string{p.rail}
	if p.rail == "" {
		rails = []string{"both", "mpp"}
	}
	for _, rail := range rails {
		c := catch{rail: rail}
		for seed := 1; seed <= seeds && c.steps == 0; seed++ {
			caught, at, by, err := play(sim, rail, seed, steps)
			if err != nil {
				o.err = fmt.Errorf("%s: %w", rail, err)
				return o
			}
			if caught {
				c.steps, c.by = (seed-1)*steps+at, by
			}
		}
		o.caught = append(o.caught, c)
	}
	return o
}

var breach = regexp.MustCompile(`(?m)^BREACH at step (\d+) of seed \d+: ([A-Z]\d+)`)

// play runs one seed, and tells where it broke.
func play(sim, rail string, seed, steps int) (caught bool, at int, by string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, sim, "-rail", rail, "-seed", strconv.Itoa(seed), "-steps", strconv.Itoa(steps)).CombinedOutput()
	if err == nil {
		return false, 0, "", nil
	}
	if m := breach.FindSubmatch(out); m != nil {
		at, _ = strconv.Atoi(string(m[1]))
		return true, at, string(m[2]), nil
	}
	if ctx.Err() != nil {
		return false, 0, "", errors.New("it does not end")
	}
	return false, 0, "", fmt.Errorf("the simulator fails: %v: %s", err, bytes.TrimSpace(out[:min(len(out), 2000)]))
}

// overlay writes the changed files under work, and the overlay that names them.
func (p patch) overlay(work string) error {
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	replace := map[string]string{}
	for i, f := range p.files {
		path, err := filepath.Abs(filepath.FromSlash(f.path))
		if err != nil {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		changed, err := f.apply(string(source))
		if err != nil {
			return err
		}
		replace[path] = filepath.Join(work, fmt.Sprintf("%d_%s", i, filepath.Base(path)))
		if err := os.WriteFile(replace[path], []byte(changed), 0o644); err != nil {
			return err
		}
	}
	doc, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(work, "overlay.json"), doc, 0o644)
}

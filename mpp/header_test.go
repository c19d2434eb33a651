package mpp

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// hostile are lines of 64 KiB, each made to be dear.
func hostile() map[string]string {
	const size = maxLine
	fill := func(head, unit, tail string) string {
		return head + strings.Repeat(unit, (size-len(head)-len(tail))/len(unit)) + tail
	}
	many := func(head string, part func(i int) string) string {
		var b strings.Builder
		b.WriteString(head)
		for i := 0; ; i++ {
			p := part(i)
			if b.Len()+len(p) > size {
				return b.String()
			}
			b.WriteString(p)
		}
	}
	doc := b64(requestDoc)
	whole := func(i int) string {
		return fmt.Sprintf(`Payment id="%d", realm="r", method="tempo", intent="charge", request="e30", `, i)
	}
	pad := strings.Repeat("x", 1400)
	return map[string]string{
		"backslashes":         fill(`Payment id="`, `\`, ""),
		"escaped backslashes": fill(`Payment id="`, `\\`, `"`),
		"escaped quotes":      fill(`Payment id="`, `\"`, `"`),
		"u escapes":           fill(`Payment id="`, `\u00e9`, `"`),
		"high bytes":          fill(`Payment id="`, "\xe9", `"`),
		"quotes":              fill(`Payment x`, `"`, ""),
		"open quotes":         fill(``, `Payment a=", `, ""),
		"commas":              fill(`Payment`, `,`, ""),
		"equals signs":        fill(`Payment a`, `=`, ""),
		"blanks":              fill(`Payment a`, ` `, "="),
		"schemes":             fill(``, `Payment `, ""),
		"schemes with commas": fill(``, `Payment,`, ""),
		"other schemes":       fill(``, `Basic a=b, `, ""),
		"challenges":          many("", whole),
		"32 challenges":       many("", func(i int) string { return strings.Replace(whole(i), `"r"`, `"r", description="`+pad+`\u00e9"`, 1) }),
		"32 deep requests": many("", func(i int) string {
			return strings.Replace(whole(i), "e30", b64(`{"a":[`+strings.Repeat(`{"b":1},`, 150)+`1]}`), 1)
		}),
		"32 requests of keys":  many("", func(i int) string { return strings.Replace(whole(i), "e30", b64(`{"x":1`+manyKeys(160)+`}`), 1) }),
		"parameters":           many("Payment ", func(i int) string { return fmt.Sprintf("p%d=x, ", i) }),
		"parameters of a name": fill(`Payment id="i", realm="r", method="tempo", intent="charge", request="`+doc+`"`, `, a=b`, ""),
		"a long name":          fill(`Payment `, `a`, `=b`),
		"long names":           fill(`Payment `, strings.Repeat("a", 1900)+"=b, ", ""),
		"a request":            fill(`Payment id="i", realm="r", method="tempo", intent="charge", request="`, `eyJhIjpb`, `"`),
		"4 large requests":     many("", func(i int) string { return strings.Replace(whole(i), "e30", strings.Repeat("eyJh", 4000), 1) }),
		"a description":        fill(`Payment id="i", realm="r", method="tempo", intent="charge", request="e30", description="`, `\ud83d\ude00`, `"`),
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"%04d":1`, i)
	}
	return b.String()
}

// TestHostileLinesAreCheap bounds what each line costs: 2 ms, in the best of as
// many tries as a busy machine needs, and 1 MiB.
func TestHostileLinesAreCheap(t *testing.T) {
	for name, s := range hostile() {
		if len(s) > maxLine || len(s) < maxLine*9/10 {
			t.Errorf("%s: a line of %d bytes", name, len(s))
		}
		best, least := time.Hour, uint64(1<<62)
		lines := []string{s}
		for try := 0; try < 3 || try < 50 && best > slowdown*2*time.Millisecond; try++ {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			readChallenges(lines)
			best = min(best, time.Since(start))
			runtime.ReadMemStats(&after)
			least = min(least, after.TotalAlloc-before.TotalAlloc)
		}
		t.Logf("%-22s %8v %7d B", name, best, least)
		if best > slowdown*2*time.Millisecond || least > 1<<20 {
			t.Errorf("%s: %v and %d bytes", name, best, least)
		}
	}
}

func BenchmarkReadHostile(b *testing.B) {
	for name, s := range hostile() {
		lines := []string{s}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				readChallenges(lines)
			}
		})
	}
	b.Run("floor: each byte once", func(b *testing.B) {
		s := strings.Repeat("a", maxLine)
		b.SetBytes(int64(len(s)))
		n := 0
		for b.Loop() {
			for i := range len(s) {
				if s[i] == '"' {
					n++
				}
			}
		}
		if n > 0 {
			b.Fatal(n)
		}
	})
}

// BenchmarkReadOne reads an ordinary challenge, and its request.
func BenchmarkReadOne(b *testing.B) {
	lines := []string{line(b, "", `, expires="2030-01-01T00:00:00.000Z", opaque="eyJhIjoiMSIsImIiOiIyIn0", description="One quote"`)}
	b.Run("challenge", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			readChallenges(lines)
		}
	})
	b.Run("and charge and echo", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			found, _ := readChallenges(lines)
			if _, why := readTempoCharge(found[0].requestJSON); why != (skip{}) {
				b.Fatal(why)
			}
			if _, why := found[0].echo(); why != (skip{}) {
				b.Fatal(why)
			}
		}
	})
}

func BenchmarkWriteCredential(b *testing.B) {
	found, _ := readChallenges([]string{line(b, "", `, expires="2030-01-01T00:00:00.000Z"`)})
	echo, _ := found[0].echo()
	for name, p := range map[string]payload{"transaction": transaction(make([]byte, 290)), "proof": proof{}, "authorization": payloads[4]} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				writeCredential(echo, p, payer)
			}
		})
	}
}

// BenchmarkBestRounds reports the best rounds of each step, which a busy machine
// disturbs least.
func BenchmarkBestRounds(b *testing.B) {
	lines := []string{line(b, "", `, expires="2030-01-01T00:00:00.000Z", opaque="eyJhIjoiMSIsImIiOiIyIn0", description="One quote"`)}
	found, _ := readChallenges(lines)
	echo, _ := found[0].echo()
	tx := transaction(make([]byte, 290))
	value := writeCredential(echo, tx, payer)
	steps := []struct {
		name string
		do   func()
	}{
		{"read a challenge", func() { readChallenges(lines) }},
		{"read its charge", func() { readTempoCharge(found[0].requestJSON) }},
		{"make its echo", func() { found[0].echo() }},
		{"write a credential", func() { writeCredential(echo, tx, payer) }},
		{"read it back", func() { readCredential(value) }},
	}
	const rounds = 10
	best := make([]time.Duration, len(steps))
	for b.Loop() {
		for i, s := range steps {
			start := time.Now()
			for range rounds {
				s.do()
			}
			if d := time.Since(start); best[i] == 0 || d < best[i] {
				best[i] = d
			}
		}
	}
	for i, s := range steps {
		b.Logf("%-20s %v", s.name, best[i]/rounds)
	}
}

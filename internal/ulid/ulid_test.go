package ulid_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy/internal/ulid"
)

func TestNewTime(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		at     time.Time
		prefix string
		want   time.Time
	}{
		{"epoch", time.UnixMilli(0), "0000000000", time.UnixMilli(0)},
		{"before the epoch", time.UnixMilli(-1), "0000000000", time.UnixMilli(0)},
		{"zero time", time.Time{}, "0000000000", time.UnixMilli(0)},
		// The example of the ULID specification.
		{"specification", time.UnixMilli(1469918176385), "01ARYZ6S41", time.UnixMilli(1469918176385)},
		{"below a millisecond", time.Unix(1, 1999999), "00000000Z9", time.UnixMilli(1001)},
		{"last", time.UnixMilli(1<<48 - 1), "7ZZZZZZZZZ", time.UnixMilli(1<<48 - 1)},
		{"past the last", time.UnixMilli(1 << 48), "7ZZZZZZZZZ", time.UnixMilli(1<<48 - 1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			id := ulid.New(tc.at)
			if !ulid.Valid(id) {
				t.Errorf("New(%v) = %q is not valid", tc.at, id)
			}
			if !strings.HasPrefix(id, tc.prefix) {
				t.Errorf("New(%v) = %q, want prefix %q", tc.at, id, tc.prefix)
			}
			if got, ok := ulid.Time(id); !ok || !got.Equal(tc.want) {
				t.Errorf("Time(%q) = %v, %v, want %v, true", id, got, ok, tc.want)
			}
		})
	}
}

// Not parallel: another test's call in between would end the run of one
// millisecond.
func TestNewMonotonic(t *testing.T) {
	at := time.UnixMilli(1700000000000)
	prev := ulid.New(at)
	for range 10_000 {
		id := ulid.New(at)
		if id <= prev {
			t.Fatalf("New = %s after %s", id, prev)
		}
		prev = id
	}
	if later := ulid.New(at.Add(time.Millisecond)); later <= prev {
		t.Errorf("New one millisecond later = %s, not above %s", later, prev)
	}
}

func TestNewConcurrent(t *testing.T) {
	t.Parallel()
	const goroutines, each = 8, 2000
	at := time.UnixMilli(1700000000001)
	all := make([][]string, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				all[g] = append(all[g], ulid.New(at.Add(time.Duration(i%3)*time.Millisecond)))
			}
		})
	}
	wg.Wait()
	ids := slices.Concat(all...)
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); n != goroutines*each {
		t.Errorf("%d distinct IDs, want %d", n, goroutines*each)
	}
}

func TestValidOdd(t *testing.T) {
	t.Parallel()
	const good = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	if !ulid.Valid(good) {
		t.Fatalf("Valid(%q) = false", good)
	}
	for _, tc := range []struct{ name, in string }{
		{"empty", ""},
		{"one short", good[:25]},
		{"one long", good + "0"},
		{"lower case", strings.ToLower(good)},
		{"one lower-case letter", "01ARZ3NDEKTSV4RRFFQ69G5FAv"},
		{"first above 7", "81ARZ3NDEKTSV4RRFFQ69G5FAV"},
		{"first a letter", "ZZZZZZZZZZZZZZZZZZZZZZZZZZ"},
		{"I", "01ARZ3NDEKTSV4RRFFQ69G5FAI"},
		{"L", "01ARZ3NDEKTSV4RRFFQ69G5FAL"},
		{"O", "O1ARZ3NDEKTSV4RRFFQ69G5FAV"},
		{"U", "01ARZ3NDEKTSV4RRFFQ69G5FAU"},
		{"hyphens", "01ARZ3-NDEKTSV4-RRFFQ69G5F"},
		{"underscore", "01ARZ3NDEKTSV4RRFFQ69G5FA_"},
		{"leading space", " 1ARZ3NDEKTSV4RRFFQ69G5FAV"},
		{"trailing space", "01ARZ3NDEKTSV4RRFFQ69G5FA "},
		{"trailing newline", "01ARZ3NDEKTSV4RRFFQ69G5FA\n"},
		{"newline after", good + "\n"},
		{"carriage return", "01ARZ3NDEKTSV4RRFFQ69G5F\r\n"},
		{"NUL inside", "01ARZ3NDEKTSV\x00RRFFQ69G5FAV"},
		{"NUL after", good + "\x00"},
		{"path upwards", "../../../../../../etc/pass"},
		{"path upwards, right length", "01ARZ3NDEKTSV4RRFFQ69G5/.."},
		{"slash", "01ARZ3NDEKTSV/RRFFQ69G5FAV"},
		{"backslash", `01ARZ3NDEKTSV\RRFFQ69G5FAV`},
		{"dot", "01ARZ3NDEKTSV.RRFFQ69G5FAV"},
		{"percent-encoded dots", "%2e%2e%2fARZ3NDEKTSV4RRFFQ"},
		{"percent-encoded digit", "%301ARZ3NDEKTSV4RRFFQ69G5F"},
		{"SQL quote", "01ARZ3NDEKTSV'RRFFQ69G5FAV"},
		{"glob", "01ARZ3NDEKTSV4RRFFQ69G5FA*"},
		{"UUID", "01890a5d-ac96-774b-bcce-b3"},
		{"full-width digit", "０1ARZ3NDEKTSV4RRFFQ69G5F"},
		{"Cyrillic A", "01АRZ3NDEKTSV4RRFFQ69G5FA"},
		{"bidirectional override", "01ARZ3NDEKTSV4RRFFQ69G5\u202e"},
		{"invalid UTF-8", "01ARZ3NDEKTSV4RRFFQ69G5FA\xff"},
		{"braces", "{01ARZ3NDEKTSV4RRFFQ69G5F}"},
		{"plus", "+1ARZ3NDEKTSV4RRFFQ69G5FAV"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if ulid.Valid(tc.in) {
				t.Errorf("Valid(%q) = true", tc.in)
			}
			if at, ok := ulid.Time(tc.in); ok {
				t.Errorf("Time(%q) = %v, true", tc.in, at)
			}
		})
	}
}

func FuzzValid(f *testing.F) {
	f.Add("01ARZ3NDEKTSV4RRFFQ69G5FAV")
	f.Add("8ZZZZZZZZZZZZZZZZZZZZZZZZZ")
	f.Fuzz(func(t *testing.T, s string) {
		at, ok := ulid.Time(s)
		if ok != ulid.Valid(s) {
			t.Fatalf("Time and Valid disagree on %q", s)
		}
		if !ok {
			return
		}
		if again := ulid.New(at); again[:10] != s[:10] {
			t.Errorf("New(Time(%q)) = %q", s, again)
		}
		if strings.ToUpper(s) != s || strings.ContainsAny(s, "ILOU/.\\%") {
			t.Errorf("Valid(%q) = true", s)
		}
	})
}

func BenchmarkNew(b *testing.B) {
	at := time.UnixMilli(1700000000000)
	b.ReportAllocs()
	for b.Loop() {
		ulid.New(at)
	}
}

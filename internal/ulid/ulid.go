// Package ulid makes and checks ULIDs: 26 characters that sort by the time
// they were made. Only one spelling of each is valid, so an ID may be compared
// as text and used as a file name or a database key.
package ulid

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"
)

// Len is the length of every ULID.
const Len = 26

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

const maxMilli = 1<<48 - 1

// last is the ULID made most recently: 6 bytes of time, 10 of randomness.
var last struct {
	sync.Mutex
	made bool
	id   [16]byte
	ms   int64

	random [640]byte // from crypto/rand, read for many at once
	left   int       // bytes of random that were not used
}

// New returns a ULID for t: 48 bits of milliseconds since 1970 and 80 bits from
// crypto/rand. A call for the same millisecond as the call before it returns a
// larger ULID, by a random step so that one ID does not give away the next.
// Times outside the 48 bits count as the nearest end. It is safe for concurrent
// use.
func New(t time.Time) string {
	ms := min(max(t.UnixMilli(), 0), maxMilli)
	var fresh [10]byte

	last.Lock()
	if last.left == 0 {
		rand.Read(last.random[:]) // never fails: the program ends first
		last.left = len(last.random)
	}
	last.left -= len(fresh)
	copy(fresh[:], last.random[last.left:])
	clear(last.random[last.left : last.left+len(fresh)])
	id := last.id
	if last.made && last.ms == ms {
		add(&id, 1+uint64(binary.BigEndian.Uint32(fresh[:])))
	} else {
		binary.BigEndian.PutUint64(id[:8], uint64(ms)<<16)
		copy(id[6:], fresh[:])
	}
	last.id, last.ms, last.made = id, ms, true
	last.Unlock()
	return encode(id)
}

// add carries out of the randomness into the time, about once in 2^48 calls,
// rather than wrap and lose the order.
func add(id *[16]byte, n uint64) {
	low := binary.BigEndian.Uint64(id[8:])
	binary.BigEndian.PutUint64(id[8:], low+n)
	if low+n < low {
		binary.BigEndian.PutUint64(id[:8], binary.BigEndian.Uint64(id[:8])+1)
	}
}

func encode(id [16]byte) string {
	var s [Len]byte
	hi, lo := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	for i := Len - 1; i >= 0; i-- {
		s[i] = alphabet[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(s[:])
}

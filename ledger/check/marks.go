package check

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// marks are things that only one payment may have, each by a part of its hash.
type marks []mark

type mark struct {
	hash uint64
	n    uint32
}

func (m *marks) add(n uint32, a, b string) {
	buf := make([]byte, 0, 256)
	buf = append(binary.BigEndian.AppendUint32(buf, uint32(len(a))), a...)
	sum := sha256.Sum256(append(buf, b...))
	*m = append(*m, mark{binary.BigEndian.Uint64(sum[:8]), n})
}

// shared calls f with each payment that has what an earlier one has.
func (m marks) shared(f func(n uint32)) {
	slices.SortFunc(m, func(a, b mark) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.n, b.n)) })
	for i := 1; i < len(m); i++ {
		if m[i].hash == m[i-1].hash {
			f(m[i].n)
		}
	}
}

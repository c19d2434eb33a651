package ledger

import (
	"iter"
	"slices"
	"sort"
)

// queue keeps rows in the order of their points, in chunks so that adding and
// removing cost little anywhere.
type queue struct{ chunks [][]queued }

type queued struct {
	at Point
	r  *row
}

const chunkLen = 512

// find is the chunk that p belongs to and the place of the first point there
// that is not before p.
func (q *queue) find(p Point) (chunk, i int) {
	if last := len(q.chunks) - 1; last >= 0 {
		if c := q.chunks[last]; p.After(c[len(c)-1].at) {
			return last, len(c) // as it nearly always is
		}
	}
	chunk = sort.Search(len(q.chunks), func(i int) bool { return q.chunks[i][0].at.After(p) })
	if chunk > 0 {
		chunk--
	}
	if chunk == len(q.chunks) {
		return chunk, 0
	}
	c := q.chunks[chunk]
	return chunk, sort.Search(len(c), func(i int) bool { return !p.After(c[i].at) })
}

func (q *queue) add(p Point, r *row) {
	at, i := q.find(p)
	if at == len(q.chunks) {
		q.chunks = append(q.chunks, append(make([]queued, 0, chunkLen), queued{p, r}))
		return
	}
	c := q.chunks[at]
	switch {
	case len(c) < chunkLen:
		q.chunks[at] = slices.Insert(c, i, queued{p, r})
	case i == len(c) && at == len(q.chunks)-1:
		q.chunks = append(q.chunks, append(make([]queued, 0, chunkLen), queued{p, r}))
	default:
		half := append(make([]queued, 0, chunkLen), c[chunkLen/2:]...)
		clear(c[chunkLen/2:])
		q.chunks[at] = c[:chunkLen/2]
		q.chunks = slices.Insert(q.chunks, at+1, half)
		q.add(p, r)
	}
}

func (q *queue) remove(p Point) {
	at, i := q.find(p)
	if at == len(q.chunks) || i == len(q.chunks[at]) || q.chunks[at][i].at != p {
		return
	}
	if q.chunks[at] = slices.Delete(q.chunks[at], i, i+1); len(q.chunks[at]) == 0 {
		q.chunks = slices.Delete(q.chunks, at, at+1)
	}
}

// after yields what comes after p. The queue must not change meanwhile.
func (q *queue) after(p Point) iter.Seq2[Point, *row] {
	return func(yield func(Point, *row) bool) {
		at, i := q.find(p)
		for ; at < len(q.chunks); at, i = at+1, 0 {
			for _, it := range q.chunks[at][i:] {
				if it.at.After(p) && !yield(it.at, it.r) {
					return
				}
			}
		}
	}
}

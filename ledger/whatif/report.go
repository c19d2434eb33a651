package whatif

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// report is what was found, in order.
func (r *run) report() Report {
	out := r.out
	for _, m := range r.moves {
		out.Moves = append(out.Moves, *m)
	}
	slices.SortFunc(out.Moves, func(a, b Move) int { return cmp.Or(-cmp.Compare(a.Was, b.Was), -cmp.Compare(a.Now, b.Now)) })
	for _, date := range slices.SortedFunc(maps.Keys(r.days), func(a, b time.Time) int { return a.Compare(b) }) {
		out.Days = append(out.Days, *r.days[date])
	}
	return out
}

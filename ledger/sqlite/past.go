package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"hash/maphash"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

var _ ledger.PastStore = (*Store)(nil)

// Past implements ledger.PastStore.
func (s *Store) Past(ctx context.Context, scope policy.Scope, t payment.Terms) (past policy.Past, err error) {
	err = s.snapshot(ctx, func(x *tx) error {
		past, err = ledger.PastTx(scope, &t, x.lastIn)
		return err
	})
	return past, err
}

// lastIn is the payment remembered in a place that was authorized last, or nil.
func (t *tx) lastIn(p ledger.Place) (*ledger.Entry, error) {
	return t.one(`SELECT p.id FROM places s CROSS JOIN payments p ON p.n = s.n WHERE s.place = ? ORDER BY s.at DESC, s.n DESC LIMIT 1`, p[:])
}

// putPlaces brings the places of the payment n up to what it has become; was is
// nil for a new one.
func (t *tx) putPlaces(n int64, was, is *ledger.Entry) error {
	switch before := was != nil && was.Remembered(); {
	case before == is.Remembered():
		return nil
	case !before:
		return t.remember(n, is)
	}
	for _, p := range was.Places() {
		_, _, err := t.c.exec(`DELETE FROM places WHERE place = ? AND at = ? AND n = ?`, p[:], was.AuthorizedAt.UnixMicro(), n)
		if err != nil {
			return err
		}
	}
	return nil
}

// remember puts all places of e in by one statement.
func (t *tx) remember(n int64, e *ledger.Entry) error {
	places := e.Places()
	if len(places) == 0 {
		return nil
	}
	sql, args := `INSERT INTO places (place, at, n) VALUES (?, ?, ?)`, make([]driver.Value, 0, 3*len(places))
	for i := range places {
		if i > 0 {
			sql += `, (?, ?, ?)`
		}
		args = append(args, places[i][:], e.AuthorizedAt.UnixMicro(), n)
	}
	_, _, err := t.c.exec(sql, args...)
	return err
}

// fillPlaces brings a ledger of schema 6 up: it remembers what was paid.
func fillPlaces(c *conn) error {
	t := &tx{c, newMemory()}
	for last := int64(0); ; {
		page, err := t.all(`SELECT `+entryColumns+` FROM payments WHERE n > ? ORDER BY n LIMIT 256`, last)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			if err := t.putPlaces(r.n, nil, r.e); err != nil {
				return err
			}
			last = r.n
		}
		t.mem.trim()
	}
}

// placeSum is the sum of the hashes of places, in whatever order they come.
type placeSum struct {
	seed maphash.Seed
	rows int64
	sum  uint64
}

func newPlaceSum() *placeSum { return &placeSum{seed: maphash.MakeSeed()} }

func (s *placeSum) add(place []byte, at, n int64) {
	var b [64]byte
	k := append(b[:0], place...)
	k = binary.BigEndian.AppendUint64(k, uint64(at))
	k = binary.BigEndian.AppendUint64(k, uint64(n))
	s.rows++
	s.sum += maphash.Bytes(s.seed, k)
}

func (s *placeSum) payment(n int64, e *ledger.Entry) {
	for _, p := range e.Places() {
		s.add(p[:], e.AuthorizedAt.UnixMicro(), n)
	}
}

// verifyPlaces holds the table against what its payments come to.
func (t *tx) verifyPlaces(v *ledger.Verification, want *placeSum) error {
	have := &placeSum{seed: want.seed}
	err := t.c.query(`SELECT place, at, n FROM places`, nil, func(row []driver.Value) error {
		var place []byte
		var at, n int64
		if err := scan(row, &place, &at, &n); err != nil {
			v.Problem("a place of a payment: %v", err)
			return nil
		}
		have.add(place, at, n)
		return nil
	})
	if err == nil && *have != *want {
		v.Problem("what was paid before is remembered in %d places that do not follow from the payments, which have %d", have.rows, want.rows)
	}
	return err
}

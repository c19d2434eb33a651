package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Event is one link of a payment's own chain: a move, and what was known of
// it. Its hash covers its own fields and the hash before it.
type Event struct {
	Payment payment.ID
	Seq     int64 // from 1
	At      time.Time
	From    State
	To      State
	By      Actor
	Data    []byte // canonical JSON of what was recorded with the move; no secret
	Prev    payment.Hash
	Hash    payment.Hash
}

// newEvent is the move that made e of what it was, and sets e.Head.
func newEvent(e *Entry, from State, by Actor, at time.Time, data []byte) *Event {
	ev := &Event{Payment: e.ID, Seq: e.Version, At: at, From: from, To: e.State, By: by, Data: data, Prev: e.Head}
	ev.Hash = ev.Sum()
	e.Head = ev.Hash
	return ev
}

// record is newEvent by the client, which keeps all of e: what the first event
// of a payment keeps, and the one that authorizes it. asked is the approval that
// is asked for, or nil. It writes what is hashed and what is kept in one piece,
// and is good until the next.
func (s *Scratch) record(e *Entry, from State, at time.Time, asked *Approval) *Event {
	ev := &s.event
	*ev = Event{Payment: e.ID, Seq: e.Version, At: at, From: from, To: e.State, By: ByClient, Prev: e.Head}
	b := ev.begin(s.bytes[:0], 0)
	start := len(b)
	r := record{append(b, '{')}
	r.entry(e, asked)
	b = r.done()
	binary.BigEndian.PutUint32(b[start-4:], uint32(len(b)-start))
	end := len(b)
	b = append(b, ev.Prev[:]...)
	ev.Data = b[start:end:end]
	ev.Hash = sha256.Sum256(b)
	e.Head = ev.Hash
	s.bytes = b
	return ev
}

// Sum is the hash of ev over a typed, length-prefixed encoding: what Hash must
// be.
func (ev *Event) Sum() payment.Hash {
	var space [1024]byte
	b := ev.begin(space[:0], len(ev.Data))
	b = append(b, ev.Data...)
	return sha256.Sum256(append(b, ev.Prev[:]...))
}

// begin appends what is hashed before n bytes of Data.
func (ev *Event) begin(b []byte, n int) []byte {
	b = appendText(b, "canopy.event.v1")
	b = appendText(b, string(ev.Payment))
	b = binary.BigEndian.AppendUint64(b, uint64(ev.Seq))
	b = binary.BigEndian.AppendUint64(b, uint64(ev.At.UnixMicro()))
	b = append(b, byte(ev.From), byte(ev.To), byte(ev.By))
	return binary.BigEndian.AppendUint32(b, uint32(n))
}

func appendText[T ~string | ~[]byte](b []byte, s T) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}

// VerifyChain names the first link of one payment's events, oldest first, that
// is not what was recorded. No events at all is an error: every payment has
// one. Their instants may go back, where an operator acknowledged a clock that
// was set back.
func VerifyChain(events []Event) error {
	if len(events) == 0 {
		return fmt.Errorf("ledger: no events")
	}
	var prev payment.Hash
	state := Proposed
	for i, ev := range events {
		switch {
		case ev.Payment != events[0].Payment:
			return fmt.Errorf("ledger: event %d is of payment %q", i+1, ev.Payment)
		case ev.Seq != int64(i)+1:
			return fmt.Errorf("ledger: event %d of %s has number %d", i+1, ev.Payment, ev.Seq)
		case ev.Prev != prev:
			return fmt.Errorf("ledger: event %d of %s does not follow the one before", i+1, ev.Payment)
		case ev.Hash != ev.Sum():
			return fmt.Errorf("ledger: event %d of %s does not have its hash", i+1, ev.Payment)
		case ev.From != state || !Legal(ev.From, ev.To, ev.By) && !(ev.From == ev.To && ev.To == Approved):
			return fmt.Errorf("ledger: event %d of %s moves from %s to %s by %s", i+1, ev.Payment, ev.From, ev.To, ev.By)
		}
		prev, state = ev.Hash, ev.To
	}
	return nil
}

package jsonscan

import (
	"errors"
	"fmt"
	"sync"
)

// What can be wrong with a document, and with a read of a Value.
var (
	ErrSyntax       = errors.New("jsonscan: not JSON")
	ErrDuplicateKey = errors.New("jsonscan: duplicate key")
	ErrTooDeep      = errors.New("jsonscan: nested too deeply")
	ErrTooLarge     = errors.New("jsonscan: document too large")
	ErrKind         = errors.New("jsonscan: wrong kind of value")
)

// The limits that the zero Limits stands for.
const (
	DefaultDepth = 16
	DefaultSize  = 64 << 10
)

// Limits bounds a document.
type Limits struct {
	// Depth is how many objects and arrays may be open at once. 0 means
	// DefaultDepth.
	Depth int
	// Size is the length of the document in bytes. 0 means DefaultSize.
	Size int
}

// Parse checks the whole of doc and returns its value. It copies doc once; the
// strings read from the Value share that copy. Time is linear in the size, but
// for a factor log n in objects of many keys.
func Parse(doc []byte, l Limits) (Value, error) {
	if l.Size == 0 {
		l.Size = DefaultSize
	}
	if len(doc) > l.Size {
		return Value{}, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, len(doc), l.Size)
	}
	if l.Depth == 0 {
		l.Depth = DefaultDepth
	}
	s := string(doc)
	start, end, err := check(s, l.Depth)
	if err != nil {
		return Value{}, err
	}
	return Value{s[start:end], kindOf(s[start])}, nil
}

// Validate checks doc as Parse does, without a limit of size. A maxDepth of 0
// means DefaultDepth.
func Validate(doc []byte, maxDepth int) error {
	_, err := Parse(doc, Limits{Depth: maxDepth, Size: max(len(doc), 1)})
	return err
}

var checkers = sync.Pool{New: func() any { return new(checker) }}

// check returns where the one value of s begins and ends.
func check(s string, depth int) (start, end int, err error) {
	c := checkers.Get().(*checker)
	c.s, c.room = s, depth
	start, end, err = c.document()
	if cap(c.folded) <= DefaultSize {
		*c = checker{keys: c.keys[:0], folded: c.folded[:0]}
		checkers.Put(c)
	}
	return start, end, err
}

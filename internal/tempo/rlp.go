package tempo

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// The first byte of an RLP string or list of up to 55 bytes is one of these
// plus the length.
const (
	stringBase = 0x80
	listBase   = 0xc0
)

// maxDepth bounds how deep lists that are kept as they came may nest.
const maxDepth = 16

// What is wrong with RLP. The texts follow the name of a field.
var (
	errShort     = errors.New("ends early")
	errCanonical = errors.New("not the shortest encoding")
	errKind      = errors.New("a list for a string or the reverse")
	errLong      = errors.New("too long")
	errTrailing  = errors.New("more follows")
	errDepth     = errors.New("nested too deep")
	errEmpty     = errors.New("empty")
	errSize      = errors.New("another number of bytes than it has")
	errZero      = errors.New("the zero address")
)

// closeList makes a list of the items that stand in b from start on.
func closeList(b []byte, start int) []byte {
	n := len(b) - start
	var room [9]byte
	head := appendHead(room[:0], listBase, n)
	b = append(b, head...)
	copy(b[start+len(head):], b[start:start+n])
	copy(b[start:], head)
	return b
}

// appendHead begins a string or list of n bytes.
func appendHead(b []byte, base byte, n int) []byte {
	if n < 56 {
		return append(b, base+byte(n))
	}
	return appendBigEndian(append(b, base+55+byte(byteLen(uint64(n)))), uint64(n))
}

func appendBytes(b, s []byte) []byte {
	if len(s) == 1 && s[0] < stringBase {
		return append(b, s[0])
	}
	return append(appendHead(b, stringBase, len(s)), s...)
}

// appendUint appends n without leading zeros; 0 is the empty string.
func appendUint(b []byte, n uint64) []byte {
	switch {
	case n == 0:
		return append(b, stringBase)
	case n < stringBase:
		return append(b, byte(n))
	}
	return appendBigEndian(append(b, stringBase+byte(byteLen(n))), n)
}

// appendNumber is appendUint of 256 bits.
func appendNumber(b []byte, n *[32]byte) []byte {
	zeros := 0
	for zeros < len(n) && n[zeros] == 0 {
		zeros++
	}
	return appendBytes(b, n[zeros:])
}

func appendBigEndian(b []byte, n uint64) []byte {
	var word [8]byte
	binary.BigEndian.PutUint64(word[:], n)
	return append(b, word[8-byteLen(n):]...)
}

func byteLen(n uint64) int { return (bits.Len64(n) + 7) / 8 }

// split takes the first item off b. Lengths are in the shortest form, so that
// every item has one encoding.
func split(b []byte) (content []byte, list bool, rest []byte, err error) {
	if len(b) == 0 {
		return nil, false, nil, errShort
	}
	head, tail := b[0], b[1:]
	if head < stringBase {
		return b[:1:1], false, tail, nil
	}
	list = head >= listBase
	n := int(head - stringBase)
	if list {
		n = int(head - listBase)
	}
	if n > 55 {
		if n, tail, err = longLength(tail, n-55); err != nil {
			return nil, false, nil, err
		}
	}
	if n > len(tail) {
		return nil, false, nil, errShort
	}
	content = tail[:n:n]
	if !list && n == 1 && content[0] < stringBase {
		return nil, false, nil, errCanonical
	}
	return content, list, tail[n:], nil
}

// longLength reads a length of size bytes, which is more than 55.
func longLength(b []byte, size int) (n int, rest []byte, err error) {
	if len(b) < size {
		return 0, nil, errShort
	}
	if b[0] == 0 {
		return 0, nil, errCanonical
	}
	if size > 4 {
		return 0, nil, errLong
	}
	for _, c := range b[:size] {
		n = n<<8 | int(c)
	}
	if n < 56 {
		return 0, nil, errCanonical
	}
	if n > MaxSize {
		return 0, nil, errLong
	}
	return n, b[size:], nil
}

// checkKept reports what keeps b, unless it has no bytes, from being one list
// that is not empty, with nothing after it, and in the shortest form all the
// way down.
func checkKept(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	content, list, rest, err := split(b)
	switch {
	case err != nil:
		return err
	case !list:
		return errKind
	case len(rest) > 0:
		return errTrailing
	case len(content) == 0:
		return errEmpty
	}
	return checkItems(content, 1)
}

func checkItems(b []byte, depth int) error {
	if depth > maxDepth {
		return errDepth
	}
	for len(b) > 0 {
		content, list, rest, err := split(b)
		if err == nil && list {
			err = checkItems(content, depth+1)
		}
		if err != nil {
			return err
		}
		b = rest
	}
	return nil
}

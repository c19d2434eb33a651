package ulid

import (
	"bytes"
	"testing"
)

func TestAddCarries(t *testing.T) {
	t.Parallel()
	id := [16]byte{5: 7, 6: 0xff, 7: 0xff}
	copy(id[8:], bytes.Repeat([]byte{0xff}, 8))
	add(&id, 1)
	if want := ([16]byte{5: 8}); id != want {
		t.Errorf("add = %x, want %x", id, want)
	}
}

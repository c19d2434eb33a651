package x402

import (
	"bytes"
	"encoding/base64"
	"testing"
)

func TestAppendBase64(t *testing.T) {
	t.Parallel()
	src := make([]byte, 400)
	for i := range src {
		src[i] = byte(i*i + i>>3)
	}
	for n := range src {
		want := base64.StdEncoding.EncodeToString(src[:n])
		if got := appendBase64([]byte("before"), src[:n]); string(got) != "before"+want {
			t.Fatalf("%d bytes: %s, want %s", n, got, want)
		}
	}
}

func FuzzAppendBase64(f *testing.F) {
	f.Add([]byte("seven b"))
	f.Fuzz(func(t *testing.T, src []byte) {
		got := appendBase64(nil, src)
		if back, err := base64.StdEncoding.Strict().DecodeString(string(got)); err != nil || !bytes.Equal(back, src) {
			t.Fatalf("%x: %s, %v", src, got, err)
		}
	})
}

package x402

import (
	"encoding/base64"
	"encoding/binary"
)

// pairs are the two digits of every 12 bits.
var pairs = func() (t [1 << 12]uint16) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i := range t {
		t[i] = uint16(digits[i>>6])<<8 | uint16(digits[i&63])
	}
	return t
}()

// appendBase64 appends src as base64.StdEncoding does, two digits at a time:
// beside the signature this is the dearest step of building a payment.
func appendBase64(dst, src []byte) []byte {
	for len(src) >= 8 {
		v := binary.BigEndian.Uint64(src) // six bytes of it are used
		dst = binary.BigEndian.AppendUint64(dst,
			uint64(pairs[v>>52])<<48|uint64(pairs[v>>40&0xfff])<<32|uint64(pairs[v>>28&0xfff])<<16|uint64(pairs[v>>16&0xfff]))
		src = src[6:]
	}
	return base64.StdEncoding.AppendEncode(dst, src)
}

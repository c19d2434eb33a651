package keccak

const hexDigits = "0123456789abcdef"

// Checksum returns addr as 0x and 40 hexadecimal digits in the mixed case of
// EIP-55. The string is its only allocation.
func Checksum(addr [20]byte) string {
	var s [42]byte
	s[0], s[1] = '0', 'x'
	for i, b := range addr {
		s[2+2*i] = hexDigits[b>>4]
		s[3+2*i] = hexDigits[b&15]
	}
	sum := Sum256(s[2:])
	for i := range 40 {
		nibble := sum[i/2] >> 4
		if i&1 == 1 {
			nibble = sum[i/2] & 15
		}
		if c := &s[2+i]; nibble >= 8 && *c >= 'a' {
			*c -= 'a' - 'A'
		}
	}
	return string(s[:])
}

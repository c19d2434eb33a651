package mpp

import "strconv"

// headerAccept tells a seller which payments are made.
const headerAccept = "Accept-Payment"

// acceptable is one kind of payment, as Accept-Payment states it.
type acceptable struct {
	method, intent string
	weight         int // in thousandths: 1000 is the most, 0 is never
}

// writeAccept is the value of Accept-Payment for kinds, in their order.
func writeAccept(kinds []acceptable) string {
	var b []byte
	for _, k := range kinds {
		if len(b) > 0 {
			b = append(b, ", "...)
		}
		b = append(append(append(b, k.method...), '/'), k.intent...)
		if w := min(max(k.weight, 0), 1000); w == 0 {
			b = append(b, ";q=0"...)
		} else if w < 1000 {
			b = append(b, ";q=0."...)
			digits := strconv.Itoa(1000 + w)[1:] // three of them
			for digits[len(digits)-1] == '0' {
				digits = digits[:len(digits)-1]
			}
			b = append(b, digits...)
		}
	}
	return string(b)
}

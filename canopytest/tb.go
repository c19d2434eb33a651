package canopytest

import (
	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/payment"
)

// TB is the part of testing.TB that this package uses; *testing.T, *testing.B
// and *rapid.T have it.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Address returns an address that stands for name, the same at each call. No
// key is known for it, so it serves as a payee and cannot pay.
func Address(name string) payment.Address {
	sum := keccak.Sum256([]byte("canopytest address "), []byte(name))
	return payment.Address(sum[12:])
}

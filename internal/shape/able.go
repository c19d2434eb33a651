package shape

import "github.com/canopy-go/canopy/policy"

// Able says whether anything can be paid at all now.
type Able struct {
	CanPay  bool     `json:"canPay"`
	Reasons []Reason `json:"reasons,omitempty"` // why nothing can
}

// AbleOf is the shape of what canopy.Client.CannotPay returns.
func AbleOf(reasons []policy.Reason) Able { return Able{len(reasons) == 0, reasonsOf(reasons)} }

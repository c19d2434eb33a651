package shape

import "time"

// Approver is one who may rule, or might.
type Approver struct {
	Name      string   `json:"name"`
	Status    string   `json:"status"` // active or revoked
	CreatedAt *Time    `json:"createdAt"`
	RotatedAt *Time    `json:"rotatedAt"`
	RevokedAt *Time    `json:"revokedAt"`
	NamedBy   []string `json:"namedBy"` // the policy tables that name them
}

// ApproverOf is the shape of one.
func ApproverOf(name string, created, rotated, revoked time.Time, namedBy []string) Approver {
	out := Approver{Name: name, Status: "active", CreatedAt: at(created), RotatedAt: at(rotated), RevokedAt: at(revoked), NamedBy: namedBy}
	if !revoked.IsZero() {
		out.Status = "revoked"
	}
	return out
}

// Credential is one that was made, shown this once.
type Credential struct {
	Name       string  `json:"name"`
	Credential *string `json:"credential"` // null where it was written to a file
}

// CredentialOf is the shape of a person's.
func CredentialOf(name, credential string) Credential { return Credential{name, &credential} }

// Revoked tells that a person may rule no more.
type Revoked struct {
	Status string `json:"status"`
	Name   string `json:"name"`
}

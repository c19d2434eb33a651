package mpp

import (
	"crypto/sha256"
	"testing"
)

func TestReadDigest(t *testing.T) {
	t.Parallel()
	const digits = "AVq9f1zFei3ZS3WQ8ErYCEJzkF7jPsXOvq5iJ2qX+GI"
	want := sha256.Sum256([]byte(`{"a":1}`))
	for s, code := range map[string]string{
		"sha-256=" + digits + "=":                 "",
		"sha-256=" + digits:                       "",
		"sha-256=:" + digits + "=:":               "",
		"SHA-256=" + digits + "=":                 "",
		"sha-512=" + digits + "=":                 "unknown_digest",
		"sha256=" + digits + "=":                  "unknown_digest",
		"sha-256":                                 "unknown_digest",
		digits + "=":                              "unknown_digest",
		" sha-256=" + digits + "=":                "unknown_digest",
		"sha-256=":                                "bad_digest",
		"sha-256=::":                              "bad_digest",
		"sha-256=:" + digits + "=":                "bad_digest",
		"sha-256=" + digits + "==":                "bad_digest",
		"sha-256=:" + digits + ":":                "bad_digest",
		"sha-256=" + digits + "\n":                "bad_digest",
		"sha-256=" + digits + "=\n":               "bad_digest",
		"sha-256=:" + digits + "\n=:":             "bad_digest",
		"sha-256=" + digits[:42] + "J":            "bad_digest", // the same bytes, and bits that count for nothing
		"sha-256=" + digits[:42] + "-":            "bad_digest",
		"sha-256=:" + digits + "=:, sha-512=:AA:": "bad_digest",
	} {
		got, why := readDigest(s)
		if why.code != code || code == "" && got != want {
			t.Errorf("readDigest(%q) = %x, %v, want %q", s, got, why, code)
		}
	}
}

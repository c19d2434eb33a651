package approvals

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// HookSecret is what a webhook and its receiver share. It is made by
// ParseHookSecret; it has no text of its own, so that no log shows it.
type HookSecret struct{ key []byte }

// The least and the most bytes of a secret's key.
const (
	minHookKey = 24
	maxHookKey = 64
)

// ParseHookSecret reads a secret as whsec_ and base64 of 24 to 64 random bytes,
// the form of the Standard Webhooks specification. The error does not quote s.
func ParseHookSecret(s string) (HookSecret, error) {
	text, ok := strings.CutPrefix(s, "whsec_")
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < minHookKey || len(key) > maxHookKey {
		return HookSecret{}, fmt.Errorf("approvals: a webhook's secret is whsec_ and the base64 of %d to %d random bytes", minHookKey, maxHookKey)
	}
	return HookSecret{key}, nil
}

// IsZero reports whether s is no secret.
func (s HookSecret) IsZero() bool { return len(s.key) == 0 }

// String hides the secret.
func (s HookSecret) String() string { return "whsec_[redacted]" }

// GoString hides the secret.
func (s HookSecret) GoString() string { return s.String() }

// MarshalText hides the secret.
func (s HookSecret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// The headers of a delivery: those of the Standard Webhooks specification.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// sign puts on h what proves that body was sent under s.
func (s HookSecret) sign(h http.Header, id string, at time.Time, body []byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	h.Set(headerID, id)
	h.Set(headerTimestamp, stamp)
	h.Set(headerSignature, "v1,"+base64.StdEncoding.EncodeToString(s.mac(id, stamp, body)))
}

func (s HookSecret) mac(id, stamp string, body []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte(id + "." + stamp + "."))
	m.Write(body)
	return m.Sum(nil)
}

// ErrHookSignature is returned for a delivery that nobody who has the secret
// sent, or not within the last five minutes.
var ErrHookSignature = errors.New("approvals: the webhook's signature is wrong or old")

// hookAge is how old a delivery, and how far in the future, may be.
const hookAge = 5 * time.Minute

// Verify is for a receiver: it tells whether body came with h from a sender that
// has the secret, within five minutes of now. The error is ErrHookSignature. A
// delivery may come twice: Webhook-Id tells.
func (s HookSecret) Verify(h http.Header, body []byte, now time.Time) error {
	id, stamp := h.Get(headerID), h.Get(headerTimestamp)
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || s.IsZero() || id == "" || len(h[headerID]) > 1 || len(h[headerTimestamp]) > 1 || now.Sub(time.Unix(seconds, 0)).Abs() > hookAge {
		return ErrHookSignature
	}
	want := s.mac(id, stamp, body)
	for _, sig := range strings.Fields(h.Get(headerSignature)) {
		got, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sig, "v1,"))
		if err == nil && strings.HasPrefix(sig, "v1,") && hmac.Equal(got, want) {
			return nil
		}
	}
	return ErrHookSignature
}

package mpp

import (
	"mime"
	"strconv"
	"strings"

	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/internal/plaintext"
)

// maxProblem bounds the body of a problem.
const maxProblem = 64 << 10

// The kinds of problem that are told apart.
const (
	problemVerificationFailed = "verification-failed"
	problemInvalidChallenge   = "invalid-challenge"
	problemPaymentExpired     = "payment-expired"
	problemInternal           = "internal-payment-error"
)

// problem is what a seller says went wrong, cleaned and bounded. It proves
// nothing.
type problem struct {
	// kind is the end of the type, whatever stands before it: lower-case letters,
	// digits and dashes, with session/ before the kinds that are a session's.
	kind string

	title, detail, hint string // for people; may be empty
	challengeID         string // may be empty
	status              int    // 0 where it states none
}

// readProblem reads the body of an answer that says it is a problem, and
// reports whether it is one.
func readProblem(contentType string, body []byte) (p problem, ok bool) {
	switch media, _, _ := mime.ParseMediaType(contentType); media {
	case "application/problem+json", "application/json":
	default:
		return p, false
	}
	doc, why := parseObject(body, maxProblem, "problem")
	if why != (skip{}) {
		return p, false
	}
	doc.Object(func(key string, val jsonscan.Value) error {
		switch key {
		case "type":
			p.kind = problemKind(text(val))
		case "title":
			p.title = plaintext.Clean(text(val), 80)
		case "detail":
			p.detail = plaintext.Clean(text(val), 256)
		case "hint":
			p.hint = plaintext.Clean(text(val), 256)
		case "challengeId":
			p.challengeID = plaintext.Clean(text(val), 128)
		case "status":
			if n, err := strconv.Atoi(val.Raw()); err == nil && n >= 100 && n <= 599 {
				p.status = n
			}
		}
		return nil
	})
	return p, p.kind != ""
}

// problemKind is the end of a problem's type, and empty where that is no name.
func problemKind(s string) string {
	const session = "session"
	i := strings.LastIndexAny(s, "/:")
	kind := strings.ReplaceAll(strings.ToLower(s[i+1:]), "_", "-")
	if kind == "" || len(kind) > maxName || !allIn(kind, isLower, isDigit, isDash) {
		return ""
	}
	if before := strings.ToLower(s[:max(i, 0)]); before == session || strings.HasSuffix(before, "/"+session) || strings.HasSuffix(before, ":"+session) {
		return session + "/" + kind
	}
	return kind
}

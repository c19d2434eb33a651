package approvals

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// Answers is where what people answer to a webhook's messages comes back: a
// program that shows them posts the answer here, with the credential of whoever
// gave it. It rules through a Desk made for it, by NewDesk(store, "webhook", nil),
// and so takes only answers of approvers that the policy names. It is safe for
// concurrent use.
//
// It takes POST with a JSON object: approvalId, approve (true or false),
// credential, termsHash (as the message told it) and, for the record, reason. It
// answers with a JSON object: status (pending while others of a quorum have yet to
// answer), approvalId and transactionId, or error and code. It serves programs and no browser: a request that a page could have sent
// is refused.
type Answers struct{ desk *Desk }

// NewAnswers returns the handler of a desk. Whatever the desk's way is called,
// what comes in here came over a network.
func NewAnswers(desk *Desk) *Answers {
	remote := *desk
	remote.way = ledger.Remote
	return &Answers{&remote}
}

// maxAnswer bounds the body of an answer.
const maxAnswer = 16 << 10

// answer is what is posted.
type answer struct {
	ApprovalID payment.ApprovalID `json:"approvalId"`
	Approve    *bool              `json:"approve"`
	Credential Credential         `json:"credential"`
	TermsHash  *payment.Hash      `json:"termsHash"`
	Reason     string             `json:"reason"`
}

// ruled is the answer to one.
type ruled struct {
	Status        string             `json:"status"`
	ApprovalID    payment.ApprovalID `json:"approvalId,omitempty"`
	TransactionID payment.ID         `json:"transactionId,omitempty"`
	Error         string             `json:"error,omitempty"`
	Code          string             `json:"code,omitempty"`
}

// ServeHTTP takes one answer.
func (s *Answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, code, text string) {
		reply(w, status, ruled{Status: "error", Code: code, Error: text})
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		refuse(http.StatusMethodNotAllowed, "method", "an answer is posted")
		return
	case r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "":
		refuse(http.StatusForbidden, "browser", "this address serves programs and no page")
		return
	case err != nil || kind != "application/json":
		refuse(http.StatusUnsupportedMediaType, "content_type", "an answer is application/json")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAnswer))
	if err != nil {
		refuse(http.StatusRequestEntityTooLarge, "too_large", "an answer has 16 KiB at most")
		return
	}
	a, err := readAnswer(body)
	if err != nil {
		refuse(http.StatusBadRequest, "invalid", err.Error())
		return
	}
	got, err := s.desk.Rule(r.Context(), a.ApprovalID, Ruling{
		Approve: *a.Approve, Credential: a.Credential.Reveal(), Reason: a.Reason, TermsHash: *a.TermsHash,
	})
	if err != nil {
		status, code := answerError(err)
		text := err.Error()
		switch status {
		case http.StatusInternalServerError:
			text = "the ledger could not record it: try again"
		case http.StatusForbidden:
			text = "this answer does not count here" // whose would is nobody's business
		}
		refuse(status, code, text)
		return
	}
	reply(w, http.StatusOK, ruled{Status: got.Status.String(), ApprovalID: got.ID, TransactionID: got.Payment})
}

// readAnswer reads what was posted, strictly.
func readAnswer(body []byte) (answer, error) {
	var a answer
	if err := jsonscan.Validate(body, 2); err != nil {
		return a, errors.New("the body is not one JSON object, with each key once")
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return a, errors.New("the body has to be an object of approvalId, approve, credential, termsHash and reason")
	}
	switch {
	case !a.ApprovalID.Valid():
		return a, errors.New("approvalId is no id of an approval")
	case a.Approve == nil:
		return a, errors.New("approve is missing: true or false")
	case a.TermsHash == nil || a.TermsHash.IsZero():
		return a, errors.New("termsHash is missing: it is in the message that was shown")
	case a.Credential == "":
		return a, errors.New("credential is missing")
	case len(a.Reason) > 1000:
		return a, errors.New("reason has 1,000 bytes at most")
	}
	return a, nil
}

// answerError is the status and the code of a ruling that was not taken.
func answerError(err error) (int, string) {
	switch {
	case errors.Is(err, ErrCredential):
		return http.StatusUnauthorized, "credential"
	case errors.Is(err, ledger.ErrNotFound):
		return http.StatusNotFound, "not_found"
	case errors.Is(err, ledger.ErrDecided):
		return http.StatusConflict, "decided"
	case errors.Is(err, ledger.ErrTermsChanged):
		return http.StatusConflict, "terms_changed"
	case errors.Is(err, ledger.ErrVoted):
		return http.StatusConflict, "voted"
	case errors.Is(err, ledger.ErrNotNamed):
		return http.StatusForbidden, "not_named"
	case errors.Is(err, ledger.ErrNoApprovers):
		return http.StatusForbidden, "no_approvers"
	case errors.Is(err, ledger.ErrSelf):
		return http.StatusForbidden, "self"
	case errors.Is(err, ledger.ErrClockSkew):
		return http.StatusServiceUnavailable, "clock_skew"
	}
	return http.StatusInternalServerError, "ledger"
}

func reply(w http.ResponseWriter, status int, v ruled) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

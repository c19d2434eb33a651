package mpp

import (
	"io"
	"net/http"
	"strings"

	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/payment"
)

// Codes of the rail's own, where a seller's answer is not believed. The claim
// is then none.
const (
	codeUnreadable = "receipt_unreadable"
	codeSeveral    = "receipt_several"
	codeStatus     = "receipt_without_success"
	codeMethod     = "receipt_of_another_method"
	codeOther      = "receipt_of_another_payment"
)

// Receipt reads what the seller says of g's settlement: on a challenge the
// problem in its body, else the Payment-Receipt, whatever the status. A receipt
// has to be of the method and of the transaction, where its hash was known; of a
// proof, of the challenge.
func (r *Rail) Receipt(resp *http.Response, g payment.Grant) (payment.Receipt, error) {
	if resp.StatusCode == http.StatusPaymentRequired || resp.StatusCode == http.StatusUnauthorized {
		return refusal(resp), nil
	}
	switch values := resp.Header.Values(headerReceipt); len(values) {
	case 0:
		return payment.Receipt{}, nil
	case 1:
		return success(values[0], &g), nil
	}
	return payment.Receipt{Code: codeSeveral}, nil
}

// success is what a receipt claims.
func success(value string, g *payment.Grant) payment.Receipt {
	p, err := readReceiptPayload(value)
	switch {
	case err != nil:
		return payment.Receipt{Code: codeUnreadable}
	case !p.success():
		return payment.Receipt{Code: codeStatus, Message: plaintext.Clean(p.status, 80)}
	case p.method != method(g.Terms.Scheme):
		return payment.Receipt{Code: codeMethod}
	case p.challengeID != "" && p.challengeID != g.ChallengeID:
		return payment.Receipt{Code: codeOther}
	case g.Terms.Scheme == SchemeProof:
		if p.reference != g.ChallengeID {
			return payment.Receipt{Code: codeOther}
		}
		return payment.Receipt{Claim: payment.ClaimPaid, Block: p.timestamp}
	}
	hash := hashOf(p.reference)
	if hash == "" || g.TxHash != "" && hash != g.TxHash {
		return payment.Receipt{Code: codeOther}
	}
	return payment.Receipt{Claim: payment.ClaimPaid, TxHash: hash}
}

// method is the payment method of a scheme.
func method(scheme string) string {
	m, _, _ := strings.Cut(scheme, "/")
	return m
}

// refusal is what a challenge that answered a payment claims: proof of nothing,
// but where it says that the transaction is used already.
func refusal(resp *http.Response) payment.Receipt {
	if resp.Body == nil {
		return payment.Receipt{}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem+1))
	if err != nil {
		return payment.Receipt{}
	}
	p, ok := readProblem(resp.Header.Get("Content-Type"), body)
	if !ok {
		return payment.Receipt{}
	}
	out := payment.Receipt{Claim: payment.ClaimRefused, Code: plaintext.Code(strings.ReplaceAll(p.kind, "-", "_")), Message: p.detail}
	if out.Message == "" {
		out.Message = p.title
	}
	if p.kind == problemVerificationFailed && usedBefore(p.detail) {
		out.Claim = payment.ClaimUsed
	}
	return out
}

// usedBefore reports whether a seller says that the transaction that it was
// shown was claimed before. The protocol has no code for it.
func usedBefore(detail string) bool {
	s := strings.ToLower(detail)
	return strings.Contains(s, "already been used") || strings.Contains(s, "already used")
}

// hashOf is s in lower case, or nothing where it is not 0x and 64 hex digits that
// are not all zero.
func hashOf(s string) string {
	s = strings.ToLower(s)
	var h [32]byte
	if !readHex(h[:], s) || h == [32]byte{} {
		return ""
	}
	return s
}

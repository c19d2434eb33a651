package mpp

import (
	"errors"
	"fmt"
	"time"

	"github.com/canopy-go/canopy/internal/jsonscan"
)

const (
	// headerReceipt carries the seller's receipt.
	headerReceipt = "Payment-Receipt"

	// maxReceipt bounds it, and maxReference what it refers to.
	maxReceipt   = 16 << 10
	maxReference = 512

	statusSuccess = "success"
)

// errReceipt is wrapped by every error of reading a receipt.
var errReceipt = errors.New("mpp: not a receipt")

// receiptPayload is what a seller's receipt says. Only one whose success
// reports true can prove anything.
type receiptPayload struct {
	status    string
	method    string
	reference string // of a charge the transaction's hash, of a proof the challenge's id

	// The rest may be empty or zero.
	intent      string
	challengeID string
	externalID  string
	timestamp   time.Time
}

func (r receiptPayload) success() bool { return r.status == statusSuccess }

// readReceiptPayload reads the value of a Payment-Receipt header. Members that
// it does not know mean nothing to it, and neither does an instant that is none.
func readReceiptPayload(value string) (r receiptPayload, err error) {
	doc, why := decodeObject(value, maxReceipt, "receipt")
	if why != (skip{}) {
		return r, fmt.Errorf("%w: %s", errReceipt, why.code)
	}
	err = members(doc, func(key string, val jsonscan.Value) (err error) {
		switch key {
		case "status":
			r.status, err = word(val)
		case "method":
			r.method, err = word(val)
		case "reference":
			r.reference, err = word(val)
		case "intent":
			r.intent, err = word(val)
		case "challengeId":
			r.challengeID, err = word(val)
		case "externalId":
			r.externalID, err = word(val)
		case "timestamp":
			r.timestamp, _ = readInstant(text(val))
		}
		return named(key, err)
	})
	switch {
	case err != nil:
		return receiptPayload{}, fmt.Errorf("%w: %v", errReceipt, err)
	case r.status == "" || r.method == "" || r.reference == "":
		return receiptPayload{}, fmt.Errorf("%w: no status, method or reference", errReceipt)
	}
	return r, nil
}

// word reads a string that is compared or kept: short, and without control
// characters.
func word(v jsonscan.Value) (string, error) {
	s, err := v.String()
	if err == nil && (len(s) > maxReference || hasControl(s)) {
		err = fault{"too_large", ""}
	}
	return s, err
}

package mpp

import (
	"errors"
	"slices"
	"strconv"

	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/payment"
)

// maxCredential bounds the payload of a credential as it is read back.
const maxCredential = 64 << 10

var errMember = errors.New("a member is missing, or is not what it should be")

// The members of payloads.
var memberNames = [...]string{"type", "signature", "hash", "from", "to", "value", "validAfter", "validBefore", "nonce"}

const (
	memberType = iota
	memberSignature
	memberHash
	memberFrom
	memberTo
	memberValue
	memberValidAfter
	memberValidBefore
	memberNonce
)

// readPayload reads one of the payloads that are written here; each has its own
// members and no other.
func readPayload(v jsonscan.Value) (payload, error) {
	var (
		m     [len(memberNames)]string
		given int // a bit for each member
	)
	err := v.Object(func(key string, val jsonscan.Value) (err error) {
		i := slices.Index(memberNames[:], key)
		if i < 0 {
			return errMember
		}
		given |= 1 << i
		m[i], err = val.String()
		return err
	})
	if err != nil {
		return nil, err
	}
	switch kind := m[memberType]; {
	case kind == "transaction" && given == 1<<memberType|1<<memberSignature:
		s := m[memberSignature]
		tx := make(transaction, max(0, len(s)/2-1))
		if len(tx) > 0 && readHex(tx, s) {
			return tx, nil
		}
	case kind == "hash" && given == 1<<memberType|1<<memberHash:
		var h txHash
		if readHex(h[:], m[memberHash]) {
			return h, nil
		}
	case kind == "proof" && given == 1<<memberType|1<<memberSignature:
		var p proof
		if readHex(p[:], m[memberSignature]) {
			return p, nil
		}
	case kind == "authorization" && given == (1<<len(memberNames)-1)&^(1<<memberHash):
		return readAuthorization(m[:])
	}
	return nil, errMember
}

func readAuthorization(m []string) (payload, error) {
	var (
		a    authorization
		errs [5]error
	)
	a.from, errs[0] = payment.ParseAddressLoose(m[memberFrom])
	a.to, errs[1] = payment.ParseAddressLoose(m[memberTo])
	a.value, errs[2] = payment.ParseUnits(m[memberValue])
	a.validAfter, errs[3] = readSeconds(m[memberValidAfter])
	a.validBefore, errs[4] = readSeconds(m[memberValidBefore])
	if errors.Join(errs[:]...) != nil || !readHex(a.nonce[:], m[memberNonce]) || !readHex(a.signature[:], m[memberSignature]) {
		return nil, errMember
	}
	return &a, nil
}

// readSeconds reads an instant as the payload spells it: digits alone.
func readSeconds(s string) (uint64, error) {
	if s == "" || len(s) > 1 && s[0] == '0' || !allIn(s, isDigit) {
		return 0, errMember
	}
	return strconv.ParseUint(s, 10, 64)
}

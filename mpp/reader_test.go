package mpp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/payment"
)

// What follows reads any credential, also of another writer: the rail itself
// reads back only what it wrote, by its layout.

// errCredential is wrapped by every error of reading a credential. None shows
// what the credential holds.
var errCredential = errors.New("mpp: not a credential")

// credential is a credential that was read.
type credential struct {
	echo      string // the challenge, as it was written
	challenge challenge
	payload   payload
	source    source // zero where there is none
}

// readCredential reads the value of a header as strictly as writeCredential
// writes it, but for white space and padding.
func readCredential(value string) (credential, error) {
	var c credential
	scheme, rest, ok := strings.Cut(value, " ")
	if !ok || !strings.EqualFold(scheme, schemePayment) {
		return c, fmt.Errorf("%w: another scheme", errCredential)
	}
	doc, why := decodeObject(strings.TrimLeft(rest, " "), maxCredential, "credential")
	if why != (skip{}) {
		return c, fmt.Errorf("%w: %s", errCredential, why.code)
	}
	var ch, p, from jsonscan.Value
	err := doc.Object(func(key string, val jsonscan.Value) error {
		switch key {
		case "challenge":
			ch = val
		case "payload":
			p = val
		case "source":
			from = val
		default:
			return errors.New("a member of no meaning")
		}
		return nil
	})
	if err != nil {
		return c, fmt.Errorf("%w: %v", errCredential, err)
	}
	c.echo = ch.Raw()
	if c.challenge, err = readEcho(ch); err != nil {
		return c, fmt.Errorf("%w: challenge: %v", errCredential, err)
	}
	if c.payload, err = readPayload(p); err != nil {
		return c, fmt.Errorf("%w: payload: %v", errCredential, err)
	}
	if from.Kind() != jsonscan.Missing {
		if c.source, ok = readSource(text(from)); !ok {
			return c, fmt.Errorf("%w: source", errCredential)
		}
	}
	return c, nil
}

// readSource reads a DID of an EVM account. The checksum of a mixed-case address
// has to be right.
func readSource(s string) (source, bool) {
	rest, ok := strings.CutPrefix(s, sourcePrefix)
	i := strings.LastIndexByte(rest, ':')
	if !ok || i < 0 {
		return source{}, false
	}
	chain, err := payment.ParseChainID(rest[:i])
	if err != nil {
		return source{}, false
	}
	address, err := payment.ParseAddress(rest[i+1:])
	return source{chain, address}, err == nil
}

// readEcho reads what echo wrote, or another writer of the same, and holds it
// against the same rules as a header.
func readEcho(v jsonscan.Value) (challenge, error) {
	var c challenge
	given := [fields]bool{}
	err := v.Object(func(key string, val jsonscan.Value) error {
		f := slices.Index(fieldNames[:], key)
		if f < 0 {
			return skipped("unknown_member", key)
		}
		s, err := val.String()
		if err != nil {
			return skipped("wrong_type", key)
		}
		if hasControl(s) {
			return skipped("control_character", key)
		}
		given[f] = true
		if why := c.set(f, s); why != (skip{}) {
			return why
		}
		return nil
	})
	if err != nil {
		return challenge{}, err
	}
	for f := range fieldRequest + 1 {
		if !given[f] {
			return challenge{}, skipped("missing_parameter", fieldNames[f])
		}
	}
	return c, nil
}

package mppserver

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Credential is what a buyer answers a challenge with.
type Credential struct {
	Challenge Challenge       `json:"challenge"`
	Payload   json.RawMessage `json:"payload"` // an object with a type
	Source    string          `json:"source"`  // empty where there is none
}

// ReadCredential reads the value of a credential's header. It does not look at
// who issued the challenge.
func ReadCredential(value string) (c Credential, err error) {
	scheme, doc, ok := strings.Cut(value, " ")
	if !ok || !strings.EqualFold(scheme, "Payment") {
		return c, errors.New("mppserver: no credential of the Payment scheme")
	}
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(doc, "="))
	if err != nil {
		return c, fmt.Errorf("mppserver: credential: %v", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return c, fmt.Errorf("mppserver: credential: %v", err)
	}
	if dec.More() {
		return c, errors.New("mppserver: more after the credential")
	}
	return c, nil
}

// PayloadType is the type of the payload, and empty where it has none.
func (c Credential) PayloadType() string {
	var p struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(c.Payload, &p) != nil {
		return ""
	}
	return p.Type
}

package mpp

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"

	"github.com/canopy-go/canopy/payment"
)

// payload is the part of a credential that moves money, or proves an account. It
// is one of transaction, txHash, proof and authorization.
type payload interface {
	// append writes the payload as a JSON object.
	append(b []byte) []byte

	// size is at least the length of what append writes.
	size() int
}

type (
	// transaction is a signed Tempo transaction that the seller broadcasts.
	transaction []byte

	// txHash is of a transaction that was broadcast.
	txHash [32]byte

	// proof is a signature that moves nothing.
	proof [65]byte

	// authorization is an EIP-3009 transfer that the seller submits.
	authorization struct {
		from, to                payment.Address
		value                   payment.Units
		validAfter, validBefore uint64
		nonce                   [32]byte
		signature               [65]byte
	}
)

func (p transaction) append(b []byte) []byte {
	b = append(b, `{"type":"transaction","signature":"`...)
	return append(appendHex(b, p), `"}`...)
}

func (p txHash) append(b []byte) []byte {
	b = append(b, `{"type":"hash","hash":"`...)
	return append(appendHex(b, p[:]), `"}`...)
}

func (p proof) append(b []byte) []byte {
	b = append(b, `{"type":"proof","signature":"`...)
	return append(appendHex(b, p[:]), `"}`...)
}

func (p *authorization) append(b []byte) []byte {
	b = append(b, `{"type":"authorization","from":"`...)
	b = append(appendHex(b, p.from[:]), `","to":"`...)
	b = append(appendHex(b, p.to[:]), `","value":"`...)
	b = append(append(b, p.value.String()...), `","validAfter":"`...)
	b = append(strconv.AppendUint(b, p.validAfter, 10), `","validBefore":"`...)
	b = append(strconv.AppendUint(b, p.validBefore, 10), `","nonce":"`...)
	b = append(appendHex(b, p.nonce[:]), `","signature":"`...)
	return append(appendHex(b, p.signature[:]), `"}`...)
}

func (p transaction) size() int  { return 40 + 2*len(p) }
func (txHash) size() int         { return 96 }
func (proof) size() int          { return 168 }
func (*authorization) size() int { return 640 }

func appendHex(b, src []byte) []byte { return hex.AppendEncode(append(b, "0x"...), src) }

// source names the payer as a credential does.
type source struct {
	chain   payment.ChainID
	address payment.Address
}

const sourcePrefix = "did:pkh:"

// String spells the address with its checksum: mppx compares the text where it
// settles an EIP-3009 authorization.
func (s source) String() string { return sourcePrefix + string(s.chain) + ":" + s.address.String() }

// writeCredential is the value of the header that carries a credential: echo is
// a challenge as its echo method wrote it. A zero source is left out.
func writeCredential(echo []byte, p payload, from source) string {
	const scheme = schemePayment + " "
	size := len(`{"challenge":,"payload":,"source":""}`) + len(echo) + p.size() + len(sourcePrefix) + len(from.chain) + 43
	room := len(scheme) + base64.RawURLEncoding.EncodedLen(size)

	// The document stands behind the room that its own encoding needs.
	b := make([]byte, room, room+size)
	b = append(append(b, `{"challenge":`...), echo...)
	b = p.append(append(b, `,"payload":`...))
	if from != (source{}) {
		b = append(append(b, `,"source":"`+sourcePrefix...), from.chain...)
		b = append(append(append(b, ':'), from.address.String()...), '"')
	}
	b = append(b, '}')
	out := append(b[:0:room], scheme...)
	return string(base64.RawURLEncoding.AppendEncode(out, b[room:]))
}

package tempo

import (
	"bytes"

	"github.com/canopy-go/canopy/payment"
)

// The first byte of a transaction.
const (
	typeTransaction = 0x76 // also what the sender signs
	typeFeePayer    = 0x78 // a hand-over to a sponsor; also what the sponsor signs
)

// text is one of the three texts that a transaction is laid out as.
type text uint8

const (
	wire         text = iota // what is sent
	senderText               // what the sender signs
	feePayerText             // what the sponsor signs
)

// roomSize holds the usual transaction on the stack.
const roomSize = 768

// Encode returns t as it goes out: 0x78 where the slot of the fee payer holds
// the sender, else 0x76. It does not check t; see Check.
func (t *Transaction) Encode() []byte {
	var room [roomSize]byte
	return bytes.Clone(t.append(room[:0], wire))
}

// Preimage returns the bytes whose Keccak-256 the sender signs. All forms of a
// sponsored transaction have the same, in which the slot of the fee payer is
// the placeholder and the fee token is absent.
func (t *Transaction) Preimage() []byte {
	var room [roomSize]byte
	return bytes.Clone(t.append(room[:0], senderText))
}

// as is t with the fields that differ between the texts.
func (t *Transaction) as(x text) (kind byte, token payment.Address, payer *FeePayer, signature []byte) {
	kind, token, payer, signature = typeTransaction, t.FeeToken, &t.FeePayer, t.Signature
	switch {
	case x == senderText && t.Sponsored():
		token, payer = payment.Address{}, &placeholder
	case x == feePayerText || t.FeePayer.Kind == FeePayerSender:
		kind = typeFeePayer
	}
	if x != wire {
		signature = nil
	}
	return kind, token, payer, signature
}

var placeholder = FeePayer{Kind: FeePayerPlaceholder}

func (t *Transaction) append(b []byte, x text) []byte {
	kind, token, payer, signature := t.as(x)
	b = append(b, kind)
	start := len(b)
	b = appendUint(b, t.ChainID)
	b = appendUint(b, t.MaxPriorityFeePerGas)
	b = appendUint(b, t.MaxFeePerGas)
	b = appendUint(b, t.Gas)
	b = t.appendCalls(b)
	b = t.appendAccess(b)
	b = appendNumber(b, &t.NonceKey)
	b = appendUint(b, t.Nonce)
	b = appendUint(b, t.ValidBefore)
	b = appendUint(b, t.ValidAfter)
	if token.IsZero() {
		b = append(b, stringBase)
	} else {
		b = appendBytes(b, token[:])
	}
	b = payer.append(b)
	if len(t.Authorizations) == 0 {
		b = append(b, listBase)
	}
	b = append(append(b, t.Authorizations...), t.KeyAuthorization...)
	if len(signature) > 0 {
		b = appendBytes(b, signature)
	}
	return closeList(b, start)
}

func (t *Transaction) appendCalls(b []byte) []byte {
	start := len(b)
	for i := range t.Calls {
		c := &t.Calls[i]
		call := len(b)
		if c.Create {
			b = append(b, stringBase)
		} else {
			b = appendBytes(b, c.To[:])
		}
		if n, ok := c.Value.Uint64(); ok {
			b = appendUint(b, n)
		} else {
			value := c.Value.Bytes()
			b = appendNumber(b, &value)
		}
		b = closeList(appendBytes(b, c.Data), call)
	}
	return closeList(b, start)
}

func (t *Transaction) appendAccess(b []byte) []byte {
	start := len(b)
	for i := range t.AccessList {
		a := &t.AccessList[i]
		access := len(b)
		b = appendBytes(b, a.Address[:])
		keys := len(b)
		for k := range a.Keys {
			b = appendBytes(b, a.Keys[k][:])
		}
		b = closeList(closeList(b, keys), access)
	}
	return closeList(b, start)
}

func (f *FeePayer) append(b []byte) []byte {
	switch f.Kind {
	case FeePayerPlaceholder:
		return append(b, 0)
	case FeePayerSender:
		return appendBytes(b, f.Sender[:])
	case FeePayerSigned:
		start := len(b)
		b = appendUint(b, uint64(f.YParity))
		return closeList(appendNumber(appendNumber(b, &f.R), &f.S), start)
	}
	return append(b, stringBase)
}

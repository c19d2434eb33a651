package tempo

import "github.com/canopy-go/canopy/payment"

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

// Encode returns t as it goes out: 0x78 where the slot of the fee payer holds
// the sender, else 0x76. It does not check t; see Check.
func (t *Transaction) Encode() []byte {
	return t.append(make([]byte, 0, t.size(wire)), wire)
}

// Preimage returns the bytes whose Keccak-256 the sender signs. All forms of a
// sponsored transaction have the same, in which the slot of the fee payer is
// the placeholder and the fee token is absent.
func (t *Transaction) Preimage() []byte {
	return t.append(make([]byte, 0, t.size(senderText)), senderText)
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

func (t *Transaction) size(x text) int { return 1 + listSize(t.fieldsSize(x)) }

func (t *Transaction) fieldsSize(x text) int {
	_, token, payer, signature := t.as(x)
	n := uintSize(t.ChainID) + uintSize(t.MaxPriorityFeePerGas) + uintSize(t.MaxFeePerGas) + uintSize(t.Gas) +
		listSize(t.callsSize()) + listSize(t.accessSize()) +
		bytesSize(trim(&t.NonceKey)) + uintSize(t.Nonce) + uintSize(t.ValidBefore) + uintSize(t.ValidAfter) +
		addressSize(token) + payer.size() + max(1, len(t.Authorizations)) + len(t.KeyAuthorization)
	if len(signature) > 0 {
		n += bytesSize(signature)
	}
	return n
}

func (t *Transaction) append(b []byte, x text) []byte {
	kind, token, payer, signature := t.as(x)
	b = appendHead(append(b, kind), listBase, t.fieldsSize(x))
	b = appendUint(b, t.ChainID)
	b = appendUint(b, t.MaxPriorityFeePerGas)
	b = appendUint(b, t.MaxFeePerGas)
	b = appendUint(b, t.Gas)
	b = t.appendCalls(b)
	b = t.appendAccess(b)
	b = appendBytes(b, trim(&t.NonceKey))
	b = appendUint(b, t.Nonce)
	b = appendUint(b, t.ValidBefore)
	b = appendUint(b, t.ValidAfter)
	b = appendAddress(b, token)
	b = payer.append(b)
	if len(t.Authorizations) == 0 {
		b = append(b, listBase)
	}
	b = append(append(b, t.Authorizations...), t.KeyAuthorization...)
	if len(signature) > 0 {
		b = appendBytes(b, signature)
	}
	return b
}

func (t *Transaction) callsSize() (n int) {
	for i := range t.Calls {
		n += listSize(t.Calls[i].size())
	}
	return n
}

func (t *Transaction) appendCalls(b []byte) []byte {
	b = appendHead(b, listBase, t.callsSize())
	for i := range t.Calls {
		c := &t.Calls[i]
		b = appendHead(b, listBase, c.size())
		if c.Create {
			b = append(b, stringBase)
		} else {
			b = appendBytes(b, c.To[:])
		}
		value := c.Value.Bytes()
		b = appendBytes(appendBytes(b, trim(&value)), c.Data)
	}
	return b
}

func (c *Call) size() int {
	to := 1 + len(c.To)
	if c.Create {
		to = 1
	}
	value := c.Value.Bytes()
	return to + bytesSize(trim(&value)) + bytesSize(c.Data)
}

func (t *Transaction) accessSize() (n int) {
	for i := range t.AccessList {
		n += listSize(t.AccessList[i].size())
	}
	return n
}

func (t *Transaction) appendAccess(b []byte) []byte {
	b = appendHead(b, listBase, t.accessSize())
	for i := range t.AccessList {
		a := &t.AccessList[i]
		b = appendHead(b, listBase, a.size())
		b = appendBytes(b, a.Address[:])
		b = appendHead(b, listBase, a.keysSize())
		for k := range a.Keys {
			b = appendBytes(b, a.Keys[k][:])
		}
	}
	return b
}

func (a *Access) size() int { return 1 + len(a.Address) + listSize(a.keysSize()) }

func (a *Access) keysSize() int { return 33 * len(a.Keys) }

// addressSize and appendAddress take the zero address as absent.
func addressSize(a payment.Address) int {
	if a.IsZero() {
		return 1
	}
	return 1 + len(a)
}

func appendAddress(b []byte, a payment.Address) []byte {
	if a.IsZero() {
		return append(b, stringBase)
	}
	return appendBytes(b, a[:])
}

func (f *FeePayer) size() int {
	switch f.Kind {
	case FeePayerSender:
		return 1 + len(f.Sender)
	case FeePayerSigned:
		return listSize(f.signatureSize())
	}
	return 1
}

func (f *FeePayer) signatureSize() int {
	return uintSize(uint64(f.YParity)) + bytesSize(trim(&f.R)) + bytesSize(trim(&f.S))
}

func (f *FeePayer) append(b []byte) []byte {
	switch f.Kind {
	case FeePayerPlaceholder:
		return append(b, 0)
	case FeePayerSender:
		return appendBytes(b, f.Sender[:])
	case FeePayerSigned:
		b = appendHead(b, listBase, f.signatureSize())
		b = appendUint(b, uint64(f.YParity))
		return appendBytes(appendBytes(b, trim(&f.R)), trim(&f.S))
	}
	return append(b, stringBase)
}

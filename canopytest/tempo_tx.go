package canopytest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/payment"
)

// TempoTx is a signed transaction of Tempo, as it stands on the wire: type 0x76,
// or 0x78 on its way to a sponsor. It prints without its signature.
type TempoTx struct {
	ChainID     uint64
	Tip, MaxFee payment.Units // of one gas, in 1e-18 dollars
	Gas         uint64
	Calls       []TempoCall
	NonceKey    [32]byte // zero is the account's own nonce, all ones the expiring one, any other a lane
	Nonce       uint64
	ValidBefore uint64          // seconds since 1970; 0 where there is none
	ValidAfter  uint64          // likewise
	FeeToken    payment.Address // zero where none is named

	Sender    payment.Address // whose signature it is
	Sponsored bool            // somebody else pays the fee
	FeePayer  payment.Address // whose signature says so; zero where it is missing as yet
	Signature []byte          // of the sender

	raw        []byte
	fields     []rlp.RawValue // all but the signature
	accessList bool
	delegated  bool // signed by an access key, or with authorizations of other kinds
}

// TempoCall is one call of a TempoTx.
type TempoCall struct {
	To     payment.Address
	Create bool
	Value  payment.Units
	Data   []byte
}

// TempoTransfer is a call that moves a token.
type TempoTransfer struct {
	Token, To payment.Address
	Amount    payment.Units
	Memo      [32]byte
	HasMemo   bool
}

// ErrTempoTx is wrapped where bytes are no transaction of Tempo, or one that
// nobody signed.
var ErrTempoTx = errors.New("canopytest: not a transaction of Tempo")

// The fields of a transaction, in order.
const (
	fieldChain = iota
	fieldTip
	fieldMaxFee
	fieldGas
	fieldCalls
	fieldAccessList
	fieldNonceKey
	fieldNonce
	fieldValidBefore
	fieldValidAfter
	fieldFeeToken
	fieldFeePayer
	fieldAuthorizations
	fieldKeyAuthorization // only where there is one
)

const maxTempoTx = 64 << 10

var expiringKey = [32]byte(bytes.Repeat([]byte{0xff}, 32))

// DecodeTempo reads a signed transaction. It is laid out by hand from the
// protocol, so that it is a check on any other implementation: integers have
// one spelling, nothing follows, and the signature recovers.
func DecodeTempo(raw []byte) (*TempoTx, error) {
	tx, err := decodeTempo(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTempoTx, err)
	}
	return tx, nil
}

func decodeTempo(raw []byte) (*TempoTx, error) {
	switch {
	case len(raw) > maxTempoTx:
		return nil, fmt.Errorf("%d bytes", len(raw))
	case len(raw) == 0 || raw[0] != 0x76 && raw[0] != 0x78:
		return nil, errors.New("another type")
	}
	items, err := rlpItems(raw[1:])
	if err != nil {
		return nil, err
	}
	if n := len(items); n != 14 && n != 15 {
		return nil, fmt.Errorf("%d fields", n)
	}
	tx := &TempoTx{raw: bytes.Clone(raw), fields: items[:len(items)-1]}
	r := fieldReader{}
	tx.ChainID = r.number(items[fieldChain])
	tx.Tip, tx.MaxFee = r.units(items[fieldTip]), r.units(items[fieldMaxFee])
	tx.Gas = r.number(items[fieldGas])
	tx.Calls = r.calls(items[fieldCalls])
	tx.accessList = len(r.list(items[fieldAccessList])) > 0
	tx.NonceKey, tx.Nonce = r.units(items[fieldNonceKey]).Bytes(), r.number(items[fieldNonce])
	tx.ValidBefore, tx.ValidAfter = r.number(items[fieldValidBefore]), r.number(items[fieldValidAfter])
	if token := r.text(items[fieldFeeToken]); len(token) == 20 {
		tx.FeeToken = payment.Address(token)
	} else if len(token) > 0 {
		r.fail("a fee token of %d bytes", len(token))
	}
	tx.delegated = len(r.list(items[fieldAuthorizations])) > 0
	if len(items) == 15 {
		r.list(items[fieldKeyAuthorization])
		tx.delegated = true
	}
	tx.Signature = r.text(items[len(items)-1])
	if r.err != nil {
		return nil, r.err
	}
	if tx.ValidBefore > 0 && tx.ValidBefore <= tx.ValidAfter {
		return nil, errors.New("validBefore is not after validAfter")
	}
	return tx, tx.recover()
}

// recover finds who signed tx, and who pays its fee.
func (tx *TempoTx) recover() error {
	slot := tx.fields[fieldFeePayer]
	kind, content, _, err := rlp.Split(slot)
	if err != nil {
		return err
	}
	tx.Sponsored = kind == rlp.List || len(content) > 0
	digest := keccak.Sum256(tx.preimage())
	sig := tx.Signature
	if len(sig) == 86 && (sig[0] == 3 || sig[0] == 4) { // by an access key of the account that is named
		tx.delegated = true
		user := sig[1:21]
		if sig[0] == 4 {
			digest = keccak.Sum256([]byte{4}, digest[:], user)
		}
		if _, err := recoverSigner(digest, sig[21:]); err != nil {
			return err
		}
		tx.Sender = payment.Address(user)
	} else if tx.Sender, err = recoverSigner(digest, sig); err != nil {
		return err
	}
	switch {
	case !tx.Sponsored:
		tx.FeePayer = tx.Sender
		if tx.raw[0] == 0x78 {
			return errors.New("a sponsor is asked, and the sender is not named")
		}
	case kind == rlp.List:
		if tx.raw[0] == 0x78 {
			return errors.New("a sponsor is asked that signed already")
		}
		return tx.recoverFeePayer(slot)
	case len(content) == 20:
		if tx.raw[0] != 0x78 || payment.Address(content) != tx.Sender {
			return errors.New("the sender that is named is not who signed")
		}
	case len(content) == 1 && content[0] == 0 && tx.raw[0] == 0x76:
	default:
		return errors.New("a fee payer of another form")
	}
	return nil
}

func (tx *TempoTx) recoverFeePayer(slot []byte) error {
	parts, err := rlpItems(slot)
	if err != nil || len(parts) != 3 {
		return errors.New("the fee payer's signature has another form")
	}
	r := fieldReader{}
	parity := r.number(parts[0])
	rr, ss := r.units(parts[1]).Bytes(), r.units(parts[2]).Bytes()
	if r.err != nil || parity > 1 {
		return errors.New("the fee payer's signature has another form")
	}
	tx.FeePayer, err = recoverSigner(tx.feePayerDigest(tx.FeeToken), append(append(rr[:], ss[:]...), byte(parity)))
	return err
}

// recoverSigner returns whose key signed digest with 65 bytes of r, s in the
// lower half, and v of either spelling.
func recoverSigner(digest [32]byte, sig []byte) (payment.Address, error) {
	if len(sig) != 65 {
		return payment.Address{}, fmt.Errorf("a signature of %d bytes", len(sig))
	}
	s := bytes.Clone(sig)
	if s[64] >= 27 {
		s[64] -= 27
	}
	if !crypto.ValidateSignatureValues(s[64], new(big.Int).SetBytes(s[:32]), new(big.Int).SetBytes(s[32:64]), true) {
		return payment.Address{}, errors.New("a signature out of range")
	}
	key, err := crypto.SigToPub(digest[:], s)
	if err != nil {
		return payment.Address{}, errors.New("a signature of nobody")
	}
	return payment.Address(crypto.PubkeyToAddress(*key)), nil
}

// preimage is what the sender signs, hashed: whoever is to pay the fee is left
// open, and so is the token it is paid in.
func (tx *TempoTx) preimage() []byte {
	if !tx.Sponsored {
		return encodeTempo(0x76, tx.fields)
	}
	fields := append([]rlp.RawValue(nil), tx.fields...)
	fields[fieldFeeToken], fields[fieldFeePayer] = rlp.RawValue{0x80}, rlp.RawValue{0x00}
	return encodeTempo(0x76, fields)
}

// feePayerDigest is what a sponsor signs.
func (tx *TempoTx) feePayerDigest(token payment.Address) [32]byte {
	fields := append([]rlp.RawValue(nil), tx.fields...)
	fields[fieldFeeToken], fields[fieldFeePayer] = rlpText(token[:]), rlpText(tx.Sender[:])
	if token.IsZero() {
		fields[fieldFeeToken] = rlp.RawValue{0x80}
	}
	return keccak.Sum256(encodeTempo(0x78, fields))
}

// final is the transaction as chains keep it, with v as 27 or 28: what its hash
// is of.
func (tx *TempoTx) final() []byte {
	sig := bytes.Clone(tx.Signature)
	if n := len(sig) - 1; sig[n] < 2 {
		sig[n] += 27
	}
	return encodeTempo(0x76, append(append([]rlp.RawValue(nil), tx.fields...), rlpText(sig)))
}

// Hash is the hash of the transaction on the chain, 0x and hex. A sponsor's
// signature changes it.
func (tx *TempoTx) Hash() string {
	sum := keccak.Sum256(tx.final())
	return "0x" + hex.EncodeToString(sum[:])
}

// Raw is the bytes that were decoded.
func (tx *TempoTx) Raw() []byte { return bytes.Clone(tx.raw) }

// replay identifies what the sender signed, whoever pays for it.
func (tx *TempoTx) replay() [32]byte { return keccak.Sum256(tx.preimage(), tx.Sender[:]) }

// Expiring reports whether tx is on the expiring nonce.
func (tx *TempoTx) Expiring() bool { return tx.NonceKey == expiringKey }

// Transfers are the calls as moves of tokens; it is an error where one is
// anything else.
func (tx *TempoTx) Transfers() ([]TempoTransfer, error) {
	var out []TempoTransfer
	for i, c := range tx.Calls {
		t, ok := c.transfer()
		if !ok {
			return nil, fmt.Errorf("canopytest: call %d is not a transfer", i)
		}
		out = append(out, t)
	}
	return out, nil
}

func (c TempoCall) transfer() (TempoTransfer, bool) {
	t := TempoTransfer{Token: c.To}
	d := c.Data
	if c.Create || !c.Value.IsZero() || len(d) < 68 || !bytes.Equal(d[4:16], make([]byte, 12)) {
		return t, false
	}
	t.To, t.Amount = payment.Address(d[16:36]), payment.UnitsFromBytes([32]byte(d[36:68]))
	switch {
	case len(d) == 68 && [4]byte(d) == selector("transfer(address,uint256)"):
		return t, true
	case len(d) == 100 && [4]byte(d) == selector("transferWithMemo(address,uint256,bytes32)"):
		t.Memo, t.HasMemo = [32]byte(d[68:]), true
		return t, true
	}
	return t, false
}

// memo is that of the first call that transfers token with one, zero where none
// does.
func (tx *TempoTx) memo(token payment.Address) [32]byte {
	for _, c := range tx.Calls {
		if t, ok := c.transfer(); ok && t.HasMemo && t.Token == token {
			return t.Memo
		}
	}
	return [32]byte{}
}

// String tells everything but the signature.
func (tx *TempoTx) String() string {
	return fmt.Sprintf("transaction %s of %s, %d calls, nonce %x/%d, before %d", tx.Hash(), tx.Sender, len(tx.Calls), tx.NonceKey, tx.Nonce, tx.ValidBefore)
}

// GoString is String.
func (tx *TempoTx) GoString() string { return tx.String() }

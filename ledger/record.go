package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// record writes what an event keeps of a move: one JSON object, its keys in
// order of their bytes, without spaces, floats or empty values. Callers add
// the keys in that order.
type record struct{ b []byte }

// newRecord returns one with room for n bytes.
func newRecord(n int) record { return record{append(make([]byte, 0, n), '{')} }

func (r *record) name(key string) {
	if r.b[len(r.b)-1] != '{' { // no value ends so
		r.b = append(r.b, ',')
	}
	r.b = append(append(append(r.b, '"'), key...), '"', ':')
}

func (r *record) text(key, s string) {
	if s != "" {
		r.name(key)
		r.b = appendJSON(r.b, s)
	}
}

func (r *record) hash(key string, h *payment.Hash) {
	if !h.IsZero() {
		r.name(key)
		r.b = append(hex.AppendEncode(append(r.b, '"'), h[:]), '"')
	}
}

func (r *record) number(key string, n int64) {
	if n != 0 {
		r.whole(key, n)
	}
}

// whole is number for one that is told where it is 0 too.
func (r *record) whole(key string, n int64) {
	r.name(key)
	r.b = strconv.AppendInt(r.b, n, 10)
}

// units writes a count as text.
func (r *record) units(key string, u payment.Units) {
	if !u.IsZero() {
		r.text(key, u.String())
	}
}

func (r *record) flag(key string, on bool) {
	if on {
		r.name(key)
		r.b = append(r.b, "true"...)
	}
}

// instant writes microseconds of Unix time.
func (r *record) instant(key string, t time.Time) {
	if !t.IsZero() {
		r.name(key)
		r.b = strconv.AppendInt(r.b, t.UnixMicro(), 10)
	}
}

func (r *record) codes(key string, list []policy.Reason) {
	sep := byte('[')
	for i := range list {
		if i == 0 {
			r.name(key)
		}
		code := list[i].Code
		if list[i].Shadow {
			code = "shadow:" + code
		}
		r.b = appendJSON(append(r.b, sep), code)
		sep = ','
	}
	if len(list) > 0 {
		r.b = append(r.b, ']')
	}
}

func texts[T ~string](r *record, key string, list []T) {
	sep := byte('[')
	for i := range list {
		if i == 0 {
			r.name(key)
		}
		r.b = appendJSON(append(r.b, sep), string(list[i]))
		sep = ','
	}
	if len(list) > 0 {
		r.b = append(r.b, ']')
	}
}

func (r *record) done() []byte { return append(r.b, '}') }

// plainByte tells the characters that JSON writes as they are.
var plainByte = func() (plain [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		plain[c] = c != '"' && c != '\\'
	}
	return plain
}()

// appendJSON appends s as a JSON string that encoding/json would write without
// escaping HTML.
func appendJSON(b []byte, s string) []byte {
	plain := true
	for i := 0; plain && i < len(s); i++ {
		plain = plainByte[s[i]]
	}
	if plain {
		return append(append(append(b, '"'), s...), '"')
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return append(b, `""`...) // a string always encodes
	}
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

// entry writes all of e that counting and proving need, but for what is in its
// rest, of which it writes the hash. asked is the approval that it asks for, or
// nil.
func (r *record) entry(e *Entry, asked *Approval) {
	var none Approval
	if asked == nil {
		asked = &none
	}
	r.text("agent", e.Agent)
	r.text("approval", string(e.ApprovalID))
	texts(r, "approvers", asked.Approvers)
	texts(r, "budgets", e.Budgets)
	if !e.Slot.IsZero() {
		r.text("challenge", e.ChallengeID)
	}
	r.flag("chat", asked.Chat)
	r.number("cost", int64(e.Cost))
	r.instant("expires", asked.ExpiresAt)
	r.hash("fingerprint", &e.Fingerprint)
	r.units("gas", e.Gas)
	r.text("host", e.Host)
	r.flag("override", asked.Override)
	if !e.Slot.IsZero() {
		r.text("owner", e.Owner)
	}
	r.hash("path", &e.Path)
	r.hash("policy", &e.Policy)
	if len(asked.Approvers) > 0 {
		r.number("quorum", int64(asked.Quorum))
	}
	r.codes("reasons", e.Reasons)
	rest := e.rest()
	r.hash("rest", &rest)
	r.text("run", e.Run)
	r.flag("shared", e.Shared)
	r.text("slot", e.SlotKey())
	r.hash("terms", &e.TermsHash)
	r.instant("valid_before", e.ValidBefore)
	r.flag("watched", e.Watched)
}

// carry writes a transaction that was permitted: its fees and its limit as text,
// since they may be more than JSON's readers count to.
func (r *record) carry(c *payment.Carry) {
	r.units("carry_data", c.DataFee)
	r.units("carry_fee", payment.UnitsOf(c.MaxFee))
	r.units("carry_gas", payment.UnitsOf(c.GasLimit))
	r.whole("carry_nonce", int64(c.Nonce))
	r.units("carry_tip", payment.UnitsOf(c.MaxTip))
}

// rest is the hash of what decides how e is found, repeated and signed again, and
// is not for an event to tell: the key and the echo among it.
func (e *Entry) rest() payment.Hash {
	var space [512]byte
	b := appendText(space[:0], "canopy.rest.v1")
	b = append(b, e.Payer[:]...)
	b = appendText(b, e.Key)
	b = appendText(b, e.Purpose)
	b = appendText(b, e.Realm)
	b = appendText(b, e.Echo)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Protocol))
	b = binary.BigEndian.AppendUint64(b, uint64(e.DuplicateWindow))
	if e.Resend {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return sha256.Sum256(b)
}

// record is what the event of a change keeps that made e; spent is the instant
// stored.
func (c *Change) record(e *Entry, spent time.Time) []byte {
	r := newRecord(256)
	r.flag("assumed", c.Assumed)
	if c.Carry != nil {
		r.carry(e.carried())
	}
	if c.Variant != nil {
		r.text("challenge", e.ChallengeID)
	}
	if c.Receipt != nil {
		r.text("claim", c.Receipt.Claim.String())
		r.text("code", c.Receipt.Code)
	}
	if c.Fee != nil {
		r.whole("counted", int64(e.Spent))
	}
	r.flag("delivered", c.Delivered)
	if c.Fee != nil {
		r.whole("fee", int64(*c.Fee))
	}
	r.number("http", int64(c.HTTP))
	r.text("note", c.Note)
	if c.Variant != nil {
		rest := e.rest()
		r.hash("rest", &rest)
	}
	r.number("sent", int64(max(c.Sent, 0)))
	if c.Variant != nil {
		r.instant("sign_before", e.SignBefore)
	}
	r.instant("spent", spent)
	if c.Receipt != nil {
		r.text("tx", c.Receipt.TxHash)
	}
	if c.Variant != nil {
		r.instant("valid_before", e.ValidBefore)
	}
	r.text("who", c.Who)
	return r.done()
}

package ledger

import (
	"encoding/hex"
	"encoding/json"

	"github.com/canopy-go/canopy/payment"
)

// eventData is what Replay reads of an event.
type eventData struct {
	Agent       string       `json:"agent"`
	Approval    string       `json:"approval"`
	Approvers   []string     `json:"approvers"`
	Budgets     []string     `json:"budgets"`
	Challenge   string       `json:"challenge"`
	Chat        bool         `json:"chat"`
	Cost        int64        `json:"cost"`
	Expires     int64        `json:"expires"`
	Fingerprint payment.Hash `json:"fingerprint"`
	Host        string       `json:"host"`
	Override    bool         `json:"override"`
	Owner       string       `json:"owner"`
	Path        payment.Hash `json:"path"`
	Policy      payment.Hash `json:"policy"`
	Quorum      int          `json:"quorum"`
	Rest        payment.Hash `json:"rest"`
	Run         string       `json:"run"`
	Shared      bool         `json:"shared"`
	Slot        string       `json:"slot"`
	Terms       payment.Hash `json:"terms"`
	ValidBefore int64        `json:"valid_before"`
	Watched     bool         `json:"watched"`

	Gas        payment.Units `json:"gas"`
	CarryData  payment.Units `json:"carry_data"`
	CarryFee   payment.Units `json:"carry_fee"`
	CarryGas   payment.Units `json:"carry_gas"`
	CarryNonce *uint64       `json:"carry_nonce"`
	CarryTip   payment.Units `json:"carry_tip"`

	Assumed   bool   `json:"assumed"`
	Delivered bool   `json:"delivered"`
	HTTP      int    `json:"http"`
	Note      string `json:"note"`
	Sent      int    `json:"sent"`
	Spent     int64  `json:"spent"`
	Tx        string `json:"tx"`

	Counted    *int64 `json:"counted"`
	SignBefore int64  `json:"sign_before"`

	By      string `json:"by"`
	Comment string `json:"comment"`
	Via     string `json:"via"`
}

// read takes apart what an event keeps, as encoding/json would. What record
// writes it reads itself, but for text that is not plain; all else it leaves to
// encoding/json, and so has no say in what is an error.
func (d *eventData) read(data []byte) error {
	*d = eventData{}
	p := plainData{rest: string(data)}
	if p.object(d) {
		return nil
	}
	*d = eventData{}
	return json.Unmarshal(data, d)
}

// field reads the value of a key; false where that is not plain.
func (d *eventData) field(key string, p *plainData) bool {
	switch key {
	case "agent":
		return p.text(&d.Agent)
	case "approval":
		return p.text(&d.Approval)
	case "approvers":
		return p.texts(&d.Approvers)
	case "assumed":
		return p.flag(&d.Assumed)
	case "budgets":
		return p.texts(&d.Budgets)
	case "by":
		return p.text(&d.By)
	case "carry_data":
		return p.units(&d.CarryData)
	case "carry_fee":
		return p.units(&d.CarryFee)
	case "carry_gas":
		return p.units(&d.CarryGas)
	case "carry_nonce":
		var n int64
		ok := p.number(&n) && n >= 0
		u := uint64(n)
		d.CarryNonce = &u
		return ok
	case "carry_tip":
		return p.units(&d.CarryTip)
	case "challenge":
		return p.text(&d.Challenge)
	case "chat":
		return p.flag(&d.Chat)
	case "comment":
		return p.text(&d.Comment)
	case "cost":
		return p.number(&d.Cost)
	case "counted":
		d.Counted = new(int64)
		return p.number(d.Counted)
	case "delivered":
		return p.flag(&d.Delivered)
	case "expires":
		return p.number(&d.Expires)
	case "fingerprint":
		return p.hash(&d.Fingerprint)
	case "gas":
		return p.units(&d.Gas)
	case "host":
		return p.text(&d.Host)
	case "http":
		return p.whole(&d.HTTP)
	case "note":
		return p.text(&d.Note)
	case "override":
		return p.flag(&d.Override)
	case "owner":
		return p.text(&d.Owner)
	case "path":
		return p.hash(&d.Path)
	case "policy":
		return p.hash(&d.Policy)
	case "quorum":
		return p.whole(&d.Quorum)
	case "rest":
		return p.hash(&d.Rest)
	case "run":
		return p.text(&d.Run)
	case "sent":
		return p.whole(&d.Sent)
	case "shared":
		return p.flag(&d.Shared)
	case "sign_before":
		return p.number(&d.SignBefore)
	case "slot":
		return p.text(&d.Slot)
	case "spent":
		return p.number(&d.Spent)
	case "terms":
		return p.hash(&d.Terms)
	case "tx":
		return p.text(&d.Tx)
	case "valid_before":
		return p.number(&d.ValidBefore)
	case "via":
		return p.text(&d.Via)
	case "watched":
		return p.flag(&d.Watched)
	}
	return p.other()
}

// plainData is what is left to read of an object of the plainest JSON: no
// spaces, no escapes, ASCII, numbers that an int64 surely holds, keys of small
// letters. Its methods go past a value, or report false where it is not plain.
type plainData struct{ rest string }

// object reads all of one into d, to the end of the data.
func (p *plainData) object(d *eventData) bool {
	if !p.skip("{") {
		return false
	}
	for more := p.rest != "}"; more; more = p.skip(",") {
		key, ok := p.key()
		if !ok || !d.field(key, p) {
			return false
		}
	}
	return p.rest == "}"
}

func (p *plainData) skip(s string) bool {
	if len(p.rest) < len(s) || p.rest[:len(s)] != s {
		return false
	}
	p.rest = p.rest[len(s):]
	return true
}

// key goes past a key and its colon. One of other bytes than these may be one
// of ours to encoding/json, which folds cases.
func (p *plainData) key() (key string, ok bool) {
	if !p.skip(`"`) {
		return "", false
	}
	i := 0
	for i < len(p.rest) && (p.rest[i] >= 'a' && p.rest[i] <= 'z' || p.rest[i] == '_') {
		i++
	}
	key, p.rest = p.rest[:i], p.rest[i:]
	return key, p.skip(`":`)
}

func (p *plainData) text(to *string) bool {
	if !p.skip(`"`) {
		return false
	}
	i := 0
	for i < len(p.rest) && plainByte[p.rest[i]] {
		i++
	}
	*to, p.rest = p.rest[:i], p.rest[i:]
	return p.skip(`"`)
}

// texts reads a list of at least one.
func (p *plainData) texts(to *[]string) bool {
	*to = nil
	if !p.skip("[") {
		return false
	}
	for {
		var s string
		if !p.text(&s) {
			return false
		}
		*to = append(*to, s)
		if p.skip("]") {
			return true
		}
		if !p.skip(",") {
			return false
		}
	}
}

func (p *plainData) hash(to *payment.Hash) bool {
	var s string
	if !p.text(&s) || len(s) != 2*len(to) {
		return false
	}
	var digits [2 * len(to)]byte
	copy(digits[:], s)
	_, err := hex.Decode(to[:], digits[:])
	return err == nil
}

func (p *plainData) units(to *payment.Units) bool {
	var s string
	if !p.text(&s) {
		return false
	}
	u, err := payment.ParseUnits(s)
	*to = u
	return err == nil
}

func (p *plainData) number(to *int64) bool {
	negative := p.skip("-")
	n, i := int64(0), 0
	for i < len(p.rest) && p.rest[i] >= '0' && p.rest[i] <= '9' {
		if i++; i > 18 {
			return false
		}
		n = n*10 + int64(p.rest[i-1]-'0')
	}
	if i == 0 || p.rest[0] == '0' && (i > 1 || negative) {
		return false
	}
	if negative {
		n = -n
	}
	*to, p.rest = n, p.rest[i:]
	return true // what follows it is looked at next: a comma, or the end
}

func (p *plainData) whole(to *int) bool {
	var n int64
	ok := p.number(&n)
	*to = int(n)
	return ok && int64(*to) == n
}

func (p *plainData) flag(to *bool) bool {
	*to = p.skip("true")
	return *to || p.skip("false")
}

// other goes past a value that nobody reads.
func (p *plainData) other() bool {
	var s string
	var n int64
	var on bool
	if !p.skip("[") {
		return p.text(&s) || p.flag(&on) || p.number(&n)
	}
	for p.text(&s) {
		if p.skip("]") {
			return true
		}
		if !p.skip(",") {
			return false
		}
	}
	return false
}

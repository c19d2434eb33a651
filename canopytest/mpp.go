package canopytest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/canopy-go/canopy/payment"
)

// Protocol is how a Seller is paid. Two of them added up are both at once.
type Protocol uint8

const (
	// X402 is the protocol of x402, in the seller's Version. It is the default.
	X402 Protocol = 1 << iota
	// MPP is the Payment authentication scheme, as mppx 0.11 serves it:
	// tempo/charge on Tempo networks, and evm/charge by EIP-3009 authorization on
	// others. A seller of both protocols asks for x402 there instead.
	MPP
)

// MPPConfig says how a seller of MPP asks. The zero value asks as mppx does.
type MPPConfig struct {
	Realm    string        // default the host of the request
	Lifetime time.Duration // of a challenge. Default 5 min
	Opaque   map[string]string

	// Header is the field that credentials are asked for in. Default
	// Authorization.
	Header string

	// Sponsor pays the fees of its buyers on Tempo: feePayer.
	Sponsor bool

	// Modes are the supportedModes stated: pull, push. Default none, which means
	// both.
	Modes []string

	// Digest binds challenges to the request's body.
	Digest bool

	// NoChain leaves the chain out of challenges.
	NoChain bool

	// Session puts an offer of tempo/session before the charges.
	Session bool

	// Lines puts each challenge on a header line of its own.
	Lines bool

	// ProofOnce takes each proof of a charge of zero once; else it serves until
	// it expires.
	ProofOnce bool

	// Wait is how long the seller waits, by the chain's clock, for a transaction
	// to be mined. Default 10 s.
	Wait time.Duration
}

// Split is a part of a charge that goes to somebody else.
type Split struct {
	To    payment.Address
	Price payment.USD
	Memo  *[32]byte
}

// mppChallenge is one challenge, by its parameters as text.
type mppChallenge struct {
	id, realm, method, intent, request, expires, digest, description, opaque, header string
}

// mppSecret authenticates the ids of challenges.
var mppSecret = []byte("canopytest secret of every seller")

// seal is the id that c must have.
func (c *mppChallenge) seal() string { return c.sealWith(mppSecret) }

func (c *mppChallenge) sealWith(secret []byte) string {
	slots := []string{c.realm, c.method, c.intent, c.request, c.expires, c.digest}
	if c.header != "" {
		slots = append(slots, c.header)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(strings.Join(append(slots, c.opaque), "|")))
	return b64(mac.Sum(nil))
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// params are the parameters in the order in which mppx writes them.
func (c *mppChallenge) params() [][2]string {
	all := [][2]string{
		{"id", c.id}, {"realm", c.realm}, {"method", c.method}, {"intent", c.intent}, {"request", c.request},
		{"expires", c.expires}, {"digest", c.digest}, {"description", c.description}, {"opaque", c.opaque}, {"header", c.header},
	}
	out := all[:0]
	for i, p := range all {
		if i < 5 || p[1] != "" {
			out = append(out, p)
		}
	}
	return out
}

// String is c as it stands in WWW-Authenticate.
func (c *mppChallenge) String() string {
	var b strings.Builder
	b.WriteString("Payment ")
	for i, p := range c.params() {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p[0])
		b.WriteByte('=')
		b.WriteString(quoteHeader(p[1]))
	}
	return b.String()
}

// quoteHeader is s as a quoted string of ISO-8859-1, with what that does not
// have, and control characters, as \u and four digits.
func quoteHeader(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, u := range utf16.Encode([]rune(s)) {
		switch {
		case u == '"' || u == '\\':
			b.WriteByte('\\')
			b.WriteByte(byte(u))
		case u > 0xff || u < 0x20 || u >= 0x7f && u < 0xa0:
			b.WriteString(`\u`)
			b.WriteString(strconv.FormatUint(0x10000|uint64(u), 16)[1:])
		default:
			b.WriteByte(byte(u))
		}
	}
	b.WriteByte('"')
	return b.String()
}

// challengesMPP are those of x's terms, each with an id that no other has.
func (x *Exchange) challengesMPP() []mppChallenge {
	var out []mppChallenge
	for i := range x.accepts {
		if q := &x.accepts[i]; x.charges(q) {
			if x.seller.config.MPP.Session && len(out) == 0 && q.chain.tempo.on {
				out = append(out, x.challengeOf(q, "session"))
			}
			out = append(out, x.challengeOf(q, "charge"))
		}
	}
	return out
}

// charges reports whether q is a charge of MPP, and not terms of x402.
func (x *Exchange) charges(q *requirement) bool { return x.seller.charges(q) }

func (s *Seller) charges(q *requirement) bool {
	return s.protocol == MPP || s.protocol&MPP != 0 && q.chain.tempo.on
}

func (x *Exchange) challengeOf(q *requirement, intent string) mppChallenge {
	c := &x.seller.config.MPP
	x.seller.mu.Lock()
	x.seller.issued++
	n := x.seller.issued
	x.seller.mu.Unlock()
	// Another millisecond makes another id where the clock stands still.
	expires := q.chain.clock.Now().Add(c.Lifetime + time.Duration(n%10_000)*time.Millisecond)
	out := mppChallenge{
		realm: x.realm(), method: q.method(), intent: intent, request: b64(jcs(q.request(intent))),
		expires: expires.UTC().Format("2006-01-02T15:04:05.000Z"), description: x.route.Description, header: c.Header,
	}
	if c.Digest {
		sum := sha256.Sum256(x.Body)
		out.digest = "sha-256=" + base64.StdEncoding.EncodeToString(sum[:])
	}
	if len(c.Opaque) > 0 {
		opaque := map[string]any{}
		for k, v := range c.Opaque {
			opaque[k] = v
		}
		out.opaque = b64(jcs(opaque))
	}
	out.id = out.seal()
	return out
}

func (x *Exchange) realm() string {
	if r := x.seller.config.MPP.Realm; r != "" {
		return r
	}
	return x.Request.Host
}

func (q *requirement) method() string {
	if q.chain.tempo.on {
		return "tempo"
	}
	return "evm"
}

// request is the request of q's challenge.
func (q *requirement) request(intent string) map[string]any {
	details := map[string]any{}
	if q.stated > 0 {
		details["chainId"] = q.stated
	}
	out := map[string]any{
		"amount": q.amount.String(), "currency": q.asset.Address.Lower(), "recipient": q.payTo.Lower(), "methodDetails": details,
	}
	if q.externalID != "" {
		out["externalId"] = q.externalID
	}
	if q.note != "" {
		out["description"] = q.note
	}
	if !q.chain.tempo.on {
		details["credentialTypes"] = []any{"authorization"}
		details["decimals"] = uint64(q.asset.Decimals)
		return out
	}
	if intent == "session" {
		details["escrowContract"] = payment.Address{0x4d, 0x50, 0x50}.Lower()
		details["sessionProtocol"] = "v2"
		out["unitType"] = "request"
		return out
	}
	if q.sponsored {
		details["feePayer"] = true
	}
	if q.memo != nil {
		details["memo"] = hex0x(q.memo[:])
	}
	if len(q.modes) > 0 {
		modes := []any{}
		for _, m := range q.modes {
			modes = append(modes, m)
		}
		details["supportedModes"] = modes
	}
	var splits []any
	for _, s := range q.splits {
		split := map[string]any{"amount": s.amount.String(), "recipient": s.to.Lower()}
		if s.memo != nil {
			split["memo"] = hex0x(s.memo[:])
		}
		splits = append(splits, split)
	}
	if len(splits) > 0 {
		details["splits"] = splits
	}
	return out
}

// due are the transfers that q asks for, the payee's own first.
func (q *requirement) due() []TempoTransfer {
	rest := q.amount
	var out []TempoTransfer
	for _, s := range q.splits {
		rest, _ = rest.Sub(s.amount)
		t := TempoTransfer{Token: q.asset.Address, To: s.to, Amount: s.amount}
		if s.memo != nil {
			t.Memo, t.HasMemo = *s.memo, true
		}
		out = append(out, t)
	}
	return append([]TempoTransfer{{Token: q.asset.Address, To: q.payTo, Amount: rest}}, out...)
}

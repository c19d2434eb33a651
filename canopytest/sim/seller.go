package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// seller is one host on the network, and how it misbehaves.
type seller struct {
	w     *world
	host  string
	speak []protocol // one, or two side by side
	to    payment.Address
	price payment.USD
	fee   payment.USD // what paying it costs beside, on an EVM chain
	walk  payment.USD // its price rises by this at each request, and falls back
	asked int
	valid time.Duration // the maxTimeoutSeconds that it states
	lasts time.Duration // how long its challenges of MPP last

	sponsor bool // on Tempo it pays the fees
	push    bool // on Tempo it wants to be shown a transaction
	splits  int  // how many others get a part of what is paid on Tempo
	sticks  bool // a second challenge is the first one again

	manners []manner // what it does with payments, as often as it stands there
	harvest []*taken // what it was handed and did not settle
}

// taken is a payment that a seller was handed.
type taken struct {
	spend *spend
	late  bool // it wants to settle it at the last second
}

// manner is one way to answer a payment.
type manner uint8

const (
	honest             manner = iota
	sayAgain                  // 402 with the same terms; it keeps the bytes
	settleAgain               // settles, and 402 with the same terms
	sayFailed                 // says that it did not settle, which is true as yet
	settleSayFailed           // settles, and says that it did not
	dropBefore                // no answer, nothing settled
	dropAfter                 // no answer, and settled
	broken                    // 500, nothing settled
	settleBroken              // 500 with a receipt
	settleBrokenSilent        // 500 without one
	giveAway                  // delivers without settling or a word of it
	settleSilent              // settles and delivers without a receipt
	forge                     // delivers with a receipt of nothing
	dearer                    // 402 with another price
	elsewhere                 // 402 for another payee
	sayUsed                   // says that the nonce is used, which is a lie
	pending                   // broadcasts, and says that it is not mined yet
	slow                      // honest, after a minute or so
)

var mannerNames = [...]string{"honest", "402 again", "settles, 402 again", "says failed", "settles, says failed", "drops before",
	"drops after settling", "500", "500 and a receipt", "settles, 500", "gives away", "settles, no receipt", "forges a receipt",
	"dearer", "other payee", "says used", "pending", "slow"}

func (m manner) String() string { return mannerNames[m] }

// terms are what s asks now at a path. What begins with /who costs nothing, and
// is answered by a proof.
func (s *seller) terms(path string) terms {
	price := s.price
	if s.walk > 0 {
		price += s.walk * payment.USD(s.asked%4)
	}
	s.asked++
	ask := terms{
		to: s.to, timeout: s.valid, lasts: s.lasts, sponsored: s.sponsor, push: s.push, realm: s.host,
		challenge: fmt.Sprintf("%s-%d", s.host, s.asked),
	}
	ask.amount, _ = s.speak[0].Chain().asset.Units(price)
	if strings.HasPrefix(path, "/who") {
		ask.amount, ask.sponsored, ask.push = payment.Units{}, false, false
		return ask
	}
	for i := range s.splits {
		ask.splits = append(ask.splits, payment.Recipient{Address: canopytest.Address(fmt.Sprintf("partner %d", i)), Amount: payment.UnitsOf(5_000)})
	}
	return ask
}

// answer is what came back over the wire.
type answer struct {
	status int
	header http.Header
	body   string
	lost   bool          // the connection broke
	wait   time.Duration // before it comes
}

// challenge is the answer that states these terms by every protocol of s that
// can.
func (s *seller) challenge(out *answer, url string, ask terms, code string) {
	out.status = http.StatusPaymentRequired
	for _, p := range s.speak {
		if p.Chain().tempo || !ask.amount.IsZero() {
			p.Challenge(out.header, url, ask, code)
		}
	}
	if s.w.chance(12) {
		out.header.Set("Retry-After", fmt.Sprint(s.w.rng.IntN(40)))
	}
}

// read is the payment on a request, and its protocol; nil where there is none.
func (w *world) read(h http.Header) (*spend, protocol) {
	for _, p := range w.protocols {
		if s, ok := p.Read(h); ok {
			return s, p
		}
	}
	return nil, nil
}

// serve answers one request.
func (s *seller) serve(t *task, req *http.Request) answer {
	w := s.w
	out := answer{status: http.StatusOK, header: http.Header{}}
	url, path := req.URL.String(), req.URL.Path
	if strings.HasPrefix(path, "/free") {
		return out
	}
	spend, speak := w.read(req.Header)
	if spend == nil {
		if w.chance(60) {
			w.note("%s: %s drops the request", t, s.host)
			return answer{lost: true}
		}
		s.challenge(&out, url, s.terms(path), "")
		return out
	}
	m := s.manners[w.rng.IntN(len(s.manners))]
	w.note("%s: %s: %s", t, s.host, m)
	s.pay(&out, m, url, path, spend, speak)
	return out
}

// settled is what s moved and by what, in the chain as it stands; false where
// it is in no block, or failed there.
func (w *world) settled(s *spend) (hash string, is bool) {
	if s.proof {
		return "", true
	}
	r := w.oracle.payment(s)
	if r == nil || r.tx == nil || r.tx.r != r || r.tx.failed || s.hash != "" && r.tx.name != s.hash || s.hash == "" && r.tx.spend.sig != s.sig {
		return "", false
	}
	return r.tx.hash(), true
}

// pay answers a payment in that manner.
func (s *seller) pay(out *answer, m manner, url, path string, a *spend, speak protocol) {
	w := s.w
	again := func() terms {
		ask := s.terms(path)
		if s.sticks && a.challenge != "" {
			ask.challenge = a.challenge
		}
		return ask
	}
	refuse := func(code string) { // sellers of MPP state their terms again
		speak.Receipt(out, a, "", code)
		if speak.Chain().tempo {
			s.challenge(out, url, again(), "")
		}
	}
	receipt := func() {
		hash, _ := w.settled(a)
		speak.Receipt(out, a, hash, "")
	}
	switch m {
	case settleAgain, settleSayFailed, dropAfter, settleBroken, settleBrokenSilent, settleSilent, honest, slow:
		a.chain.broadcast(a, nextBlock)
	case pending:
		a.chain.broadcast(a, sometime)
	default:
		s.keep(a)
	}
	switch m {
	case slow, honest:
		if m == slow {
			out.wait = time.Duration(20+w.rng.IntN(80)) * time.Second
		}
		if _, is := w.settled(a); !is {
			refuse("settlement_pending")
			return
		}
		receipt()
	case sayAgain, settleAgain:
		s.challenge(out, url, again(), "")
	case sayFailed, settleSayFailed:
		refuse("invalid_exact_evm_transaction_failed")
	case dropBefore, dropAfter:
		out.lost = true
	case broken, settleBrokenSilent:
		out.status = http.StatusInternalServerError
	case settleBroken:
		out.status = http.StatusInternalServerError
		receipt()
	case forge:
		speak.Receipt(out, a, "0x"+strings.Repeat("ab", 32), "")
	case dearer:
		ask := again()
		ask.amount, _ = ask.amount.Add(payment.UnitsOf(10_000))
		s.challenge(out, url, ask, "")
	case elsewhere:
		ask := again()
		ask.to = canopytest.Address("elsewhere")
		s.challenge(out, url, ask, "")
	case sayUsed:
		if speak.Chain().tempo {
			refuse("already_used")
		} else {
			s.challenge(out, url, again(), "invalid_exact_evm_nonce_already_used")
		}
	case pending:
		refuse("settlement_pending")
	}
}

func (s *seller) keep(a *spend) {
	if a.sig == "" || a.proof {
		return // nothing that moves
	}
	for _, h := range s.harvest {
		if h.spend.sig == a.sig {
			return
		}
	}
	s.harvest = append(s.harvest, &taken{a, s.w.chance(2)})
}

// strike has s settle one of what it was handed, perhaps at the last second.
func (s *seller) strike() bool {
	w := s.w
	for i, h := range s.harvest {
		left := h.spend.expires().Sub(w.now)
		last := 2 * time.Second
		if h.spend.chain.tempo {
			last += poolMargin
		}
		if h.late && left > last || !h.late && left > 0 && !w.chance(3) {
			continue
		}
		s.harvest = append(s.harvest[:i:i], s.harvest[i+1:]...)
		if left <= 0 && !w.chance(4) && h.spend.chain.halted.IsZero() {
			return false // too late, and it knows
		}
		w.note("%s settles %s, %v before it ends", s.host, w.oracle.nameOf(w.oracle.payment(h.spend)), left.Round(time.Second))
		h.spend.chain.broadcast(h.spend, nextBlock)
		return true
	}
	return false
}

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
	to    payment.Address
	price payment.USD
	fee   payment.USD // what paying it costs beside
	walk  payment.USD // its price rises by this at each request, and falls back
	asked int
	valid time.Duration // the maxTimeoutSeconds that it states

	manners []manner // what it does with payments, as often as it stands there
	harvest []*taken // what it was handed and did not settle
}

// taken is an authorization that a seller was handed.
type taken struct {
	auth canopytest.Authorization
	late bool // it wants to settle it at the last second
}

// manner is one way to answer a payment.
type manner uint8

const (
	honest             manner = iota
	again                     // 402 with the same terms; it keeps the bytes
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

// terms are what s asks now.
func (s *seller) terms() terms {
	price := s.price
	if s.walk > 0 {
		price += s.walk * payment.USD(s.asked%4)
	}
	units, _ := s.w.chain.asset.Units(price)
	return terms{to: s.to, amount: units, timeout: s.valid}
}

// answer is what came back over the wire.
type answer struct {
	status int
	header http.Header
	lost   bool          // the connection broke
	wait   time.Duration // before it comes
}

// serve answers one request.
func (s *seller) serve(t *task, req *http.Request) answer {
	w := s.w
	s.asked++
	url := req.URL.String()
	if strings.HasPrefix(req.URL.Path, "/free") {
		return answer{status: http.StatusOK, header: http.Header{}}
	}
	auth, paid := w.protocol.Read(req.Header)
	if !paid {
		if w.chance(60) {
			w.note("%s: %s drops the request", t, s.host)
			return answer{lost: true}
		}
		status, h := w.protocol.Challenge(url, s.terms(), "")
		return answer{status: status, header: h}
	}
	m := s.manners[w.rng.IntN(len(s.manners))]
	w.note("%s: %s: %s", t, s.host, m)
	return s.pay(m, url, auth)
}

// pay answers a payment in that manner.
func (s *seller) pay(m manner, url string, a canopytest.Authorization) answer {
	w := s.w
	out := answer{status: http.StatusOK, header: http.Header{}}
	challenge := func(ask terms, code string) answer {
		status, h := w.protocol.Challenge(url, ask, code)
		return answer{status: status, header: h}
	}
	receipt := func(code string, settled bool) {
		hash := ""
		if tx := w.chain.uses[a.Nonce]; settled && tx != nil && !tx.outside() {
			hash = fmt.Sprintf("0x%x", tx.hash())
		}
		w.protocol.Receipt(out.header, a.From, hash, code)
	}
	switch m {
	case settleAgain, settleSayFailed, dropAfter, settleBroken, settleBrokenSilent, settleSilent, honest, slow:
		w.chain.broadcast(a, nextBlock)
	case pending:
		w.chain.broadcast(a, sometime)
	default:
		s.keep(a)
	}
	switch m {
	case slow, honest:
		if m == slow {
			out.wait = time.Duration(20+w.rng.IntN(80)) * time.Second
		}
		if w.chain.uses[a.Nonce] == nil {
			out.status = http.StatusPaymentRequired
			receipt("settlement_pending", false)
			return out
		}
		receipt("", true)
	case again, settleAgain:
		return challenge(s.terms(), "")
	case sayFailed, settleSayFailed:
		out.status = http.StatusPaymentRequired
		receipt("invalid_exact_evm_transaction_failed", false)
	case dropBefore, dropAfter:
		out.lost = true
	case broken, settleBrokenSilent:
		out.status = http.StatusInternalServerError
	case settleBroken:
		out.status = http.StatusInternalServerError
		receipt("", true)
	case forge:
		w.protocol.Receipt(out.header, a.From, "0x"+strings.Repeat("ab", 32), "")
	case dearer:
		ask := s.terms()
		ask.amount, _ = ask.amount.Add(payment.UnitsOf(10_000))
		return challenge(ask, "")
	case elsewhere:
		ask := s.terms()
		ask.to = canopytest.Address("elsewhere")
		return challenge(ask, "")
	case sayUsed:
		return challenge(s.terms(), "invalid_exact_evm_nonce_already_used")
	case pending:
		out.status = http.StatusPaymentRequired
		receipt("settlement_pending", false)
	}
	return out
}

func (s *seller) keep(a canopytest.Authorization) {
	for _, h := range s.harvest {
		if h.auth.Nonce == a.Nonce && string(h.auth.Signature) == string(a.Signature) {
			return
		}
	}
	s.harvest = append(s.harvest, &taken{a, s.w.chance(2)})
}

// strike has s settle one of what it was handed, perhaps at the last second.
func (s *seller) strike() bool {
	w := s.w
	for i, h := range s.harvest {
		left := h.auth.Expires().Sub(w.now)
		if h.late && left > 2*time.Second || !h.late && left > 0 && !w.chance(3) {
			continue
		}
		s.harvest = append(s.harvest[:i:i], s.harvest[i+1:]...)
		if left <= 0 && !w.chance(4) && w.chain.halted.IsZero() {
			return false // too late, and it knows
		}
		w.note("%s settles %s, %v before it ends", s.host, w.oracle.nameOf(h.auth.Nonce), left.Round(time.Second))
		w.chain.broadcast(h.auth, nextBlock)
		return true
	}
	return false
}

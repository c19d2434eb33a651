package canopytest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Misstep is one way in which a Facilitator goes wrong with a request.
type Misstep uint8

// The missteps. The zero Misstep is none.
const (
	NoMisstep       Misstep = iota
	LoseBefore              // hangs up before it settles
	LoseAfter               // settles, and hangs up
	FailAfter               // settles, and answers 500 without a word
	RefuseAfter             // settles, and says that it failed
	Refuse                  // says that it failed, and keeps the authorization
	ClaimOnly               // says that it settled, and keeps the authorization
	ClaimOther              // settles, and tells of another payer's payment
	SayUsed                 // says that the nonce is used, and keeps the authorization
	SayPending              // broadcasts, and does not wait for the block
	AnswerHTML              // settles, and answers a page
	AnswerHuge              // settles, and answers megabytes
	AnswerError             // answers success under an error status, and keeps the authorization
	RedirectAway            // sends the request elsewhere
	Stall                   // does not answer until the client gives up
	RefuseBadStatus         // refuses under an error status, as some do
)

// FacilitatorConfig says what a Facilitator is like.
type FacilitatorConfig struct {
	// Missteps are those of the first requests to /settle, in order; it is
	// honest afterwards.
	Missteps []Misstep

	// Header is what every request must carry; without it the answer is 401.
	Header http.Header

	// Wait is how long it takes before it settles, by the chain's clock.
	Wait time.Duration
}

// Facilitator is an http.Handler that settles x402 payments on a Chain, as
// services with the API of @x402/core do: POST /verify, POST /settle, GET
// /supported. It is safe for concurrent use.
type Facilitator struct {
	chain  *Chain
	config FacilitatorConfig
	kept   *Harvest

	mu      sync.Mutex
	settles int
	bodies  []string
}

// NewFacilitator returns a facilitator that settles on chain.
func NewFacilitator(chain *Chain, c FacilitatorConfig) *Facilitator {
	return &Facilitator{chain: chain, config: c, kept: &Harvest{chain: chain}}
}

// Start serves f over plain HTTP on a loopback port until the test ends, and
// returns its URL.
func (f *Facilitator) Start(tb TB) string {
	tb.Helper()
	server := httptest.NewServer(f)
	tb.Cleanup(server.Close)
	return server.URL
}

// Harvest is every authorization that it was handed, settled or not.
func (f *Facilitator) Harvest() *Harvest { return f.kept }

// Settles is how many requests reached /settle.
func (f *Facilitator) Settles() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.settles
}

// Bodies are the bodies of the requests to /settle, in order.
func (f *Facilitator) Bodies() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.bodies...)
}

// SetMissteps replaces the missteps, from the next request on.
func (f *Facilitator) SetMissteps(m ...Misstep) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.config.Missteps = append(make([]Misstep, f.settles), m...)
}

func (f *Facilitator) begin(body string) Misstep {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settles++
	f.bodies = append(f.bodies, body)
	if f.settles <= len(f.config.Missteps) {
		return f.config.Missteps[f.settles-1]
	}
	return NoMisstep
}

// ServeHTTP is the API.
func (f *Facilitator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name := range f.config.Header {
		if r.Header.Get(name) != f.config.Header.Get(name) {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	switch {
	case err != nil:
	case r.Method == http.MethodGet && r.URL.Path == "/supported":
		writeObject(w, http.StatusOK, object{{"kinds", []object{{{"x402Version", 2}, {"scheme", "exact"}, {"network", string(f.chain.id)}}}}})
	case r.Method == http.MethodPost && r.URL.Path == "/verify":
		f.verify(w, body)
	case r.Method == http.MethodPost && r.URL.Path == "/settle":
		f.settle(w, r, body)
	default:
		http.NotFound(w, r)
	}
}

// asked is a request to /verify or /settle.
type asked struct {
	auth     Authorization
	to       payment.Address
	amount   payment.Units
	asset    payment.Asset
	problem  string
	readable bool
}

// read reads a request as @x402/core does.
func (f *Facilitator) read(body []byte) (a asked) {
	var doc struct {
		Version int                        `json:"x402Version"`
		Payload map[string]json.RawMessage `json:"paymentPayload"`
		Terms   struct {
			Scheme, Network, Amount, Asset, PayTo string
			MaxTimeoutSeconds                     int
			Extra                                 struct{ Name, Version string }
		} `json:"paymentRequirements"`
	}
	if json.Unmarshal(body, &doc) != nil || doc.Version != 2 || doc.Terms.MaxTimeoutSeconds <= 0 {
		a.problem = "invalid_payload"
		return a
	}
	token, err := payment.ParseAddress(doc.Terms.Asset)
	asset, known := f.chain.assets.Lookup(f.chain.id, token)
	payload := &payload{fields: doc.Payload, version: value(doc.Payload["x402Version"])}
	auth, err2 := payload.authorization(token)
	to, err3 := payment.ParseAddress(doc.Terms.PayTo)
	amount, err4 := payment.ParseUnits(doc.Terms.Amount)
	switch {
	case errors.Join(err, err2, err3, err4) != nil || payload.version != 2.0:
		a.problem = "invalid_payload"
		return a
	case doc.Terms.Scheme != "exact":
		a.problem = "unsupported_scheme"
	case doc.Terms.Network != string(f.chain.id) || !known:
		a.problem = "invalid_network"
	case doc.Terms.Extra.Name != asset.Name || doc.Terms.Extra.Version != asset.Version:
		a.problem = "missing_eip712_domain"
	}
	a.auth, a.to, a.amount, a.asset, a.readable = auth, to, amount, asset, true
	return a
}

// opinion is empty, or why a cannot be settled, in the facilitator's words.
func (f *Facilitator) opinion(a asked) string {
	now := f.chain.clock.Now().Unix()
	switch {
	case a.problem != "":
		return a.problem
	case !a.auth.signedBy(a.asset, true):
		return "invalid_exact_evm_signature"
	case a.auth.To != a.to:
		return "invalid_exact_evm_recipient_mismatch"
	case a.auth.Value != a.amount:
		return "invalid_exact_evm_payload_authorization_value_mismatch"
	case a.auth.ValidBefore.Cmp(seconds(now+6)) < 0:
		return "invalid_exact_evm_payload_authorization_valid_before"
	}
	switch err := f.chain.Simulate(a.auth); {
	case err == nil:
		return ""
	case errors.Is(err, ErrNonceUsed):
		return "invalid_exact_evm_nonce_already_used"
	case errors.Is(err, ErrBalance):
		return "invalid_exact_evm_insufficient_balance"
	}
	return "invalid_exact_evm_transaction_simulation_failed"
}

func (f *Facilitator) verify(w http.ResponseWriter, body []byte) {
	a := f.read(body)
	if why := f.opinion(a); why != "" {
		writeObject(w, http.StatusOK, object{{"isValid", false}, {"invalidReason", why}, {"payer", a.auth.From.String()}})
		return
	}
	writeObject(w, http.StatusOK, object{{"isValid", true}, {"payer", a.auth.From.String()}})
}

func (f *Facilitator) settle(w http.ResponseWriter, r *http.Request, body []byte) {
	m := f.begin(string(body))
	a := f.read(body)
	if a.readable {
		f.kept.add(Harvested{Authorization: a.auth, Asset: a.asset, Time: f.chain.clock.Now(), chain: f.chain})
	}
	if f.config.Wait > 0 && f.chain.clock.Sleep(r.Context(), f.config.Wait) != nil {
		return
	}
	refused := func(why, tx string) object {
		return object{
			{"success", false}, {"errorReason", why}, {"errorMessage", why}, {"payer", a.auth.From.String()},
			{"transaction", tx}, {"network", string(f.chain.id)},
		}
	}
	settled := func(payer payment.Address, tx string) object {
		return object{{"success", true}, {"payer", payer.String()}, {"transaction", tx}, {"network", string(f.chain.id)}}
	}
	fake := "0x" + strings.Repeat("ab", 32)
	switch m { // those that settle nothing
	case LoseBefore:
		panic(http.ErrAbortHandler)
	case Refuse:
		writeObject(w, http.StatusOK, refused("unexpected_settle_error", ""))
		return
	case RefuseBadStatus:
		writeObject(w, http.StatusBadRequest, refused("invalid_exact_evm_signature", ""))
		return
	case ClaimOnly:
		writeObject(w, http.StatusOK, settled(a.auth.From, fake))
		return
	case AnswerError:
		writeObject(w, http.StatusInternalServerError, settled(a.auth.From, fake))
		return
	case SayUsed:
		writeObject(w, http.StatusOK, refused("invalid_exact_evm_nonce_already_used", ""))
		return
	case RedirectAway:
		http.Redirect(w, r, "http://elsewhere.example/settle", http.StatusTemporaryRedirect)
		return
	case Stall:
		<-r.Context().Done()
		return
	}
	if why := f.opinion(a); why != "" {
		writeObject(w, http.StatusOK, refused(why, ""))
		return
	}
	if m == SayPending {
		writeObject(w, http.StatusOK, refused("settlement_pending", f.chain.Enqueue(a.auth)))
		return
	}
	tx, err := f.chain.Settle(r.Context(), a.auth)
	if err != nil {
		writeObject(w, http.StatusOK, refused("invalid_exact_evm_transaction_failed", tx.Hash))
		return
	}
	switch m {
	case LoseAfter:
		panic(http.ErrAbortHandler)
	case FailAfter:
		http.Error(w, "internal error", http.StatusInternalServerError)
	case RefuseAfter:
		writeObject(w, http.StatusOK, refused("unexpected_settle_error", ""))
	case ClaimOther:
		writeObject(w, http.StatusOK, settled(Address("somebody else"), tx.Hash))
	case AnswerHTML:
		w.Write([]byte("<html><body>settled</body></html>"))
	case AnswerHuge:
		w.Write([]byte(`{"success":true,"x":"` + strings.Repeat("a", 4<<20) + `"}`))
	default:
		writeObject(w, http.StatusOK, settled(a.auth.From, tx.Hash))
	}
}

func writeObject(w http.ResponseWriter, status int, o object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(mustJSON(o))
}

package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/payment"
)

const (
	maxAnswer = 8 << 20 // bytes of one answer
	maxBatch  = 100     // calls of one request
	tries     = 4       // of a read that is put off
)

// Errors that callers branch on.
var (
	ErrUnreachable = errors.New("chain: no node answered")
	ErrWrongChain  = errors.New("chain: the node serves another chain")
	ErrDisagree    = errors.New("chain: the nodes disagree")
	ErrAnswer      = errors.New("chain: not an answer")

	errTooLarge = fmt.Errorf("%w: more than %d bytes", ErrAnswer, maxAnswer)
	errPutOff   = fmt.Errorf("%w: it limits the rate of requests", ErrUnreachable)
	errBatch    = fmt.Errorf("%w: it takes no request of this size", ErrUnreachable)
)

// RPCError is an error that a node answered with.
type RPCError struct {
	Code    int
	Message string // the node's words, cleaned
}

// Error tells the code and the message.
func (e *RPCError) Error() string { return fmt.Sprintf("the node answered %d: %s", e.Code, e.Message) }

// limited reports whether the node asks to be asked later.
func (e *RPCError) limited() bool { return e.Code == -32005 || e.Code == 429 || e.Code == -32029 }

// call is one method call and its answer.
type call struct {
	method string
	params []any
	result any
	err    error
}

// node is one JSON-RPC URL. It prints as its host: the rest may hold a key.
type node struct {
	url     string
	place   string // url as every spelling of it has it
	host    string
	hc      *http.Client
	chain   payment.ChainID
	clock   clock.Clock
	checked atomic.Bool
	batch   atomic.Int64  // calls that it takes in one request
	single  atomic.Bool   // it is asked about each slot by itself
	sent    *atomic.Int64 // bytes of requests and answers
	secrets []string      // what of the URL may be a key
}

func newNode(raw string, chain payment.ChainID, hc *http.Client, c clock.Clock, sent *atomic.Int64) (*node, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("not an http or https URL")
	}
	n := &node{url: raw, place: place(u), host: u.Host, hc: hc, chain: chain, clock: c, sent: sent, secrets: secretsOf(u)}
	n.batch.Store(maxBatch)
	return n, nil
}

// read makes calls that change nothing, in as few requests as it takes. A node
// that asks for patience gets it, within bounds. The error is that of the node
// as a whole; what single calls met is in them.
func (n *node) read(ctx context.Context, calls ...*call) error {
	if !n.checked.Load() {
		var id quantity
		asked := call{method: "eth_chainId", result: &id}
		if err := errors.Join(n.patient(ctx, []*call{&asked}), asked.err); err != nil {
			return err
		}
		if payment.EVMChain(uint64(id)) != n.chain {
			return fmt.Errorf("%w: %s serves %s, not %s", ErrWrongChain, n.host, payment.EVMChain(uint64(id)), n.chain)
		}
		n.checked.Store(true)
	}
	for len(calls) > 0 {
		some := calls[:min(len(calls), int(n.batch.Load()))]
		err := n.patient(ctx, some)
		if len(some) > 1 && refusesBatch(err) {
			n.batch.Store(int64(len(some) / 2))
			continue
		}
		if err != nil {
			return err
		}
		calls = calls[len(some):]
	}
	return nil
}

// refusesBatch reports whether a node may take fewer calls at once.
func refusesBatch(err error) bool {
	var whole *RPCError
	return errors.As(err, &whole) || errors.Is(err, errBatch) || errors.Is(err, errTooLarge)
}

// one makes one call, and returns its error.
func (n *node) one(ctx context.Context, method string, result any, params ...any) error {
	c := &call{method: method, params: params, result: result}
	if err := n.read(ctx, c); err != nil {
		return err
	}
	return c.err
}

// patient sends calls, and again those that were put off.
func (n *node) patient(ctx context.Context, calls []*call) error {
	pause := 200 * time.Millisecond
	for try := 1; ; try++ {
		after, err := n.send(ctx, calls)
		var put []*call
		for _, c := range calls {
			var e *RPCError
			if errors.As(c.err, &e) && e.limited() {
				put = append(put, c)
			}
		}
		if err == nil && len(put) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, errPutOff) {
			return fmt.Errorf("%s: %w", n.host, err)
		}
		if err == nil {
			calls = put
		}
		if try == tries {
			if err != nil {
				return fmt.Errorf("%s: %w", n.host, err)
			}
			return nil // each call has its error
		}
		if err := clock.Sleep(ctx, n.clock, max(pause, min(after, 5*time.Second))); err != nil {
			return err
		}
		pause *= 2
	}
}

type request struct {
	Version string `json:"jsonrpc"`
	ID      int    `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

type response struct {
	ID     *int            `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// send makes one HTTP request of calls, and fills in their answers.
func (n *node) send(ctx context.Context, calls []*call) (after time.Duration, err error) {
	batch := make([]request, len(calls))
	for i, c := range calls {
		c.err = nil
		batch[i] = request{"2.0", i + 1, c.method, c.params}
		if c.params == nil {
			batch[i].Params = []any{}
		}
	}
	body, err := json.Marshal(batch)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("the URL cannot be asked")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := n.hc.Do(req)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnreachable, n.hide(err))
	}
	defer resp.Body.Close()
	wire := &counter{from: resp.Body}
	answer, cut, err := readAnswer(wire, resp.Header.Get("Content-Encoding"))
	n.sent.Add(int64(len(body)) + wire.n)
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
			after = time.Duration(min(s, 60)) * time.Second
		}
		return after, errPutOff
	case resp.StatusCode == http.StatusRequestEntityTooLarge:
		return 0, errBatch
	case err != nil:
		return 0, fmt.Errorf("%w: %w", ErrUnreachable, n.hide(err))
	case cut:
		return 0, errTooLarge
	case resp.StatusCode != http.StatusOK && !json.Valid(answer):
		return 0, fmt.Errorf("%w: status %d", ErrUnreachable, resp.StatusCode)
	}
	return 0, n.fill(calls, answer)
}

// fill gives each call its answer.
func (n *node) fill(calls []*call, answer []byte) error {
	var out []response
	if err := json.Unmarshal(answer, &out); err != nil {
		var single response
		if json.Unmarshal(answer, &single) == nil && single.Error != nil {
			e := &RPCError{single.Error.Code, n.clean(single.Error.Message)}
			if e.limited() {
				return errPutOff
			}
			return e
		}
		return fmt.Errorf("%w: it is not JSON-RPC", ErrAnswer)
	}
	for _, c := range calls {
		c.err = fmt.Errorf("%w: %s was left out", ErrAnswer, c.method)
	}
	seen := make([]bool, len(calls))
	for _, r := range out {
		if r.ID == nil || *r.ID < 1 || *r.ID > len(calls) || seen[*r.ID-1] {
			return fmt.Errorf("%w: an answer to nothing that was asked", ErrAnswer)
		}
		seen[*r.ID-1] = true
		c := calls[*r.ID-1]
		switch {
		case r.Error != nil:
			c.err = &RPCError{r.Error.Code, n.clean(r.Error.Message)}
		case len(r.Result) == 0:
			c.err = fmt.Errorf("%w: %s has no result", ErrAnswer, c.method)
		default:
			if c.err = json.Unmarshal(r.Result, c.result); c.err != nil {
				c.err = fmt.Errorf("%w: %s: %s", ErrAnswer, c.method, n.clean(c.err.Error()))
			}
		}
	}
	return nil
}

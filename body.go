package canopy

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/canopy-go/canopy/internal/bounded"
	"github.com/canopy-go/canopy/payment"
)

const (
	maxReplay = 1 << 20         // bytes of a body that are kept where there is no GetBody
	teeTime   = 2 * time.Second // for the rest of a body that was not all sent when the 402 came
)

// replay can give a request's body again. Where the request has a GetBody that
// is used; else what the transport reads is kept, up to maxReplay.
type replay struct {
	get    func() (io.ReadCloser, error) // nil where there is no body or it is teed
	tee    *bounded.Tee                  // nil where not needed
	length int64
	empty  bool
	proto  int // major version of HTTP that the first answer came in
	sum    [32]byte
	summed bool
}

func newReplay(req *http.Request) *replay {
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		return &replay{empty: true}
	case req.GetBody != nil:
		return &replay{get: req.GetBody, length: req.ContentLength}
	}
	tee := bounded.NewTee(req.Body, maxReplay)
	tee.Hold()
	return &replay{tee: tee, length: req.ContentLength}
}

// release lets go of the caller's body: nothing more of it is wanted.
func (b *replay) release() {
	if b.tee != nil {
		b.tee.Release()
	}
}

func (b *replay) teed() bool { return b.tee != nil }

// first is the request for the first sending: req itself, or a copy whose body
// is kept as it is read.
func (b *replay) first(req *http.Request) *http.Request {
	if b.tee == nil {
		return req
	}
	clone := *req
	clone.Body = b.tee
	return &clone
}

// open returns the body once more, or ErrBodyNotReplayable.
func (b *replay) open() (io.ReadCloser, error) {
	switch {
	case b.empty:
		return http.NoBody, nil
	case b.get != nil:
		body, err := b.get()
		if err != nil {
			return nil, fmt.Errorf("%w: GetBody: %w", ErrBodyNotReplayable, err)
		}
		return body, nil
	}
	kept, whole := b.kept()
	if !whole {
		return nil, ErrBodyNotReplayable
	}
	return io.NopCloser(bytes.NewReader(kept)), nil
}

// kept is a teed body. A seller may answer before all of it was sent; then what
// the transport left is read here, if it comes in time.
func (b *replay) kept() ([]byte, bool) {
	b.tee.Rest(teeTime)
	return b.tee.Kept()
}

// digest is the SHA-256 of the body. It reads the body once.
func (b *replay) digest() ([32]byte, error) {
	if b.empty {
		return emptySum, nil
	}
	if b.summed {
		return b.sum, nil
	}
	body, err := b.open()
	if err != nil {
		return [32]byte{}, err
	}
	defer body.Close()
	h := sha256.New()
	if _, err := io.Copy(h, body); err != nil {
		return [32]byte{}, fmt.Errorf("%w: %w", ErrBodyNotReplayable, err)
	}
	b.sum = [32]byte(h.Sum(nil))
	b.summed = true
	return b.sum, nil
}

var emptySum = sha256.Sum256(nil)

// again is req for one more unpaid sending.
func (b *replay) again(req *http.Request) (*http.Request, error) {
	body, err := b.open()
	if err != nil {
		return nil, err
	}
	clone := *req
	clone.Body = body
	return &clone, nil
}

// paid is req with the authorization on it: a clone, whose header nobody else
// sees, and whose body net/http cannot send twice behind our back.
func (b *replay) paid(req *http.Request, auth payment.Authorization) (*http.Request, error) {
	body, err := b.open()
	if err != nil {
		return nil, err
	}
	clone := req.Clone(req.Context())
	for _, name := range paymentHeaders {
		clone.Header.Del(name)
	}
	clone.Header.Set(auth.Header, auth.Value)
	if clone.Header.Get("Cache-Control") == "" {
		clone.Header.Set("Cache-Control", "no-store")
	}
	clone.Header.Del("Referer")
	clone.GetBody = nil
	clone.ContentLength = 0
	switch {
	case b.empty && (repeats(clone) || b.proto >= 2):
		// An empty body that net/http does not know to be empty is not sent
		// again on a new connection; identity keeps it from being probed.
		clone.Body, clone.TransferEncoding = io.NopCloser(strings.NewReader("")), []string{"identity"}
	case b.empty:
		clone.Body = http.NoBody
	default:
		want, err := b.digest()
		if err != nil {
			body.Close()
			return nil, err
		}
		clone.ContentLength = b.length
		if b.tee != nil {
			kept, _ := b.kept()
			clone.ContentLength, clone.TransferEncoding = int64(len(kept)), nil
		}
		length := clone.ContentLength
		if length == 0 {
			length = -1 // net/http takes a body that is there, of length 0, for one of unknown length
		}
		clone.Body = &sameBody{body: body, want: want, length: length, hash: sha256.New()}
	}
	return clone, nil
}

// repeats reports whether net/http sends r again, by itself, on a new
// connection of HTTP/1, where it has no body or can get it again. Over HTTP/2 it
// does so whatever the method.
func repeats(r *http.Request) bool {
	switch method(r) {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	_, key := r.Header["Idempotency-Key"]
	_, other := r.Header["X-Idempotency-Key"]
	return key || other
}

// sameBody fails before its last byte if it is not the body that was approved,
// so that the seller never gets another one whole.
type sameBody struct {
	body   io.ReadCloser
	want   [32]byte
	length int64 // -1 where unknown

	seen int64
	hash hash.Hash
}

var errBodyChanged = errors.New("canopy: GetBody gave another body than the one that was approved")

func (s *sameBody) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	s.hash.Write(p[:n])
	s.seen += int64(n)
	if err == io.EOF || s.length >= 0 && s.seen >= s.length {
		if [32]byte(s.hash.Sum(nil)) != s.want {
			return 0, errBodyChanged
		}
	}
	return n, err
}

func (s *sameBody) Close() error { return s.body.Close() }

package canopytest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Drop closes the connection without an answer, after all that the answer
// would have taken. Beware that net/http itself sends a GET again where the
// connection was one that it had used before.
func Drop() Fault { return Delivering("drop", OnAny, cut(0, hangUp)) }

// Reset resets the connection (RST) without an answer, after all that the
// answer would have taken. Where there is no TCP, it closes it.
func Reset() Fault { return Delivering("reset", OnAny, cut(0, reset)) }

// Cut closes the connection after n bytes of the answer, its head counted.
func Cut(n int) Fault { return Delivering(fmt.Sprintf("cut at byte %d", n), OnAny, cut(n, hangUp)) }

// HalfClose sends n bytes of the answer and closes only the sending side; the
// receiving one stays open until the client closes too.
func HalfClose(n int) Fault {
	return Delivering(fmt.Sprintf("half-close at byte %d", n), OnAny, cut(n, halfClose))
}

// SlowHead sends the answer's head one byte per d, and the rest at once. Delays
// are of the system clock, or of a synctest bubble's, since clients' deadlines
// are too.
func SlowHead(d time.Duration) Fault {
	return Delivering("slow head", OnAny, func(x *Exchange, w http.ResponseWriter, a Answer) {
		raw := a.raw(x.Request)
		head := bytes.Index(raw, []byte("\r\n\r\n")) + 4
		x.drip(w, raw, head, d)
	})
}

// SlowBody sends the answer's head at once and its body one byte per d.
func SlowBody(d time.Duration) Fault {
	return Delivering("slow body", OnAny, func(x *Exchange, w http.ResponseWriter, a Answer) {
		for name, values := range a.Header {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
		w.WriteHeader(a.Status)
		flush := http.NewResponseController(w).Flush
		flush()
		for i := range a.Body {
			if !x.pause(d) {
				return
			}
			if _, err := w.Write(a.Body[i : i+1]); err != nil {
				return
			}
			flush()
		}
	})
}

// Delay answers only after d.
func Delay(d time.Duration) Fault {
	return Delivering("delay", OnAny, func(x *Exchange, w http.ResponseWriter, a Answer) {
		if x.pause(d) {
			x.send(w, a)
		}
	})
}

// pause waits for d, and reports false where the client or the seller went
// away meanwhile.
func (x *Exchange) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.ctx.Done():
	case <-x.Request.Context().Done():
	}
	return false
}

// HugeBody follows the answer's body with n bytes of white space, which JSON
// allows.
func HugeBody(n int64) Fault {
	return Delivering("huge body", OnChallenge, func(x *Exchange, w http.ResponseWriter, a Answer) {
		x.send(w, a)
		io.CopyN(w, spaces{}, n)
	})
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// Bomb sends a body that is small on the wire and inflates to n bytes, rounded
// up to a MiB, by gzip.
func Bomb(n int64) Fault {
	return Editing("decompression bomb", OnChallenge, func(_ *Exchange, a *Answer) {
		const mib = 1 << 20
		var member bytes.Buffer
		z := gzip.NewWriter(&member)
		io.CopyN(z, spaces{}, mib)
		z.Close()
		// Gzip members laid end to end inflate to their contents end to end.
		a.Body = bytes.Repeat(member.Bytes(), int((n+mib-1)/mib))
		a.Header.Set("Content-Encoding", "gzip")
	})
}

// HugeHeader adds a header of n bytes.
func HugeHeader(n int) Fault {
	return Editing("huge header", OnChallenge, func(_ *Exchange, a *Answer) { a.Header.Set("X-Padding", strings.Repeat("x", n)) })
}

// WithHeader adds a header to the answer. Both(AnswerAgain(),
// WithHeader("Retry-After", "2")) is a 402 that asks for patience.
func WithHeader(name, value string) Fault {
	return Editing(name, OnAny, func(_ *Exchange, a *Answer) {
		if a.Header != nil {
			a.Header.Add(name, value)
		}
	})
}

// Redirect answers with a redirect to url, of that status, in place of the 402;
// At(OnPaid) in place of settling.
func Redirect(status int, url string) Fault {
	return Instead(fmt.Sprintf("redirect %d", status), OnChallenge, func(*Exchange) Answer { return redirect(status, url) })
}

// RedirectAfterSettling settles, and answers with a redirect to url and the
// receipt.
func RedirectAfterSettling(status int, url string) Fault {
	return Editing(fmt.Sprintf("redirect %d after settling", status), OnPaid, func(_ *Exchange, a *Answer) {
		to := redirect(status, url)
		a.Status, a.Body = to.Status, to.Body
		a.Header.Set("Location", url)
	})
}

func redirect(status int, url string) Answer {
	a := newAnswer(status, "text/plain; charset=utf-8", []byte("elsewhere\n"))
	a.Header.Set("Location", url)
	return a
}

// raw is a as it goes over the wire.
func (a Answer) raw(r *http.Request) []byte {
	var b bytes.Buffer
	resp := http.Response{
		StatusCode: a.Status, ProtoMajor: 1, ProtoMinor: 1, Header: a.Header, Request: r,
		Body: io.NopCloser(bytes.NewReader(a.Body)), ContentLength: int64(len(a.Body)), Close: true,
	}
	if a.Status != 0 {
		resp.Write(&b)
	}
	return b.Bytes()
}

// parting is how a connection ends.
type parting uint8

const (
	hangUp parting = iota
	reset
	halfClose
)

// cut sends n bytes of the answer and parts.
func cut(n int, how parting) func(*Exchange, http.ResponseWriter, Answer) {
	return func(x *Exchange, w http.ResponseWriter, a Answer) {
		raw := a.raw(x.Request)
		raw = raw[:min(n, len(raw))]
		if len(raw) == 0 {
			x.note(func(r *Request) { r.Status = 0 })
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler) // HTTP/2: the stream is reset
		}
		defer conn.Close()
		conn.Write(raw)
		switch how {
		case reset:
			if tcp, ok := conn.(*net.TCPConn); ok {
				tcp.SetLinger(0)
			}
		case halfClose:
			if c, ok := conn.(interface{ CloseWrite() error }); ok {
				c.CloseWrite()
				x.drain(conn)
			}
		}
	}
}

// drain reads until the client closes, the seller is closed or a minute passed.
func (x *Exchange) drain(conn net.Conn) {
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		io.Copy(io.Discard, conn)
	}()
	select {
	case <-stop:
	case <-x.ctx.Done():
		conn.Close()
		<-stop
	}
}

// drip sends the first bytes of raw one per d, and the rest at once.
func (x *Exchange) drip(w http.ResponseWriter, raw []byte, first int, d time.Duration) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	timer := time.NewTimer(d)
	defer timer.Stop()
	for i := range first {
		select {
		case <-timer.C:
			timer.Reset(d)
		case <-x.ctx.Done():
			return
		}
		if _, err := conn.Write(raw[i : i+1]); err != nil {
			return
		}
	}
	conn.Write(raw[first:])
}

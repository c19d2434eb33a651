package dashboard_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// A page that watches hears of what is new, goes on from where it was, and stops
// with its session.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.hire("ana")
	b := w.in(c)
	listen := func(last string) (*bufio.Scanner, context.CancelFunc) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		r := b.request("GET", "/events", nil).WithContext(ctx)
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		resp, err := b.Do(r)
		if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%v, %v", resp, err)
		}
		t.Cleanup(func() { cancel(); resp.Body.Close() })
		return bufio.NewScanner(resp.Body), cancel
	}
	next := func(s *bufio.Scanner) (id, event, data string) {
		t.Helper()
		for s.Scan() {
			k, v, _ := strings.Cut(s.Text(), ": ")
			switch k {
			case "id":
				id = v
			case "event":
				event = v
			case "data":
				return id, event, v
			}
		}
		t.Fatalf("the stream ended: %v", s.Err())
		return
	}
	s, stop := listen("")
	_, _, data := next(s)
	if data != `{"topics":["approvals","freezes","payments"],"pending":0,"frozen":false}` {
		t.Errorf("at first %s", data)
	}
	w.pending("trader", 8*payment.Dollar)
	var id string
	for told := false; !told; told = strings.Contains(data, `"approvals"`) {
		id, _, data = next(s)
	}
	if !strings.HasSuffix(data, `"pending":1,"frozen":false}`) {
		t.Errorf("a new approval: %s", data)
	}
	stop()
	if err := w.store.(ledger.Freezer).Freeze(t.Context(), "", "ana", "x"); err != nil {
		t.Fatal(err)
	}
	s, _ = listen(id)
	if _, _, data = next(s); !strings.Contains(data, `"freezes"`) || strings.Contains(data, `"approvals"`) || !strings.HasSuffix(data, `"pending":1,"frozen":true}`) {
		t.Errorf("after it was away: %s", data)
	}
	if err := w.people.Revoke(t.Context(), "ana"); err != nil {
		t.Fatal(err)
	}
	_, event, _ := next(s)
	for s.Scan() && s.Text() == "" {
	}
	if event != "over" || s.Text() != "" {
		t.Errorf("a revoked approver's stream goes on with %s", event)
	}
}

// Only so many pages watch at once.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.in(w.hire("ana"))
	var status int
	for range 65 {
		resp, err := b.Do(b.request("GET", "/events", nil))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if status = resp.StatusCode; status != 200 {
			break
		}
	}
	if status != http.StatusServiceUnavailable {
		t.Errorf("the 65th page watches: %d", status)
	}
	b.want("/freeze")
}

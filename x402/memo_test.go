package x402

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"testing"
)

func memoResponse(n int) *http.Response {
	doc := fmt.Sprintf(`{"x402Version":2,"accepts":[{"scheme":"exact","network":"eip155:8453","amount":"%d","asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x209693Bc6afc0C5328bA36FaF03C514EF312287C","maxTimeoutSeconds":60},{"scheme":"other"}]}`, n)
	h := http.Header{}
	h.Set("PAYMENT-REQUIRED", base64.StdEncoding.EncodeToString([]byte(doc)))
	return &http.Response{StatusCode: http.StatusPaymentRequired, Header: h}
}

// What is remembered is what was read, and callers cannot change it.
func TestMemoGivesCopies(t *testing.T) {
	t.Parallel()
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	first, ferr := r.Offers(memoResponse(10_000), nil)
	if len(first) != 1 || ferr == nil {
		t.Fatalf("%d offers, %v", len(first), ferr)
	}
	want := first[0].Recipients[0]
	echo := string(first[0].Echo)
	first[0].Recipients[0].Address[0]++
	first[0].Echo[0] = 'x'
	again, aerr := r.Offers(memoResponse(10_000), nil)
	if len(again) != 1 || again[0].Recipients[0] != want || string(again[0].Echo) != echo || fmt.Sprint(aerr) != fmt.Sprint(ferr) {
		t.Errorf("the same header again gave %+v, %v", again, aerr)
	}
	if other, _ := r.Offers(memoResponse(10_001), nil); other[0].Amount == again[0].Amount {
		t.Error("another price was remembered as the first one's")
	}
}

// A body that contradicts a remembered header is found all the same.
func TestMemoStillComparesTheBody(t *testing.T) {
	t.Parallel()
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"x402Version":2,"accepts":[{"scheme":"exact","network":"eip155:8453","amount":"9","asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x209693Bc6afc0C5328bA36FaF03C514EF312287C","maxTimeoutSeconds":60}]}`)
	for range 2 {
		if found, err := r.Offers(memoResponse(10_000), nil); len(found) != 1 {
			t.Fatal(err)
		}
		if found, err := r.Offers(memoResponse(10_000), body); len(found) != 0 {
			t.Errorf("a contradicting body gave %v, %v", found, err)
		}
	}
}

func TestMemoIsBounded(t *testing.T) {
	t.Parallel()
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 * maxMemo {
		if _, err := r.Offers(memoResponse(n+1), nil); err == nil {
			t.Fatal("the second entry was not skipped")
		}
	}
	if n := len(r.quotes.m); n > maxMemo {
		t.Errorf("%d headers are remembered", n)
	}
	r.quotes.put(string(make([]byte, maxMemoValue+1)), quote{})
	if _, ok := r.quotes.get(string(make([]byte, maxMemoValue+1))); ok {
		t.Error("a long document is remembered")
	}
}

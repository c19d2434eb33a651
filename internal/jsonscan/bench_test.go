package jsonscan_test

import (
	"encoding/json"
	"testing"

	"github.com/canopy-go/canopy/internal/jsonscan"
)

const paymentRequired = `{"x402Version":2,"error":"Payment required","resource":{"url":"https://feed.example/quotes/latest","description":"The latest quotes, once a second","mimeType":"application/json"},"accepts":[{"scheme":"exact","network":"eip155:8453","amount":"10000","asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x209693Bc6afc0C5328bA36FaF03C514EF312287C","maxTimeoutSeconds":60,"extra":{"name":"USD Coin","version":"2"}},{"scheme":"exact","network":"eip155:84532","amount":"10000","asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e","payTo":"0x209693Bc6afc0C5328bA36FaF03C514EF312287C","maxTimeoutSeconds":60,"extra":{"name":"USDC","version":"2"}}],"extensions":{}}`

type required struct {
	X402Version json.Number `json:"x402Version"`
	Error       string      `json:"error"`
	Resource    struct {
		URL         string `json:"url"`
		Description string `json:"description"`
		MimeType    string `json:"mimeType"`
	} `json:"resource"`
	Accepts []accept `json:"accepts"`
}

type accept struct {
	Scheme            string      `json:"scheme"`
	Network           string      `json:"network"`
	Amount            string      `json:"amount"`
	Asset             string      `json:"asset"`
	PayTo             string      `json:"payTo"`
	MaxTimeoutSeconds json.Number `json:"maxTimeoutSeconds"`
	Extra             struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"extra"`
	raw string
}

func read(doc []byte) (r required, err error) {
	v, err := jsonscan.Parse(doc, jsonscan.Limits{})
	if err != nil {
		return r, err
	}
	err = v.Object(func(key string, val jsonscan.Value) (err error) {
		switch key {
		case "x402Version":
			var s string
			s, err = val.Number()
			r.X402Version = json.Number(s)
		case "error":
			r.Error, err = val.String()
		case "resource":
			err = val.Object(func(key string, val jsonscan.Value) (err error) {
				switch key {
				case "url":
					r.Resource.URL, err = val.String()
				case "description":
					r.Resource.Description, err = val.String()
				case "mimeType":
					r.Resource.MimeType, err = val.String()
				}
				return err
			})
		case "accepts":
			err = val.Array(func(_ int, val jsonscan.Value) error {
				a, err := readAccept(val)
				r.Accepts = append(r.Accepts, a)
				return err
			})
		}
		return err
	})
	return r, err
}

func readAccept(v jsonscan.Value) (a accept, err error) {
	a.raw = v.Raw()
	err = v.Object(func(key string, val jsonscan.Value) (err error) {
		switch key {
		case "scheme":
			a.Scheme, err = val.String()
		case "network":
			a.Network, err = val.String()
		case "amount":
			a.Amount, err = val.String()
		case "asset":
			a.Asset, err = val.String()
		case "payTo":
			a.PayTo, err = val.String()
		case "maxTimeoutSeconds":
			var s string
			s, err = val.Number()
			a.MaxTimeoutSeconds = json.Number(s)
		case "extra":
			err = val.Object(func(key string, val jsonscan.Value) (err error) {
				switch key {
				case "name":
					a.Extra.Name, err = val.String()
				case "version":
					a.Extra.Version, err = val.String()
				}
				return err
			})
		}
		return err
	})
	return a, err
}

func TestReadPaymentRequired(t *testing.T) {
	got, err := read([]byte(paymentRequired))
	if err != nil {
		t.Fatal(err)
	}
	var want required
	if err := json.Unmarshal([]byte(paymentRequired), &want); err != nil {
		t.Fatal(err)
	}
	for i := range got.Accepts {
		if !json.Valid([]byte(got.Accepts[i].raw)) {
			t.Errorf("raw %d = %s", i, got.Accepts[i].raw)
		}
		got.Accepts[i].raw = ""
	}
	if len(got.Accepts) != 2 || got.Accepts[0] != want.Accepts[0] || got.Accepts[1] != want.Accepts[1] || got.Resource != want.Resource {
		t.Errorf("read %+v, want %+v", got, want)
	}
	if n := testing.AllocsPerRun(100, func() { read([]byte(paymentRequired)) }); n > 6 {
		t.Errorf("reading allocates %v times, want at most 6", n)
	}
}

func BenchmarkPaymentRequired(b *testing.B) {
	doc := []byte(paymentRequired)
	b.Run("jsonscan", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := read(doc); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding json", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			var r required
			if err := json.Unmarshal(doc, &r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("validate", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			if err := jsonscan.Validate(doc, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Transport puts Canopy under an ordinary http.Client: code that knows nothing
// of payments pays where a seller asks for it. It runs offline.
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
	"github.com/canopy-go/canopy/signer"
	"github.com/canopy-go/canopy/x402"
)

const document = `
[policy.default]
max_payment = "$0.05"
caps        = ["$0.03 / 24h"]
allow       = ["host:127.0.0.1"]
`

const exampleKey = "0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"

func main() {
	log.SetFlags(0)
	key, err := signer.FromHex(exampleKey)
	check(err)
	chain := canopytest.NewChain(canopytest.ChainConfig{})
	chain.Fund(key.Address(), payment.Dollar)
	seller := httptest.NewServer(canopytest.NewSeller(chain, canopytest.SellerConfig{
		Routes: []canopytest.Route{
			{Pattern: "GET /price", Price: payment.Cent},
			{Pattern: "GET /status"}, // free
		},
	}))
	defer seller.Close()

	rules, err := policy.Parse("transport", []byte(document))
	check(err)
	rail, err := x402.New(x402.Config{})
	check(err)
	client, err := canopy.New(canopy.Config{
		Treasury: canopy.Treasury{Signer: key},
		Policy:   rules,
		Store:    ledger.NewMemory(ledger.Options{}),
		Rails:    []canopy.Rail{rail},
	})
	check(err)

	// From here on it is net/http and nothing else.
	hc := &http.Client{Transport: client}
	for _, path := range []string{"/status", "/price", "/price", "/price", "/price"} {
		resp, err := hc.Get(seller.URL + path)
		var denied *canopy.DeniedError
		if errors.As(err, &denied) {
			fmt.Printf("GET %-8s denied: %s\n", path, denied.Result.Reason)
			continue
		}
		check(err)
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		check(err)
		cost := payment.USD(0)
		if paid, ok := canopy.PaymentOf(resp); ok {
			cost = paid.Amount
		}
		fmt.Printf("GET %-8s %s, cost %s\n", path, resp.Status, cost)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal("transport: ", err)
	}
}

package canopytest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// A seller states its terms in a 402, and a payment moves money on the chain
// that the test asks afterwards.
func Example() {
	clock := canopytest.NewStillClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	chain := canopytest.NewChain(canopytest.ChainConfig{Clock: clock})
	payer := newWallet() // in your test: the signer that your client is given
	chain.Fund(payer.Address(), 5*payment.Dollar)

	seller := canopytest.NewSeller(chain, canopytest.SellerConfig{
		Routes: []canopytest.Route{{Pattern: "GET /report", Price: 2 * payment.Cent}},
	})
	server := httptest.NewServer(seller) // in a test: seller.Start(t)
	defer server.Close()

	resp, err := pay(server.URL+"/report", chain, payer) // in your test: client.HTTPClient().Get
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.StatusCode)
	fmt.Println("spent", chain.Spent(payer.Address()))
	fmt.Printf("%+v\n", seller.Count("GET /report"))
	// Output:
	// 200
	// spent $0.02
	// {Requests:2 Paid:1 Served:1 Settled:1}
}

// A seller that takes every payment, answers 402 again, and settles all it was
// handed at the last moment.
func ExampleHarvest() {
	clock := canopytest.NewStillClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	chain := canopytest.NewChain(canopytest.ChainConfig{Clock: clock})
	payer := newWallet()
	chain.Fund(payer.Address(), 5*payment.Dollar)
	seller := canopytest.NewSeller(chain, canopytest.SellerConfig{
		Routes: []canopytest.Route{{Pattern: "GET /", Price: payment.Dollar}},
		Faults: canopytest.Plan{canopytest.Always(canopytest.AnswerAgain())},
	})
	server := httptest.NewServer(seller)
	defer server.Close()

	for range 3 { // a careless client signs again at each 402
		if _, err := pay(server.URL+"/", chain, payer); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("spent", chain.Spent(payer.Address()), "with", len(seller.Harvest().Nonces()), "authorizations out")
	if _, err := seller.Harvest().SettleLate(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println("spent", chain.Spent(payer.Address()))
	// Output:
	// spent $0.00 with 3 authorizations out
	// spent $3.00
}

// The first payment is settled and its answer lost; the second goes through.
func ExamplePlan() {
	chain := canopytest.NewChain(canopytest.ChainConfig{})
	payer := newWallet()
	chain.Fund(payer.Address(), 5*payment.Dollar)
	seller := canopytest.NewSeller(chain, canopytest.SellerConfig{Routes: []canopytest.Route{{
		Pattern: "GET /", Price: payment.Cent,
		Faults: canopytest.Plan{
			canopytest.First(canopytest.DropAfterSettling()),
			canopytest.From(3, canopytest.Both(canopytest.Status(http.StatusServiceUnavailable), canopytest.WithHeader("Retry-After", "5"))),
		},
	}}})
	server := httptest.NewServer(seller)
	defer server.Close()
	for range 3 {
		resp, err := pay(server.URL+"/", chain, payer)
		if err != nil {
			fmt.Println("no answer; spent", chain.Spent(payer.Address()))
			continue
		}
		fmt.Println(resp.StatusCode, resp.Header.Get("Retry-After"), "spent", chain.Spent(payer.Address()))
	}
	// Output:
	// no answer; spent $0.01
	// 200  spent $0.02
	// 503 5 spent $0.02
}

// A fault of one's own: the seller serves once it is paid twice.
func ExampleInstead() {
	greedy := canopytest.Instead("twice the price", canopytest.OnPaid, func(x *canopytest.Exchange) canopytest.Answer {
		if _, err := x.Settle(); err != nil {
			return x.Challenge(err.Error())
		}
		return x.Challenge("and once more")
	})
	chain := canopytest.NewChain(canopytest.ChainConfig{})
	payer := newWallet()
	chain.Fund(payer.Address(), payment.Dollar)
	seller := canopytest.NewSeller(chain, canopytest.SellerConfig{Routes: []canopytest.Route{{
		Pattern: "GET /", Price: payment.Cent, Faults: canopytest.Plan{canopytest.First(greedy)},
	}}})
	server := httptest.NewServer(seller)
	defer server.Close()
	for range 2 {
		resp, err := pay(server.URL+"/", chain, payer)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(resp.StatusCode, chain.Spent(payer.Address()))
	}
	// Output:
	// 402 $0.01
	// 200 $0.02
}

// What was mined and is not final can be taken back.
func ExampleChain_Reorg() {
	clock := canopytest.NewStillClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	chain := canopytest.NewChain(canopytest.ChainConfig{Clock: clock})
	payer := newWallet()
	chain.Fund(payer.Address(), payment.Dollar)
	chain.Finalize()

	auth := payer.authorize(chain.Dollar(), canopytest.Address("seller"), payment.UnitsOf(10_000), clock.Now().Add(time.Minute))
	tx, err := chain.Settle(context.Background(), auth)
	fmt.Println(chain.Spent(payer.Address()), err)

	fmt.Println(chain.Reorg(1), chain.Spent(payer.Address()))

	chain.Finalize()
	tx, _ = chain.Tx(tx.Hash)
	fmt.Println(chain.Spent(payer.Address()), tx.Block.Number <= chain.Final().Number, chain.Reorg(9))
	// Output:
	// $0.01 <nil>
	// <nil> $0.00
	// $0.01 true canopytest: the block is final: 9 blocks cannot be dropped
}

// pay is a client in a few lines: it pays whatever it is asked.
func pay(url string, chain *canopytest.Chain, payer wallet) (*http.Response, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	q, err := firstTerms(resp)
	if err != nil {
		return nil, err
	}
	amount, err := payment.ParseUnits(q["amount"].(string))
	if err != nil {
		return nil, err
	}
	to, err := payment.ParseAddress(q["payTo"].(string))
	if err != nil {
		return nil, err
	}
	auth := payer.authorize(chain.Dollar(), to, amount, chain.Clock().Now().Add(time.Minute))
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("PAYMENT-SIGNATURE", payload2(q, auth))
	if resp, err = client.Do(req); err == nil {
		resp.Body.Close()
	}
	return resp, err
}

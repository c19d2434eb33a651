// Quickstart pays sellers over x402 and MPP, on chains in memory, under one policy:
// some payments are allowed, one waits for a person, one is denied. Nothing leaves
// this machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/mpp"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
	"github.com/canopy-go/canopy/signer"
	"github.com/canopy-go/canopy/x402"
)

const document = `
[org]
name = "Acme"

[policy.default]
max_payment   = "$10"
caps          = ["$20 / 24h", "100 payments / 1h"]
approve_above = "$5"
allow         = ["host:127.0.0.1"]
`

// A key for this example only. A real one comes from signer.FromKeystore or
// signer.FromEnv.
const exampleKey = "0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"

func main() {
	log.SetFlags(0)
	if err := run(context.Background()); err != nil {
		log.Fatal("quickstart: ", err)
	}
}

func run(ctx context.Context) error {
	key, err := signer.FromHex(exampleKey)
	if err != nil {
		return err
	}
	base := canopytest.NewChain(canopytest.ChainConfig{ID: payment.Base})
	base.Fund(key.Address(), 100*payment.Dollar)
	tempo := canopytest.NewChain(canopytest.ChainConfig{ID: payment.Tempo})
	tempo.Fund(key.Address(), 20*payment.Dollar)

	feed := serve(base, canopytest.SellerConfig{Protocol: canopytest.X402})
	defer feed.Close()
	archive := serve(base, canopytest.SellerConfig{Protocol: canopytest.X402, Version: canopytest.V1})
	defer archive.Close()
	oracle := serve(tempo, canopytest.SellerConfig{Protocol: canopytest.MPP})
	defer oracle.Close()

	rules, err := policy.Parse("quickstart", []byte(document))
	if err != nil {
		return err
	}
	onBase, err := x402.New(x402.Config{})
	if err != nil {
		return err
	}
	onTempo, err := mpp.New(mpp.Config{})
	if err != nil {
		return err
	}
	store := ledger.NewMemory(ledger.Options{})
	client, err := canopy.New(canopy.Config{
		Agent:    "researcher",
		Treasury: canopy.Treasury{Signer: key, Chains: []canopy.Chain{base, tempo}},
		Policy:   rules,
		Store:    store,
		Rails:    []canopy.Rail{onBase, onTempo},
	})
	if err != nil {
		return err
	}

	fmt.Println("The policy:")
	fmt.Print(document)
	fmt.Printf("\nThe account %s has $100.00 on an in-memory Base and $20.00 on an in-memory Tempo.\n\n", key.Address())

	fetch(ctx, client, "a quote for $0.01 (x402 version 2, on Base)", feed.URL+"/quote")
	fetch(ctx, client, "an old page for $0.01 (x402 version 1, on Base)", archive.URL+"/quote")
	fetch(ctx, client, "a forecast for $0.01 (MPP, on Tempo)", oracle.URL+"/quote")
	pending := fetch(ctx, client, "a report for $7.50", feed.URL+"/report")
	if pending == nil {
		return errors.New("the report should have waited for a person")
	}
	desk := approvals.NewDesk(store, "quickstart", nil)
	if _, err := desk.Rule(ctx, pending.Result.ApprovalID, approvals.Ruling{Approve: true, By: "ana"}); err != nil {
		return err
	}
	fmt.Print("   ana approves it, and the same call goes on:\n\n")
	fetch(ctx, client, "the report again", feed.URL+"/report")
	fetch(ctx, client, "a dataset for $40.00", feed.URL+"/dataset")

	b, err := client.Budget(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("Budget: %s of %s spent or held, %s left. On Tempo that includes the most that the fee could be.\n", b.Spent, b.Text, b.Remaining)
	fmt.Printf("The chains say that %s left the account on Base, and %s on Tempo, fee included.\n", base.Spent(key.Address()), tempo.Spent(key.Address()))
	return nil
}

// serve sells three things, and settles on chain.
func serve(chain *canopytest.Chain, c canopytest.SellerConfig) *httptest.Server {
	c.Routes = []canopytest.Route{
		{Pattern: "GET /quote", Price: payment.Cent},
		{Pattern: "GET /report", Price: 7*payment.Dollar + 50*payment.Cent},
		{Pattern: "GET /dataset", Price: 40 * payment.Dollar},
	}
	return httptest.NewServer(canopytest.NewSeller(chain, c))
}

// fetch gets url and tells what became of it. It returns the error of a payment
// that waits for a person.
func fetch(ctx context.Context, client *canopy.Client, what, url string) *canopy.PendingError {
	fmt.Println("-- The agent wants", what)
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Fetch(ctx, req)
	var pending *canopy.PendingError
	var denied *canopy.DeniedError
	switch {
	case errors.As(err, &pending):
		fmt.Printf("   PENDING  %s\n", pending.Result.Reason)
		return pending
	case errors.As(err, &denied):
		fmt.Printf("   DENIED   %s\n\n", denied.Result.Reason)
		return nil
	case err != nil:
		log.Fatal("quickstart: ", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	paid, _ := canopy.PaymentOf(resp)
	fmt.Printf("   ALLOWED  %s to %s, %s\n   The seller answers %s: %s\n",
		paid.Amount, paid.Recipient, paid.State, resp.Status, body)
	return nil
}

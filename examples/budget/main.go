// Budget is an agent that divides its work among sub-agents. Each works under a
// budget that was taken from what the agent has left: one spends too much and is
// stopped, one gives up early and its money is free again. Nothing leaves this
// machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

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
max_payment = "$1"
caps        = ["$20 / 24h", "$5 / ever per run"]
allow       = ["host:127.0.0.1"]
`

// A key for this example only. A real one comes from signer.FromKeystore or
// signer.FromEnv.
const exampleKey = "0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal("budget: ", err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	client, url, closing, err := shop()
	if err != nil {
		return err
	}
	defer closing()

	// The whole task may cost two dollars.
	task, done, err := client.WithBudget(ctx, "market report", 2*canopy.Dollar)
	if err != nil {
		return err
	}
	defer done()

	// Two sub-agents work at the same time, each under a part of it.
	reader, readerDone, err := client.WithBudget(task, "reader", 80*payment.Cent)
	if err != nil {
		return err
	}
	defer readerDone()
	analyst, analystDone, err := client.WithBudget(task, "analyst", canopy.Dollar)
	if err != nil {
		return err
	}
	defer analystDone()
	var work sync.WaitGroup
	var read, analysed string
	work.Go(func() { read = agent{client, "reader"}.buy(reader, url+"/page", 4) })
	work.Go(func() {
		me := agent{client, "analyst"}
		// A sub-agent divides its own budget further.
		chart, chartDone, err := client.WithBudget(analyst, "chart", 30*payment.Cent)
		if err != nil {
			analysed = fmt.Sprintln("analyst:", err)
			return
		}
		defer chartDone()
		analysed = me.buy(analyst, url+"/data", 1) + agent{client, "chart"}.buy(chart, url+"/page", 3)
	})
	work.Wait()
	fmt.Fprint(out, read, analysed)

	fmt.Fprintln(out, "\nWhile both are open:")
	if err := show(task, client, out); err != nil {
		return err
	}
	_, _, err = client.WithBudget(task, "translator", 50*payment.Cent)
	fmt.Fprintln(out, "\nA third sub-agent:", err)

	// The analyst is done: what it did not spend is the task's again.
	analystDone()
	fmt.Fprintln(out, "\nOnce the analyst is done:")
	if err := show(task, client, out); err != nil {
		return err
	}
	translator, translatorDone, err := client.WithBudget(task, "translator", 50*payment.Cent)
	if err != nil {
		return err
	}
	defer translatorDone()
	fmt.Fprint(out, "\n", agent{client, "translator"}.buy(translator, url+"/page", 2))
	fmt.Fprintln(out, "\nAt the end:")
	return show(task, client, out)
}

// agent is a sub-agent: it buys what it wants under the context that it is given.
type agent struct {
	client *canopy.Client
	name   string
}

// buy asks for n pages, and tells what came of it.
func (a agent) buy(ctx context.Context, url string, n int) string {
	bought := 0
	for i := range n {
		req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("%s/%d", url, i+1), nil)
		if err != nil {
			return fmt.Sprintf("%s: %v\n", a.name, err)
		}
		resp, err := a.client.Fetch(ctx, req)
		var denied *canopy.DeniedError
		switch {
		case errors.As(err, &denied):
			return fmt.Sprintf("%s: bought %d of %d, and then: %s\n", a.name, bought, n, denied.Result.Reason)
		case err != nil:
			return fmt.Sprintf("%s: %v\n", a.name, err)
		}
		resp.Body.Close()
		bought++
	}
	return fmt.Sprintf("%s: bought %d of %d\n", a.name, bought, n)
}

// show prints the budgets, each under the one that it was taken from.
func show(ctx context.Context, client *canopy.Client, out io.Writer) error {
	b, err := client.Budget(ctx)
	if err != nil {
		return err
	}
	var print func(list []*canopy.BudgetNode, depth int)
	print = func(list []*canopy.BudgetNode, depth int) {
		for _, n := range list {
			state := fmt.Sprintf("%s left", n.Left)
			if n.Given > 0 {
				state += fmt.Sprintf(", %s given", n.Given)
			}
			if !n.EndedAt.IsZero() {
				state = n.Why
			}
			name := strings.Repeat("  ", depth) + n.Name
			fmt.Fprintf(out, "  %-18s %s of %s spent, %s\n", name, n.Spent, n.Limit, state)
			print(n.Children, depth+1)
		}
	}
	print(b.Budgets, 0)
	return nil
}

// shop is a client with money, and a seller of pages for 25 cents and data for 40.
func shop() (*canopy.Client, string, func(), error) {
	key, err := signer.FromHex(exampleKey)
	if err != nil {
		return nil, "", nil, err
	}
	base := canopytest.NewChain(canopytest.ChainConfig{ID: payment.Base})
	base.Fund(key.Address(), 100*payment.Dollar)
	rules, err := policy.Parse("budget", []byte(document))
	if err != nil {
		return nil, "", nil, err
	}
	rail, err := x402.New(x402.Config{})
	if err != nil {
		return nil, "", nil, err
	}
	client, err := canopy.New(canopy.Config{
		Agent: "researcher", Treasury: canopy.Treasury{Signer: key, Chains: []canopy.Chain{base}},
		Policy: rules, Store: ledger.NewMemory(ledger.Options{}), Rails: []canopy.Rail{rail},
	})
	if err != nil {
		return nil, "", nil, err
	}
	s := httptest.NewServer(canopytest.NewSeller(base, canopytest.SellerConfig{Routes: []canopytest.Route{
		{Pattern: "GET /page/", Price: 25 * payment.Cent}, {Pattern: "GET /data/", Price: 40 * payment.Cent},
	}}))
	return client, s.URL, s.Close, nil
}

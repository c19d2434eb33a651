// Approval lets an agent buy a report that is too dear for it to buy alone: it asks
// you, at the keyboard, and the call that waited goes on when you say yes. Nothing
// leaves this machine. Without a terminal somebody called ana answers.
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
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
	"github.com/canopy-go/canopy/signer"
	"github.com/canopy-go/canopy/x402"
)

const document = `
[policy.default]
max_payment   = "$10"
caps          = ["$20 / 24h"]
approve_above = "$5"
allow         = ["host:127.0.0.1"]
`

// A key for this example only.
const exampleKey = "0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Stdin, os.Stdout); err != nil {
		log.Fatal("approval: ", err)
	}
}

func run(ctx context.Context, in *os.File, out io.Writer) error {
	store := ledger.NewMemory(ledger.Options{})

	// Whoever sits at the keyboard rules, and the program does not wait for them
	// but where it says so.
	keyboard, err := prompt(store, in, out)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go keyboard.Run(ctx)

	client, url, done, err := agent(store, keyboard)
	if err != nil {
		return err
	}
	defer done()

	req, err := http.NewRequest(http.MethodGet, url+"/report", nil)
	if err != nil {
		return err
	}
	resp, err := client.Fetch(ctx, req, canopy.WithPurpose("numbers for the weekly report"), canopy.WithWait(5*time.Minute))
	var denied *canopy.DeniedError
	var pending *canopy.PendingError
	switch {
	case errors.As(err, &denied):
		fmt.Fprintln(out, "Denied:", denied.Result.Reason)
		return nil
	case errors.As(err, &pending):
		fmt.Fprintln(out, "Nobody answered: it waits on, as", pending.Result.ApprovalID)
		return nil
	case err != nil:
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	paid, _ := canopy.PaymentOf(resp)
	fmt.Fprintf(out, "Paid %s to %s, %s. The seller answers %s: %s\n", paid.Amount, paid.Recipient, paid.State, resp.Status, body)
	return nil
}

// prompt asks at the terminal, and where there is none somebody who types by
// himself: then what can write to the input can say yes, which a real program
// does not want.
func prompt(store ledger.Store, in *os.File, out io.Writer) (*approvals.Prompt, error) {
	cfg := approvals.PromptConfig{Desk: approvals.NewDesk(store, "terminal", nil), By: "you", In: in, Out: out}
	p, err := approvals.NewPrompt(cfg)
	if !errors.Is(err, approvals.ErrNoTerminal) {
		return p, err
	}
	typed, hands := io.Pipe()
	cfg.By, cfg.In, cfg.Out, cfg.Unattended = "ana", typed, &reader{hands, out}, true
	return approvals.NewPrompt(cfg)
}

// reader plays a person who says yes to what is asked.
type reader struct{ hands, out io.Writer }

func (r *reader) Write(shown []byte) (int, error) {
	r.out.Write(shown)
	if n := len(shown); n > 0 && shown[n-1] == ' ' { // a question
		fmt.Fprintln(r.out, "yes, this once")
		go io.WriteString(r.hands, "yes, this once\n")
	}
	return len(shown), nil
}

// agent is the agent's program, and the seller that it buys from.
func agent(store ledger.Store, ch approvals.Channel) (client *canopy.Client, url string, done func(), err error) {
	key, err := signer.FromHex(exampleKey)
	if err != nil {
		return nil, "", nil, err
	}
	chain := canopytest.NewChain(canopytest.ChainConfig{ID: payment.Base})
	chain.Fund(key.Address(), 100*payment.Dollar)
	rules, err := policy.Parse("approval", []byte(document))
	if err != nil {
		return nil, "", nil, err
	}
	rail, err := x402.New(x402.Config{})
	if err != nil {
		return nil, "", nil, err
	}
	client, err = canopy.New(canopy.Config{
		Agent:    "researcher",
		Treasury: canopy.Treasury{Signer: key, Chains: []canopy.Chain{chain}},
		Policy:   rules,
		Store:    store,
		Rails:    []canopy.Rail{rail},
		Channels: []approvals.Channel{ch},
	})
	if err != nil {
		return nil, "", nil, err
	}
	seller := httptest.NewServer(canopytest.NewSeller(chain, canopytest.SellerConfig{
		Protocol: canopytest.X402,
		Routes:   []canopytest.Route{{Pattern: "GET /report", Price: 7*payment.Dollar + 50*payment.Cent}},
	}))
	return client, seller.URL, seller.Close, nil
}

package canopy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
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

// shop is a client with $20 a day, and a seller on this machine that settles on
// a chain in memory.
type shop struct {
	*canopy.Client
	store  ledger.Store
	seller *httptest.Server
}

func openShop() shop {
	key, err := signer.FromHex("0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318")
	check(err)
	rules, err := policy.Parse("example", []byte(`
[org]
name = "Acme"
[policy.default]
max_payment   = "$10"
caps          = ["$20 / 24h"]
approve_above = "$5"
allow         = ["host:127.0.0.1", "address:0x209693Bc6afc0C5328bA36FaF03C514EF312287C"]
`))
	check(err)
	rail, err := x402.New(x402.Config{})
	check(err)
	chain := canopytest.NewChain(canopytest.ChainConfig{})
	chain.Fund(key.Address(), 100*payment.Dollar)
	s := shop{store: ledger.NewMemory(ledger.Options{}), seller: httptest.NewServer(canopytest.NewSeller(chain, canopytest.SellerConfig{
		Routes: []canopytest.Route{
			{Pattern: "GET /free"},
			{Pattern: "GET /quote", Price: payment.Cent},
			{Pattern: "GET /report", Price: 7*payment.Dollar + 50*payment.Cent},
			{Pattern: "GET /dataset", Price: 40 * payment.Dollar},
		},
	}))}
	s.Client, err = canopy.New(canopy.Config{
		Agent: "researcher", Treasury: canopy.Treasury{Signer: key}, Policy: rules, Store: s.store, Rails: []canopy.Rail{rail},
	})
	check(err)
	return s
}

func (s shop) request(path string) *http.Request {
	req, err := http.NewRequest(http.MethodGet, s.seller.URL+path, nil)
	check(err)
	return req
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func ExampleClient_Fetch() {
	s := openShop()
	defer s.seller.Close()

	for _, path := range []string{"/free", "/quote", "/report", "/dataset"} {
		resp, err := s.Fetch(context.Background(), s.request(path))
		var (
			pending *canopy.PendingError
			denied  *canopy.DeniedError
		)
		switch {
		case errors.As(err, &pending):
			fmt.Println(path, "waits for a person:", pending.Result.Reason)
		case errors.As(err, &denied):
			fmt.Println(path, "is denied:", denied.Result.Reason)
		case err != nil:
			log.Fatal(err)
		default:
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			fmt.Printf("%s answers %s", path, body)
		}
	}
	// Output:
	// /free answers {"path":"/free"}
	// /quote answers {"path":"/quote"}
	// /report waits for a person: Amount $7.50 exceeds approval threshold of $5
	// /dataset is denied: Amount $40.00 exceeds the maximum of $10 per payment
}

func ExampleClient_HTTPClient() {
	s := openShop()
	defer s.seller.Close()

	resp, err := s.HTTPClient().Get(s.seller.URL + "/quote")
	check(err)
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}

func ExampleClient_RoundTrip() {
	s := openShop()
	defer s.seller.Close()

	hc := &http.Client{Transport: s.Client, Timeout: time.Minute}
	_, err := hc.Get(s.seller.URL + "/dataset")
	var denied *canopy.DeniedError
	fmt.Println(errors.As(err, &denied), denied.Result.Code)
	// Output: true max_payment
}

func ExamplePaymentOf() {
	s := openShop()
	defer s.seller.Close()

	resp, err := s.Fetch(context.Background(), s.request("/quote"))
	check(err)
	defer resp.Body.Close()
	paid, ok := canopy.PaymentOf(resp)
	fmt.Println(ok, paid.Amount, paid.State, paid.Settlement, paid.Recipient == canopytest.Address("seller"))
	// Output: true $0.01 claimed claimed true
}

func ExampleClient_CheckURL() {
	s := openShop()
	defer s.seller.Close()

	for _, path := range []string{"/free", "/quote", "/report", "/dataset"} {
		c, err := s.CheckURL(context.Background(), s.seller.URL+path)
		check(err)
		fmt.Println(path, c.Amount, c.Status)
	}
	// Output:
	// /free $0.00 allowed
	// /quote $0.01 allowed
	// /report $7.50 pending_approval
	// /dataset $40.00 denied
}

func ExampleClient_Preview() {
	s := openShop()
	defer s.seller.Close()

	to, err := payment.ParseAddress("0x209693Bc6afc0C5328bA36FaF03C514EF312287C")
	check(err)
	r, err := s.Preview(context.Background(), canopy.Transfer{To: to, Amount: 60 * canopy.Dollar})
	check(err)
	fmt.Println(r.Status, r.DryRun, r.Reason)
	// Output: denied true Amount $60.00 exceeds the maximum of $10 per payment
}

func ExampleClient_Budget() {
	s := openShop()
	defer s.seller.Close()

	resp, err := s.Fetch(context.Background(), s.request("/quote"))
	check(err)
	resp.Body.Close()
	b, err := s.Budget(context.Background())
	check(err)
	fmt.Println(b.Spent, "of", b.Text, "is spent,", b.Remaining, "is left")
	// Output: $0.01 of $20 / 24h is spent, $19.99 is left
}

func ExampleClient_Ping() {
	s := openShop()
	defer s.seller.Close()

	p, err := s.Ping(context.Background())
	check(err)
	fmt.Println(p.Agent, p.Org, p.Status, p.Account)
	// Output: researcher Acme active 0x2c7536E3605D9C16a7a3D7b1898e529396a65c23
}

func ExampleClient_WaitForApproval() {
	s := openShop()
	defer s.seller.Close()
	ctx := context.Background()

	_, err := s.Fetch(ctx, s.request("/report"))
	var pending *canopy.PendingError
	if !errors.As(err, &pending) {
		log.Fatal(err)
	}
	go func() { // a person, at the command line or the page
		_, err := approvals.NewDesk(s.store, "page", nil).Rule(ctx, pending.Result.ApprovalID, canopy.Ruling{Approve: true, By: "ana"})
		check(err)
	}()
	a, err := s.WaitForApproval(ctx, pending.Result.ApprovalID)
	check(err)
	fmt.Println(a.Status, "by", a.By)

	resp, err := s.Fetch(ctx, s.request("/report")) // the equal call carries it out
	check(err)
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output:
	// approved by ana
	// 200 OK
}

func ExampleWithKey() {
	s := openShop()
	defer s.seller.Close()

	resp, err := s.Fetch(context.Background(), s.request("/quote"), canopy.WithKey("order-17"))
	check(err)
	resp.Body.Close()

	// Whatever happens, order 17 is paid once.
	_, err = s.Fetch(context.Background(), s.request("/quote"), canopy.WithKey("order-17"))
	var paid *canopy.PaidError
	fmt.Println(errors.As(err, &paid), paid.Result.Amount)
	// Output: true $0.01
}

func ExampleWithMaxPrice() {
	s := openShop()
	defer s.seller.Close()

	_, err := s.Fetch(context.Background(), s.request("/quote"), canopy.WithMaxPrice(canopy.Dollar/200))
	fmt.Println(err)
	// Output: canopy: payment denied: Amount $0.01 exceeds the caller's maximum of $0.005
}

func ExampleWithWait() {
	s := openShop()
	defer s.seller.Close()

	_, err := s.Fetch(context.Background(), s.request("/report"), canopy.WithWait(60*time.Millisecond))
	var pending *canopy.PendingError
	fmt.Println(errors.As(err, &pending))
	// Output: true
}

// A budget counts what is paid under its context; one in it is taken from what is
// left.
func ExampleClient_WithBudget() {
	s := openShop()
	defer s.seller.Close()

	ctx, cancel, err := s.WithBudget(context.Background(), "market report", 5*payment.Cent)
	check(err)
	defer cancel()
	helper, done, err := s.WithBudget(ctx, "helper", 4*payment.Cent)
	check(err)

	for range 2 {
		resp, err := s.Fetch(helper, s.request("/quote"))
		check(err)
		resp.Body.Close()
	}
	_, _, err = s.WithBudget(ctx, "another helper", 2*payment.Cent)
	fmt.Println(err)
	done() // what the helper did not spend is free again
	b, err := s.Budget(ctx)
	check(err)
	for _, n := range b.Budgets {
		fmt.Printf("%s: %s of %s spent, %s left\n", n.Name, n.Spent, n.Limit, n.Left)
		for _, c := range n.Children {
			fmt.Printf("  %s: %s of %s spent, %s\n", c.Name, c.Spent, c.Limit, c.Why)
		}
	}
	_, err = s.Fetch(context.WithoutCancel(helper), s.request("/quote"))
	fmt.Println(err)
	// Output:
	// canopy: budget another helper: ledger: budget market report has $0.01 left, and $0.02 was asked of it
	// market report: $0.02 of $0.05 spent, $0.03 left
	//   helper: $0.02 of $0.04 spent, cancelled
	// canopy: payment denied: Budget helper has ended: cancelled
}

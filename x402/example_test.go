package x402_test

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/x402"
)

// A rail reads what a 402 offers; what it cannot pay it skips, and says why.
func ExampleRail_Offers() {
	rail, err := x402.New(x402.Config{Chains: []payment.ChainID{payment.Base}})
	if err != nil {
		fmt.Println(err)
		return
	}
	body := []byte(`{"x402Version":2,"resource":{"url":"https://feed.example/quotes"},"accepts":[
		{"scheme":"upto","network":"eip155:8453"},
		{"scheme":"exact","network":"eip155:8453","asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","amount":"10000",
		 "payTo":"0x209693Bc6afc0C5328bA36FaF03C514EF312287C","maxTimeoutSeconds":60,"extra":{"name":"USD Coin","version":"2"}}]}`)
	offers, err := rail.Offers(&http.Response{StatusCode: http.StatusPaymentRequired}, body)
	for _, o := range offers {
		fmt.Println(o.Asset, o.Amount, "to", o.Recipients[0].Address)
	}
	var skipped *x402.SkippedError
	if errors.As(err, &skipped) {
		fmt.Println(skipped)
	}
	// Output:
	// USDC on base 10000 to 0x209693Bc6afc0C5328bA36FaF03C514EF312287C
	// x402: offers skipped: accepts[0]: unknown_scheme (upto)
}

// A seller's receipt is a claim, and only where it fits the payment.
func ExampleRail_Receipt() {
	rail, err := x402.New(x402.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	usdc := payment.KnownAssets().On(payment.Base)[0]
	grant := payment.Grant{Version: 2, Terms: payment.Terms{Rail: x402.Name, Scheme: "exact", Asset: usdc, Amount: payment.UnitsOf(10000)}}
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}}
	resp.Header.Set("PAYMENT-RESPONSE", `{"success":true,"network":"eip155:1","transaction":"0x12"}`)
	receipt, err := rail.Receipt(resp, grant)
	fmt.Println(receipt.Claim, receipt.Code, err)
	// Output: none receipt_of_another_network <nil>
}

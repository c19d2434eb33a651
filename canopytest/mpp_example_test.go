package canopytest_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// A seller of MPP on a Tempo network: what moved, and what moving it cost.
func ExampleMPP() {
	clock := canopytest.NewStillClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	tempo := canopytest.NewChain(canopytest.ChainConfig{ID: payment.TempoTest, Clock: clock})
	payer := newWallet() // in your test: the signer that your client is given
	tempo.Fund(payer.Address(), 5*payment.Dollar)

	seller := canopytest.NewSeller(tempo, canopytest.SellerConfig{
		Protocol: canopytest.MPP,
		Routes:   []canopytest.Route{{Pattern: "GET /report", Price: 2 * payment.Cent}},
		Faults:   canopytest.Plan{canopytest.Nth(2, canopytest.SettleAndAnswerAgain())},
	})
	server := httptest.NewServer(seller) // in a test: seller.Start(t)
	defer server.Close()

	for range 2 {
		resp, err := charge(server.URL+"/report", tempo, payer) // in your test: client.HTTPClient().Get
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(resp.StatusCode, "spent", tempo.Spent(payer.Address()), "of it fees", tempo.Fees(payer.Address()))
	}
	fmt.Printf("%+v\n", seller.Count("GET /report"))
	// Output:
	// 200 spent $0.026268 of it fees $0.006268
	// 402 spent $0.047345 of it fees $0.007345
	// {Requests:4 Paid:2 Served:2 Settled:2}
}

// A route that is sold on both rails: a dollar on Base by x402, or one on Tempo
// by MPP.
func ExampleProtocol() {
	base, tempo := canopytest.NewChain(canopytest.ChainConfig{}), canopytest.NewChain(canopytest.ChainConfig{ID: payment.Tempo})
	seller := canopytest.NewSeller(base, canopytest.SellerConfig{
		Protocol: canopytest.X402 | canopytest.MPP,
		Routes:   []canopytest.Route{{Pattern: "GET /", Price: payment.Dollar, Also: []canopytest.Accept{{Chain: tempo}}}},
	})
	w := httptest.NewRecorder()
	seller.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	terms, err := firstTerms(w.Result())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Code, terms["amount"], "on", terms["network"])
	request := regexp.MustCompile(`request="([^"]*)"`).FindStringSubmatch(w.Header().Get("WWW-Authenticate"))
	raw, err := base64.RawURLEncoding.DecodeString(request[1])
	fmt.Println(string(raw), err)
	// Output:
	// 402 1000000 on eip155:8453
	// {"amount":"1000000","currency":"0x20c0000000000000000000000000000000000000","methodDetails":{"chainId":4217},"recipient":"0x81b701526a513316435d5dd9511d9052cddb3693"} <nil>
}

// charge is a buyer in a few lines: it pays whatever it is asked, on the expiring
// nonce.
func charge(url string, chain *canopytest.Chain, payer wallet) (*http.Response, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	params := map[string]string{}
	for _, m := range regexp.MustCompile(`(\w+)="([^"]*)"`).FindAllStringSubmatch(resp.Header.Get("WWW-Authenticate"), -1) {
		params[m[1]] = m[2]
	}
	raw, err := base64.RawURLEncoding.DecodeString(params["request"])
	if err != nil {
		return nil, err
	}
	var request struct{ Amount, Recipient string }
	if err := json.Unmarshal(raw, &request); err != nil {
		return nil, err
	}
	amount, err := payment.ParseUnits(request.Amount)
	if err != nil {
		return nil, err
	}
	to, err := payment.ParseAddress(request.Recipient)
	if err != nil {
		return nil, err
	}
	var memo [32]byte
	copy(memo[:], append(crypto.Keccak256([]byte("mpp"))[:4], 1))
	copy(memo[5:], crypto.Keccak256([]byte(params["realm"]))[:10])
	copy(memo[25:], crypto.Keccak256([]byte(params["id"]))[:7])
	units, _ := amount.Uint64()
	tx := newTempoTx(chain, memoCall(chain.Dollar().Address, to, units, memo)).expiring()
	credential, err := json.Marshal(map[string]any{
		"challenge": params, "payload": map[string]string{"type": "transaction", "signature": "0x" + hex.EncodeToString(payer.raw(tx))},
	})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Payment "+base64.RawURLEncoding.EncodeToString(credential))
	if resp, err = client.Do(req); err == nil {
		resp.Body.Close()
	}
	return resp, err
}

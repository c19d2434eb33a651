// Webhook holds a payment until a person answers in a chat: a webhook tells a
// receiver, the receiver shows it with two buttons as a Slack app would, and the
// answer comes back with the person's credential. It runs offline.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
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
approvers     = ["ana", "ben"]
allow         = ["host:127.0.0.1"]
`

// A key for this example only.
const exampleKey = "0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		log.Fatal("webhook: ", err)
	}
}

func run(ctx context.Context) error {
	store := ledger.NewMemory(ledger.Options{})

	// The operator lets two people rule. Each gets a credential, told once.
	register, err := approvals.NewRegister(store, nil)
	if err != nil {
		return err
	}
	people := map[string]approvals.Credential{}
	for id, name := range map[string]string{"U01ANA": "ana", "U02BEN": "ben"} {
		if people[id], err = register.Add(ctx, name); err != nil {
			return err
		}
	}

	// Where answers come in. In the binary, canopy dashboard has it.
	answers := httptest.NewServer(approvals.NewAnswers(approvals.NewDesk(store, "webhook", nil)))
	defer answers.Close()

	// The receiver, which knows the people and the secret.
	var random [32]byte
	rand.Read(random[:])
	secret, err := approvals.ParseHookSecret("whsec_" + base64.StdEncoding.EncodeToString(random[:]))
	if err != nil {
		return err
	}
	shown := make(chan []byte, 8)
	signing := []byte(rand.Text())
	chat := &receiver{secret: secret, signing: signing, answers: answers.URL, people: people, post: func(m []byte) { shown <- m }, seen: map[string]bool{}}
	hooks := httptest.NewServer(chat)
	defer hooks.Close()
	buttons := httptest.NewServer(http.HandlerFunc(chat.interact))
	defer buttons.Close()

	// The agent's program. It holds the webhook's secret, and no credential.
	webhook, err := approvals.NewWebhook(approvals.WebhookConfig{URL: hooks.URL, Secret: secret, Store: store})
	if err != nil {
		return err
	}
	client, url, done, err := agent(store, webhook)
	if err != nil {
		return err
	}
	defer done()

	paid := make(chan error, 1)
	go func() { paid <- fetch(ctx, client, url) }()

	// The person reads, and clicks.
	message := <-shown
	fmt.Printf("The chat shows:\n%s\n", indented(message))
	for _, person := range []string{"U99EVE", "U01ANA"} {
		said, err := press(buttons.URL, signing, person, message)
		if err != nil {
			return err
		}
		fmt.Printf("%s clicks Approve: %s", person, said)
	}
	fmt.Println("The call that waited goes on:")
	if err := <-paid; err != nil {
		return err
	}
	if err := webhook.Deliver(ctx); err != nil { // canopy dashboard does so on its own
		return err
	}
	fmt.Printf("The chat shows:\n%s\n", indented(<-shown))
	return nil
}

// agent is a client that buys from a seller of reports, on a chain in memory.
func agent(store ledger.Store, webhook approvals.Channel) (client *canopy.Client, url string, done func(), err error) {
	key, err := signer.FromHex(exampleKey)
	if err != nil {
		return nil, "", nil, err
	}
	chain := canopytest.NewChain(canopytest.ChainConfig{})
	chain.Fund(key.Address(), 100*payment.Dollar)
	seller := httptest.NewServer(canopytest.NewSeller(chain, canopytest.SellerConfig{
		Routes: []canopytest.Route{{Pattern: "GET /report", Price: 7*payment.Dollar + 50*payment.Cent}},
	}))
	rules, err := policy.Parse("webhook", []byte(document))
	if err != nil {
		return nil, "", nil, err
	}
	rail, err := x402.New(x402.Config{})
	if err != nil {
		return nil, "", nil, err
	}
	client, err = canopy.New(canopy.Config{
		Agent: "researcher", Treasury: canopy.Treasury{Signer: key, Chains: []canopy.Chain{chain}},
		Policy: rules, Store: store, Rails: []canopy.Rail{rail}, Channels: []approvals.Channel{webhook},
	})
	return client, seller.URL + "/report", seller.Close, err
}

// fetch buys url and waits for a person where the policy asks one.
func fetch(ctx context.Context, client *canopy.Client, url string) error {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Fetch(ctx, req, canopy.WithPurpose("numbers for the report"), canopy.WithWait(30*time.Second))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	paid, _ := canopy.PaymentOf(resp)
	fmt.Printf("   PAID     %s, the seller answers %s\n", paid.Amount, resp.Status)
	return nil
}

// press clicks Approve in a message, as Slack tells it, and returns what the
// person reads then.
func press(target string, signing []byte, person string, message []byte) (string, error) {
	var m struct {
		Blocks []struct {
			Elements []struct {
				ActionID string `json:"action_id"`
				Value    string `json:"value"`
			}
		}
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return "", err
	}
	payload, err := json.Marshal(map[string]any{"user": map[string]any{"id": person}, "actions": m.Blocks[len(m.Blocks)-1].Elements[:1]})
	if err != nil {
		return "", err
	}
	body := url.Values{"payload": {string(payload)}}.Encode()
	req, err := http.NewRequest(http.MethodPost, target, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("X-Slack-Request-Timestamp", stamp)
	req.Header.Set("X-Slack-Signature", slackSignature(signing, stamp, []byte(body)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	return string(said), err
}

func indented(b []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, b, "   ", "  ") != nil {
		return string(b)
	}
	return "   " + out.String()
}

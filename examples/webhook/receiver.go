package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/payment"
)

// receiver stands between the webhook and the chat. It holds the credentials of
// the people who may rule: run it apart from the agent, as another user or on
// another machine.
type receiver struct {
	secret  approvals.HookSecret
	signing []byte                          // the Slack app's signing secret
	answers string                          // where answers go
	people  map[string]approvals.Credential // by the chat's id of a person
	post    func(message []byte)            // to the chat

	mu   sync.Mutex
	seen map[string]bool // deliveries may come twice
}

// click is what a button carries: the terms that were shown go with it.
type click struct {
	ApprovalID payment.ApprovalID `json:"approvalId"`
	TermsHash  payment.Hash       `json:"termsHash"`
	Approve    bool               `json:"approve"`
}

// ServeHTTP takes deliveries of the webhook.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 64<<10))
	if err != nil || r.secret.Verify(req.Header, body, time.Now()) != nil {
		http.Error(w, "not from our webhook", http.StatusUnauthorized)
		return
	}
	if r.known(req.Header.Get("Webhook-Id")) {
		return
	}
	var m approvals.Message
	if err := json.Unmarshal(body, &m); err != nil {
		http.Error(w, "not a message", http.StatusBadRequest)
		return
	}
	message, err := slackMessage(m)
	if err != nil {
		http.Error(w, "cannot be shown", http.StatusInternalServerError)
		return
	}
	r.post(message)
}

func (r *receiver) known(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.seen[id]
	r.seen[id] = true
	return known
}

// interact takes what Slack posts when somebody clicks a button.
func (r *receiver) interact(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 64<<10))
	if err != nil || !slackSigned(r.signing, req.Header, body, time.Now()) {
		http.Error(w, "not from Slack", http.StatusUnauthorized)
		return
	}
	form, err := url.ParseQuery(string(body))
	var payload struct {
		User    struct{ ID string }
		Actions []struct{ Value string }
	}
	var c click
	if err == nil {
		err = json.Unmarshal([]byte(form.Get("payload")), &payload)
	}
	if err == nil && len(payload.Actions) == 1 {
		err = json.Unmarshal([]byte(payload.Actions[0].Value), &c)
	}
	if err != nil || c.ApprovalID == "" {
		http.Error(w, "no button of ours", http.StatusBadRequest)
		return
	}
	if err := r.answer(payload.User.ID, c); err != nil {
		fmt.Fprintln(w, err) // whoever clicked reads it
		return
	}
	fmt.Fprintln(w, "recorded")
}

// answer rules for the person who clicked, with that person's credential.
func (r *receiver) answer(person string, c click) error {
	credential, ok := r.people[person]
	if !ok {
		return errors.New("this person may not rule")
	}
	body, err := json.Marshal(map[string]any{
		"approvalId": c.ApprovalID, "approve": c.Approve, "termsHash": c.TermsHash, "credential": credential.Reveal(), "reason": "in the chat",
	})
	if err != nil {
		return err
	}
	resp, err := http.Post(r.answers, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("the answer was not taken: %s", said)
	}
	return nil
}

//go:build e2e

// Package commits makes payments on a ledger and says of each step that it was answered: the work of which the
// power-loss test records what it asks of the disk.
package commits

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/sqlite"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

const (
	alone    = 230 // payments one after another, two commits each
	payers   = 4   // then so many at once, whose steps share commits
	together = 25  // payments of each
)

// Payments is how many Run makes.
const Payments = alone + payers*together

// Price of each, in dollars.
const Price = payment.Dollar

// Account pays for all of them.
var Account = payment.Address{19: 0xa1}

// Limit has room for one payment more than Run makes.
var Limit = policy.Limit{
	Scope: policy.Scope{Kind: policy.ScopeOrg}, USD: (Payments + 1) * Price, Text: "cap",
	Window: policy.Window{Kind: policy.Rolling, Length: 24 * time.Hour},
}

// Request is the n-th payment, allowed as far as Limit has room.
func Request(n int64) ledger.Request {
	now := time.Now()
	terms := payment.Terms{
		Rail: "x402", Scheme: "exact",
		Asset: payment.Asset{
			Chain: payment.Base, Address: payment.Address{19: 0xcc}, Symbol: "USDC", Decimals: 6, Name: "USD Coin", Version: "2",
		},
		Recipients: []payment.Recipient{{Address: payment.Address{19: 0x77}, Amount: payment.UnitsOf(1_000_000)}},
		Amount:     payment.UnitsOf(1_000_000),
		Method:     "GET", Origin: "https://feed.example", Target: fmt.Sprint("/", n), Validity: time.Minute,
	}
	return ledger.Request{
		Payment: payment.Payment{ID: payment.NewID(now), Agent: "trader", Terms: terms, Host: "feed.example", Port: 443},
		Verdict: policy.Verdict{
			Status: payment.Allowed, Cost: terms.Cost(), MaxValidity: time.Minute, DuplicateWindow: 10 * time.Minute, Limits: []policy.Limit{Limit},
		},
		Payer: Account, Now: now, Began: now, Validity: time.Minute, Key: fmt.Sprint("key-", n), Slot: payment.Slot{Kind: payment.SlotEVM},
		Fingerprint: sha256.Sum256([]byte(terms.Target)),
		Offer:       payment.Offer{Echo: make([]byte, 3000)}, // so that the log fills up on the way
	}
}

// Run makes all payments and writes "reserved ID" and "claimed ID" to out as soon as each step was answered.
func Run(path, state string, out io.Writer) error {
	s, err := sqlite.Open(path, sqlite.Options{StateDir: state, Account: Account})
	if err != nil {
		return err
	}
	var n atomic.Int64
	for range alone {
		if err := pay(s, n.Add(1), out); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	errs := make(chan error, payers)
	for range payers {
		wg.Go(func() {
			for range together {
				if err := pay(s, n.Add(1), out); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return s.Close()
	}
}

func pay(s ledger.Store, n int64, out io.Writer) error {
	e, _, err := s.Reserve(context.Background(), Request(n))
	if err != nil {
		return err
	}
	if e.State != ledger.Authorized {
		return fmt.Errorf("payment %d is %v: %v", n, e.State, e.Reasons)
	}
	if _, err := fmt.Fprintln(out, "reserved", e.ID); err != nil {
		return err
	}
	_, err = s.Advance(context.Background(), ledger.Change{
		ID: e.ID, Version: e.Version, To: ledger.Claimed, By: ledger.ByClient, Now: time.Now(), Sent: 1, HTTP: 200, Delivered: true,
		Receipt: &payment.Receipt{Claim: payment.ClaimPaid, TxHash: fmt.Sprintf("0x%064x", n), Amount: e.Terms.Amount},
	})
	if err == nil {
		_, err = fmt.Fprintln(out, "claimed", e.ID)
	}
	return err
}

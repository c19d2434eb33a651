//go:build e2e

package e2e

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// MPPSeller is a running mppx server on a Tempo network. GET /dual is sold by @x402/express on the chain with
// the ID of Base too, and GET /evm by mppx on that chain.
type MPPSeller struct {
	*Seller
	Partner common.Address // of /splits
	Sponsor common.Address // pays the fee of /sponsored, and gets a split of /splits
}

// NewMPPSeller starts one with a payee of its own. It ends with the test.
func NewMPPSeller(t testing.TB, c *Tempo, rpc string) *MPPSeller {
	t.Helper()
	s, err := startMPPSeller(c, rpc)
	if err != nil {
		t.Fatalf("starting a seller: %v", err)
	}
	t.Cleanup(s.process.stop)
	return s
}

func startMPPSeller(c *Tempo, rpc string) (*MPPSeller, error) {
	var made [4]Account
	for i := range made {
		var err error
		if made[i], err = newAccount(); err != nil {
			return nil, err
		}
	}
	payee, partner, sponsor, facilitator := made[0], made[1], made[2], made[3]
	if err := shared.Chain.fund(facilitator.Address); err != nil {
		return nil, err
	}
	if err := c.give(context.Background(), sponsor.Address, 100_000_000); err != nil {
		return nil, err
	}
	p, ready, err := startProcess(
		[]string{"FACILITATOR_KEY=" + facilitator.HexKey(), "SPONSOR_KEY=" + sponsor.HexKey()}, "mppseller.mjs",
		"--rpc", rpc, "--base-rpc", shared.Chain.URL, "--pay-to", payee.Address.Hex(), "--partner", partner.Address.Hex(),
	)
	if err != nil {
		return nil, err
	}
	return &MPPSeller{
		Seller:  &Seller{URL: ready.URL, PayTo: ready.PayTo, Facilitator: ready.Facilitator, process: p},
		Partner: partner.Address, Sponsor: sponsor.Address,
	}, nil
}

// mppPeers are the Tempo network and the seller that the tests share. They are started when the first test asks
// for them; TestMain stops them.
type mppPeers struct {
	Chain  *Tempo
	Seller *MPPSeller
}

var sharedMPP struct {
	mu    sync.Mutex
	peers *mppPeers
	err   error
}

// tempoPeers returns the shared peers of the second rail.
func tempoPeers(t testing.TB) *mppPeers {
	t.Helper()
	s := &sharedMPP
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peers == nil && s.err == nil {
		s.peers, s.err = startMPPPeers()
	}
	if s.err != nil {
		t.Fatalf("starting the peers of MPP: %v", s.err)
	}
	return s.peers
}

func startMPPPeers() (*mppPeers, error) {
	c, err := startTempo()
	if err != nil {
		return nil, err
	}
	s, err := startMPPSeller(c, c.URL)
	if err != nil {
		c.process.stop()
		return nil, err
	}
	return &mppPeers{c, s}, nil
}

// stopMPP ends the shared peers.
func stopMPP() {
	s := &sharedMPP
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.peers; p != nil {
		p.Seller.process.stop()
		p.Chain.process.stop()
	}
	s.peers, s.err = nil, errors.New("the tests are over")
}

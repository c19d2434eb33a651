package main

import (
	"context"
	"fmt"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/internal/permit"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/signer"
)

// keySigner is the one key of the world as a process holds it. It hands over
// before and after it signs, and tells the oracle and the chain what it signed.
type keySigner struct {
	p     *proc
	key   *signer.Key
	local bool
}

// localSigner says that it is a signer of this module; others are recovered.
type localSigner struct{ keySigner }

func (localSigner) Local() permit.Local { return permit.Local{} }

const (
	simKey   = "0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"
	otherKey = "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a"
)

func (w *world) treasury(p *proc) canopy.Treasury {
	s := keySigner{p, w.key.WithNow(p.now), p.n%3 != 2}
	t := canopy.Treasury{Signer: s}
	if s.local {
		t.Signer = localSigner{s}
	}
	for _, c := range w.chains {
		if len(c.nodes) > 0 {
			t.Chains = append(t.Chains, nodes{w, c})
		}
	}
	return t
}

func (s keySigner) Address() payment.Address { return s.key.Address() }

func (s keySigner) Deterministic() bool { return true }

func (s keySigner) Sign(ctx context.Context, p payment.Permit, digest [32]byte) ([]byte, error) {
	w, t := s.p.w, taskOf(ctx)
	w.yield(t, "sign")
	if w.chance(w.setup.rate(400)) {
		w.note("%s: the signer fails", t)
		return nil, fmt.Errorf("sim: the signer failed")
	}
	sig, err := s.key.Sign(ctx, p, digest)
	if err == nil {
		w.oracle.signed(t, p.Slot(), digest, string(sig))
		if !s.local && w.chance(w.setup.rate(80)) {
			w.note("%s: another key signs", t)
			sig, err = w.other.WithNow(s.p.now).Sign(ctx, p, digest)
		}
	}
	w.yield(t, "signed")
	return sig, err
}

func mustPayer() payment.Address {
	k, err := signer.FromHex(simKey)
	if err != nil {
		panic(err)
	}
	return k.Address()
}

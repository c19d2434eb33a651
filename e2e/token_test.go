//go:build e2e

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// TestTokenRules holds the dollar to the EIP-3009 rules of FiatTokenV2_2, by real signatures.
func TestTokenRules(t *testing.T) {
	const unit = 1_000_000
	ctx := context.Background()
	c := NewChain(t)
	payee := NewAccount(t).Address

	// fresh is an authorization that the token takes, from a payer of its own.
	fresh := func(t *testing.T) (Account, authorization) {
		payer := c.Payer(t, 5*unit)
		return payer, authorization{
			from: payer.Address, to: payee, value: unit,
			validBefore: uint64(c.Now(t)) + 3600, nonce: newNonce(t),
		}
	}
	transfer := func(t *testing.T, payer Account, a authorization) []byte {
		return a.packVRS("transferWithAuthorization", payer.sign(t, a.digest(c.domain(), "TransferWithAuthorization")))
	}
	refused := func(t *testing.T, from common.Address, data []byte, reason string) {
		t.Helper()
		_, err := c.Send(ctx, from, data)
		var rpc *RPCError
		if !errors.As(err, &rpc) || !strings.Contains(rpc.Message, reason) {
			t.Errorf("got %v, want %q", err, reason)
		}
	}

	t.Run("domain", func(t *testing.T) {
		// The separator of USDC on Base.
		const want = "0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f"
		if got := hexutil.Encode(c.call(t, pack("DOMAIN_SEPARATOR()"))); got != want {
			t.Errorf("DOMAIN_SEPARATOR %s, want %s", got, want)
		}
		if by := c.domain().separator(); hexutil.Encode(by[:]) != want {
			t.Errorf("laid by hand: %x, want %s", by, want)
		}
	})

	for name, encode := range map[string]func(a authorization, sig []byte) []byte{
		"v r s": func(a authorization, sig []byte) []byte { return a.packVRS("transferWithAuthorization", sig) },
		"bytes": func(a authorization, sig []byte) []byte { return a.packBytes("transferWithAuthorization", sig) },
	} {
		t.Run("moves once, signature as "+name, func(t *testing.T) {
			payer, a := fresh(t)
			data := encode(a, payer.sign(t, a.digest(c.domain(), "TransferWithAuthorization")))
			if c.AuthorizationState(t, a.from, a.nonce) {
				t.Error("used before it was sent")
			}
			c.Moves(t, payee, unit, func() {
				r, err := c.Send(ctx, c.Faucet, data)
				if err != nil || len(r.Logs) != 2 {
					t.Fatalf("receipt %+v, %v: want two logs", r, err)
				}
				want := common.Hash(keccak([]byte("AuthorizationUsed(address,bytes32)")))
				if got := r.Logs[0].Topics; got[0] != want || got[2] != a.nonce {
					t.Errorf("first log %v, want AuthorizationUsed with the nonce", got)
				}
			})
			if !c.AuthorizationState(t, a.from, a.nonce) {
				t.Error("not marked as used")
			}
			refused(t, c.Faucet, data, "FiatTokenV2: authorization is used or canceled")
			other := a
			other.value = 2 * unit
			refused(t, c.Faucet, transfer(t, payer, other), "FiatTokenV2: authorization is used or canceled")
		})
	}

	t.Run("two of one nonce in one block", func(t *testing.T) {
		payer, a := fresh(t)
		b := a
		b.value = 2 * unit
		c.Moves(t, payee, unit, func() {
			release := c.HoldBlocks(t)
			var hashes [2]common.Hash
			for i, data := range [][]byte{transfer(t, payer, a), transfer(t, payer, b)} {
				c.do(t, &hashes[i], "eth_sendTransaction", map[string]any{
					"from": c.Faucet, "to": c.Token, "data": hexutil.Bytes(data), "gas": hexutil.Uint64(500_000),
				})
			}
			release()
			for i, want := range []hexutil.Uint64{1, 0} {
				var r Receipt
				c.do(t, &r, "eth_getTransactionReceipt", hashes[i])
				if r.Status != want {
					t.Errorf("status of %d is %d, want %d", i, r.Status, want)
				}
			}
		})
	})

	t.Run("its time, strictly", func(t *testing.T) {
		for _, tc := range []struct {
			name          string
			after, before int64 // from the block's time
			status        hexutil.Uint64
		}{
			{"after now", 0, 10, 0},
			{"after a second ago", -1, 10, 1},
			{"before now", -10, 0, 0},
			{"before the next second", -10, 1, 1},
		} {
			payer, a := fresh(t)
			now := c.Now(t) + 5
			a.validAfter, a.validBefore = uint64(now+tc.after), uint64(now+tc.before)
			c.SetNextTime(t, now)
			r, err := c.SendAnyway(ctx, c.Faucet, transfer(t, payer, a))
			if err != nil || r.Status != tc.status {
				t.Errorf("valid %s: status %d, %v, want %d", tc.name, r.Status, err, tc.status)
			}
			if c.Now(t) != now {
				t.Errorf("mined at %d, want %d", c.Now(t), now)
			}
		}
		payer, a := fresh(t)
		a.validAfter = a.validBefore - 1
		refused(t, c.Faucet, transfer(t, payer, a), "FiatTokenV2: authorization is not yet valid")
		a.validAfter, a.validBefore = 0, uint64(c.Now(t))-10
		refused(t, c.Faucet, transfer(t, payer, a), "FiatTokenV2: authorization is expired")
	})

	t.Run("signatures", func(t *testing.T) {
		payer, a := fresh(t)
		digest := a.digest(c.domain(), "TransferWithAuthorization")
		good := payer.sign(t, digest)
		low := append([]byte(nil), good...)
		low[64] -= 27
		stranger := NewAccount(t).sign(t, digest)
		other := c.domain()
		other.chainID = 1
		elsewhere := payer.sign(t, a.digest(other, "TransferWithAuthorization"))
		for _, tc := range []struct {
			name, reason string
			sig          []byte
		}{
			{"high s", "ECRecover: invalid signature 's' value", highS(good)},
			{"v of 0 or 1", "ECRecover: invalid signature 'v' value", low},
			{"a stranger's", "FiatTokenV2: invalid signature", stranger},
			{"another chain's", "FiatTokenV2: invalid signature", elsewhere},
		} {
			t.Run(tc.name, func(t *testing.T) {
				refused(t, c.Faucet, a.packVRS("transferWithAuthorization", tc.sig), tc.reason)
				refused(t, c.Faucet, a.packBytes("transferWithAuthorization", tc.sig), tc.reason)
			})
		}
		refused(t, c.Faucet, a.packBytes("transferWithAuthorization", good[:64]), "ECRecover: invalid signature length")
		changed := a
		changed.to = c.Faucet
		refused(t, c.Faucet, changed.packVRS("transferWithAuthorization", good), "FiatTokenV2: invalid signature")
		if c.AuthorizationState(t, a.from, a.nonce) {
			t.Error("a refused signature used the nonce")
		}
	})

	t.Run("balance", func(t *testing.T) {
		payer, a := fresh(t)
		a.value = 6 * unit
		data := transfer(t, payer, a)
		refused(t, c.Faucet, data, "ERC20: transfer amount exceeds balance")
		if r, err := c.SendAnyway(ctx, c.Faucet, data); err != nil || r.Status != 0 {
			t.Errorf("status %d, %v, want 0", r.Status, err)
		}
		if c.AuthorizationState(t, a.from, a.nonce) {
			t.Error("a reverted transfer used the nonce")
		}
		c.Mint(t, payer.Address, unit)
		c.Moves(t, payee, 6*unit, func() {
			if _, err := c.Send(ctx, c.Faucet, data); err != nil {
				t.Error(err)
			}
		})
	})

	t.Run("receive", func(t *testing.T) {
		payer, a := fresh(t)
		sig := payer.sign(t, a.digest(c.domain(), "ReceiveWithAuthorization"))
		refused(t, c.Faucet, a.packVRS("receiveWithAuthorization", sig), "FiatTokenV2: caller must be the payee")
		refused(t, c.Faucet, a.packVRS("transferWithAuthorization", sig), "FiatTokenV2: invalid signature")
		c.Impersonate(t, payee)
		c.Moves(t, payee, unit, func() {
			if _, err := c.Send(ctx, payee, a.packBytes("receiveWithAuthorization", sig)); err != nil {
				t.Error(err)
			}
		})
		refused(t, payee, a.packVRS("receiveWithAuthorization", sig), "FiatTokenV2: authorization is used or canceled")
	})

	t.Run("cancel", func(t *testing.T) {
		payer, a := fresh(t)
		sig := payer.sign(t, c.domain().cancelDigest(a.from, a.nonce))
		cancel := pack("cancelAuthorization(address,bytes32,uint8,bytes32,bytes32)",
			a.from, a.nonce, uint64(sig[64]), [32]byte(sig[:32]), [32]byte(sig[32:64]))
		stranger := NewAccount(t).sign(t, c.domain().cancelDigest(a.from, a.nonce))
		refused(t, c.Faucet, pack("cancelAuthorization(address,bytes32,bytes)", a.from, a.nonce, stranger),
			"FiatTokenV2: invalid signature")
		r, err := c.Send(ctx, c.Faucet, cancel)
		if err != nil || len(r.Logs) != 1 || r.Logs[0].Topics[0] != keccak([]byte("AuthorizationCanceled(address,bytes32)")) {
			t.Errorf("receipt %+v, %v: want AuthorizationCanceled", r, err)
		}
		if !c.AuthorizationState(t, a.from, a.nonce) {
			t.Error("not marked as cancelled")
		}
		refused(t, c.Faucet, transfer(t, payer, a), "FiatTokenV2: authorization is used or canceled")
		refused(t, c.Faucet, cancel, "FiatTokenV2: authorization is used or canceled")
		if got := c.AuthorizationsUsed(t, a.from); got != 0 {
			t.Errorf("%d authorizations used, want 0", got)
		}
	})

	t.Run("finality", func(t *testing.T) {
		at := c.BlockNumber(t, "latest")
		c.Mine(t, 2)
		if got := c.BlockNumber(t, "finalized"); got < at {
			t.Errorf("finalized %d after two more blocks, want at least %d", got, at)
		}
	})
}

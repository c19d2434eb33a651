package canopytest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/canopy-go/canopy/internal/eip1559"
	"github.com/canopy-go/canopy/payment"
)

// CarriedTx is a transaction of an account's own on an EVM chain: of type 2, with
// an authorization of EIP-3009 in it.
type CarriedTx struct {
	Hash     string
	Sender   payment.Address
	Nonce    uint64
	GasLimit uint64
	MaxFee   uint64 // for each unit of gas, in the smallest unit of the chain's coin
	MaxTip   uint64
	Token    payment.Address // that it calls

	Mined bool
	Err   error         // why it failed in its block, as a token words it; nil where it moved the money
	Paid  payment.Units // for gas, where it is mined
}

// Errors of a node that takes no transaction of an account's own.
var (
	ErrRaw         = errors.New("canopytest: failed to decode signed transaction")
	ErrNonceLow    = errors.New("canopytest: nonce too low")
	ErrUnderpriced = errors.New("canopytest: replacement transaction underpriced")
	ErrGasCoin     = errors.New("canopytest: insufficient funds for gas * price + value")
)

// errCall is why a call of something else than transferWithAuthorization fails.
var errCall = errors.New("canopytest: execution reverted")

const carriedGas = 85_000 // that a transfer by authorization uses

// carriedState is what an EVM chain knows of accounts beside their tokens.
type carriedState struct {
	baseFee uint64
	tip     uint64
	coins   map[payment.Address]payment.Units
	nonces  map[payment.Address]uint64
	all     []*transaction // that were taken, in order
}

// FundCoin gives account so much of the chain's own coin, in its smallest unit.
func (c *Chain) FundCoin(account payment.Address, amount payment.Units) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum, ok := c.carried.coins[account].Add(amount)
	if !ok {
		panic("canopytest: more coin than there can be")
	}
	c.carried.coins[account] = sum
}

// Coin is what account holds of the chain's own coin.
func (c *Chain) Coin(account payment.Address) payment.Units {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.carried.coins[account]
}

// SetBaseFee sets the price of gas: what pays less waits. At first it is 10^9,
// beside a usual tip of 10^6.
func (c *Chain) SetBaseFee(price uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.carried.baseFee = price
}

// Carried are the transactions of accounts' own that the chain was given and
// took, in order.
func (c *Chain) Carried() []CarriedTx {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	out := make([]CarriedTx, len(c.carried.all))
	for i, tx := range c.carried.all {
		out[i] = *tx.carried
		out[i].Mined, out[i].Err = tx.mined, tx.err
	}
	return out
}

// Gas is what a transaction of account's would need now.
func (c *Chain) Gas(ctx context.Context, account payment.Address, size int) (payment.GasQuote, error) {
	if err := c.reading(ctx, "gas"); err != nil {
		return payment.GasQuote{}, err
	}
	defer c.mu.Unlock()
	if c.tempo.on {
		return payment.GasQuote{}, fmt.Errorf("canopytest: gas: %s has no coin of its own", c.id)
	}
	s := &c.carried
	return payment.GasQuote{
		Nonce: c.pendingNonce(account), Mined: s.nonces[account], Coin: s.coins[account], BaseFee: s.baseFee, Tip: s.tip,
	}, nil
}

// pendingNonce is the account's next nonce after all that waits in turn.
func (c *Chain) pendingNonce(account payment.Address) uint64 {
	next := c.carried.nonces[account]
	for slices.ContainsFunc(c.pool, func(tx *transaction) bool {
		return tx.carried != nil && tx.carried.Sender == account && tx.carried.Nonce == next
	}) {
		next++
	}
	return next
}

// submitCarried is a node's opinion of raw on an EVM chain, and puts it in.
func (c *Chain) submitCarried(raw []byte) (string, error) {
	t, sender, err := eip1559.Decode(raw)
	if err != nil {
		return "", fmt.Errorf("%w: %v", ErrRaw, err)
	}
	in := &CarriedTx{
		Hash: hashOf(raw), Sender: sender, Nonce: t.Nonce, GasLimit: t.GasLimit, MaxFee: t.MaxFee, MaxTip: t.MaxTip, Token: t.To,
	}
	number, _ := c.id.Number()
	most, ok := (payment.Carry{GasLimit: t.GasLimit, MaxFee: t.MaxFee}).Cost()
	known := c.byHash[in.Hash]
	switch {
	case known != nil && (known.mined || slices.Contains(c.pool, known)):
		return in.Hash, ErrImported
	case t.ChainID != number:
		return in.Hash, ErrOtherChain
	case t.MaxTip > t.MaxFee || t.GasLimit < 21_000:
		return in.Hash, fmt.Errorf("%w: the fees or the gas", ErrRaw)
	case t.Nonce < c.carried.nonces[sender]:
		return in.Hash, ErrNonceLow
	case !ok || c.carried.coins[sender].Cmp(most) < 0:
		return in.Hash, ErrGasCoin
	}
	at := slices.IndexFunc(c.pool, func(tx *transaction) bool {
		return tx.carried != nil && tx.carried.Sender == in.Sender && tx.carried.Nonce == in.Nonce
	})
	tx := &transaction{kind: txCarried, carried: in, hash: in.Hash, auth: authorizationOf(t)}
	if at >= 0 {
		old := c.pool[at].carried
		if in.MaxFee < old.MaxFee+old.MaxFee/10 || in.MaxTip < old.MaxTip+old.MaxTip/10 {
			return in.Hash, ErrUnderpriced
		}
		c.pool[at] = tx
	} else {
		c.pool = append(c.pool, tx)
	}
	c.byHash[in.Hash] = tx
	c.carried.all = append(c.carried.all, tx)
	return in.Hash, nil
}

func hashOf(raw []byte) string {
	h := eip1559.Hash(raw)
	return "0x" + hex.EncodeToString(h[:])
}

// authorizationOf reads the call of transferWithAuthorization with v, r and s;
// one of another call moves nothing.
func authorizationOf(t eip1559.Transaction) Authorization {
	const words = 9
	call := selector("transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)")
	if len(t.Input) != 4+32*words || [4]byte(t.Input) != call {
		return Authorization{}
	}
	var w [words][32]byte
	for i := range w {
		copy(w[i][:], t.Input[4+32*i:])
	}
	return Authorization{
		Token: t.To, From: payment.Address(w[0][12:]), To: payment.Address(w[1][12:]), Value: payment.UnitsFromBytes(w[2]),
		ValidAfter: payment.UnitsFromBytes(w[3]), ValidBefore: payment.UnitsFromBytes(w[4]), Nonce: w[5],
		Signature: slices.Concat(w[7][:], w[8][:], w[6][31:]),
	}
}

// readyCarried decides about one that waits: in turn, and paid as the block wants.
func (c *Chain) readyCarried(tx *transaction) readiness {
	t := tx.carried
	switch next := c.carried.nonces[t.Sender]; {
	case t.Nonce < next:
		return drop
	case t.Nonce > next || t.MaxFee < c.carried.baseFee:
		return wait
	}
	return include
}

// applyCarried takes the nonce and the gas, and carries the authorization out.
func (c *Chain) applyCarried(tx *transaction) error {
	t := tx.carried
	price := min(t.MaxFee, c.carried.baseFee+t.MaxTip)
	t.Paid, _ = (payment.Carry{GasLimit: min(carriedGas, t.GasLimit), MaxFee: price}).Cost()
	left, ok := c.carried.coins[t.Sender].Sub(t.Paid)
	if !ok {
		left = payment.Units{} // it was covered when it came
	}
	c.carried.coins[t.Sender] = left
	c.carried.nonces[t.Sender]++
	if tx.auth.Token.IsZero() || t.GasLimit < carriedGas {
		return errCall
	}
	if err := c.check(tx.auth, c.head().Time); err != nil {
		return err
	}
	c.use(tx, false)
	a := tx.auth
	c.move(a.Token, a.From, a.To, a.Value)
	c.transfers = append(c.transfers, Transfer{
		Token: a.Token, From: a.From, To: a.To, Value: a.Value, Nonce: a.Nonce, TxHash: tx.hash, Block: c.stamp(),
	})
	return nil
}

// takeBackCarried gives a transaction's nonce and gas back, as its block is
// dropped.
func (c *Chain) takeBackCarried(tx *transaction) {
	t := tx.carried
	c.carried.coins[t.Sender], _ = c.carried.coins[t.Sender].Add(t.Paid)
	c.carried.nonces[t.Sender]--
	t.Paid = payment.Units{}
}

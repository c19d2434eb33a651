package canopytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// TempoRules are those of a Tempo network beyond those of any chain. The zero
// value is as the network was measured to be.
type TempoRules struct {
	// BaseFee is the price of one gas before the tip, in 1e-18 dollars. Default
	// 20 gwei.
	BaseFee uint64

	// T0 are the rules of before T1: lanes and payees take little gas, and the
	// expiring nonce is a lane like any other.
	T0 bool
}

// TempoUse is one mined transaction of Tempo.
type TempoUse struct {
	Tx       *TempoTx
	TxHash   string
	Block    Block
	Failed   bool // it moved nothing but its fee
	Fee      payment.Units
	Token    payment.Address // that the fee was paid in
	GasUsed  uint64
	GasPrice uint64

	expiring bool // its nonce was no lane's
}

// What nodes of Tempo answer to a transaction that they do not take. Nothing
// was broadcast.
var (
	ErrValidBefore  = errors.New("canopytest: Tempo tx valid_before must be > current time + 3s")
	ErrFeeBalance   = errors.New("canopytest: insufficient fee token balance")
	ErrFeePrice     = errors.New("canopytest: max fee per gas less than block base fee")
	ErrFeeToken     = errors.New("canopytest: the fee token is no dollar of this chain")
	ErrOtherChain   = errors.New("canopytest: the transaction is of another chain")
	ErrImported     = errors.New("canopytest: transaction already imported")
	ErrNoSponsor    = errors.New("canopytest: the fee payer's signature is missing")
	ErrAccessKey    = errors.New("canopytest: access keys are not known here")
	ErrIntrinsicGas = errors.New("canopytest: intrinsic gas too high -- CallGasCostMoreThanGasLimit")
	ErrTooFarAhead  = errors.New("canopytest: expiring nonce valid_before too far in the future: must be within 30s of block timestamp")
	ErrNotValidYet  = errors.New("canopytest: Tempo tx valid_after is in the future")
)

// Why a transaction of Tempo reverts, beside ErrBalance and ErrRecipient.
var (
	ErrOutOfGas = errors.New("canopytest: out of gas")
	ErrCall     = errors.New("canopytest: a call that this chain does not know")
)

// FeeManager is where fees go on Tempo.
var FeeManager = payment.Address{0xfe, 0xec}

// NoncePrecompile is where lanes are counted on Tempo.
var NoncePrecompile = payment.Address{0x4e, 0x4f, 0x4e, 0x43, 0x45}

const (
	poolMargin   = 3 * time.Second
	expiringSpan = 30 * time.Second
)

// lane is one counter of an account; the zero key is its own nonce.
type lane struct {
	account payment.Address
	key     [32]byte
}

// tempoState is what a Tempo network keeps beyond balances.
type tempoState struct {
	on      bool
	number  uint64
	rules   TempoRules
	lanes   map[lane][]uint64 // the blocks of its uses; the next nonce is how many there are
	replays map[[32]byte]bool
	uses    []TempoUse
}

// IsTempo reports whether c is a Tempo network: lanes, TIP-20 tokens, and fees
// in dollars.
func (c *Chain) IsTempo() bool { return c.tempo.on }

// Broadcast hands a signed transaction to the network, as eth_sendRawTransaction
// does, and returns its hash. A hash proves nothing: what is out of turn on its
// lane, or outside the rules of the expiring nonce, has one too and never lands.
// The same bytes again are the same transaction. A chain that mines instantly
// mines it now.
func (c *Chain) Broadcast(ctx context.Context, raw []byte) (string, error) {
	if err := c.reading(ctx, "broadcast"); err != nil {
		return "", err
	}
	defer c.mu.Unlock()
	hash, err := c.submit(raw)
	if errors.Is(err, ErrImported) {
		err = nil
	}
	if err != nil {
		return hash, fmt.Errorf("canopytest: broadcast: %w", err)
	}
	if c.mining == Instant && len(c.pool) > 0 {
		c.mine(c.clock.Now())
	}
	return hash, nil
}

// Receipt tells what became of a transaction: whether it is in a block, whether
// it succeeded there, and which block that is.
func (c *Chain) Receipt(ctx context.Context, hash string) (found, ok bool, block payment.Block, err error) {
	if err := c.reading(ctx, "receipt"); err != nil {
		return false, false, payment.Block{}, err
	}
	defer c.mu.Unlock()
	tx := c.byHash[hash]
	if tx == nil || !tx.mined {
		return false, false, payment.Block{}, nil
	}
	return true, tx.err == nil, c.blocks[tx.block].evidence(), nil
}

// submit is the pool's opinion of raw, and puts it in.
func (c *Chain) submit(raw []byte) (string, error) {
	if !c.tempo.on {
		return c.submitCarried(raw)
	}
	t, err := DecodeTempo(raw)
	if err != nil {
		return "", err
	}
	hash := t.Hash()
	if err := c.admissible(t); err != nil {
		return hash, err
	}
	if known := c.byHash[hash]; known != nil {
		if slices.Contains(c.pool, known) {
			return hash, ErrImported
		}
		if known.mined || !c.inTurn(t) {
			return hash, nil
		}
	}
	tx := &transaction{kind: txTempo, tempo: t, hash: hash}
	c.byHash[hash] = tx
	if c.inTurn(t) {
		c.pool = append(c.pool, tx)
	}
	return hash, nil
}

// admissible is what a node checks before it takes a transaction.
func (c *Chain) admissible(t *TempoTx) error {
	now := c.clock.Now()
	switch {
	case t.raw[0] != 0x76 || t.Sponsored && t.FeePayer.IsZero():
		return ErrNoSponsor
	case t.ChainID != c.tempo.number:
		return ErrOtherChain
	case t.delegated:
		return ErrAccessKey
	case t.ValidBefore > 0 && int64(t.ValidBefore) <= now.Add(poolMargin).Unix():
		return fmt.Errorf("%w (%d)", ErrValidBefore, t.ValidBefore)
	case t.MaxFee.Cmp(payment.UnitsOf(c.tempo.rules.BaseFee)) < 0:
		return ErrFeePrice
	}
	return c.feeCovered(t)
}

// feeCovered reports whether the fee payer has what the fee can be at most; the
// amount is not counted.
func (c *Chain) feeCovered(t *TempoTx) error {
	token := c.feeToken(t)
	if _, known := c.assets.Lookup(c.id, token); !known {
		return ErrFeeToken
	}
	most, ok := feeOf(t.Gas, t.MaxFee)
	have := c.balances[holding{token, t.FeePayer}]
	if !ok || have.Cmp(most) < 0 {
		return fmt.Errorf("%w: have %s, need %s", ErrFeeBalance, have, most)
	}
	return nil
}

// feeToken is the token that a fee is paid in: the one that is named, or that
// of the calls where all move one, or the chain's first.
func (c *Chain) feeToken(t *TempoTx) payment.Address {
	if !t.FeeToken.IsZero() {
		return t.FeeToken
	}
	moves, err := t.Transfers()
	if err == nil && !t.Sponsored && !slices.ContainsFunc(moves, func(m TempoTransfer) bool { return m.Token != moves[0].Token }) {
		return moves[0].Token
	}
	return pathUSD
}

// pathUSD is the dollar that every Tempo network has.
var pathUSD = payment.Address{0x20, 0xc0}

// inTurn reports whether t can ever land as things stand: its nonce is the next
// one of its lane, after those that wait, or it keeps the rules of the expiring
// nonce.
func (c *Chain) inTurn(t *TempoTx) bool {
	if c.expiring(t) {
		now := c.clock.Now()
		return t.Nonce == 0 && t.ValidBefore > 0 && int64(t.ValidBefore) <= now.Add(expiringSpan+time.Second).Unix() && !c.tempo.replays[t.replay()]
	}
	next := c.next(t.Sender, t.NonceKey)
	for {
		if t.Nonce == next {
			return true
		}
		if !slices.ContainsFunc(c.pool, func(w *transaction) bool { return w.sameNonce(t.Sender, t.NonceKey, next) }) {
			return false
		}
		next++
	}
}

func (tx *transaction) sameNonce(sender payment.Address, key [32]byte, nonce uint64) bool {
	return tx.kind == txTempo && tx.tempo.Sender == sender && tx.tempo.NonceKey == key && tx.tempo.Nonce == nonce
}

// readiness is what a block does with a transaction that waits.
type readiness uint8

const (
	include readiness = iota
	wait              // for a later block, or for another one of this block
	drop
)

// ready decides about one of the transactions that wait, in the head block.
func (c *Chain) ready(tx *transaction, waiting []*transaction) readiness {
	if tx.kind == txCarried {
		return c.readyCarried(tx)
	}
	if tx.kind != txTempo {
		return include
	}
	t, now := tx.tempo, c.head().Time.Unix()
	if t.ValidBefore > 0 && now >= int64(t.ValidBefore) {
		return drop
	}
	if now < int64(t.ValidAfter) {
		return wait
	}
	if c.expiring(t) {
		if c.tempo.replays[t.replay()] {
			return drop
		}
	} else {
		switch next := c.next(t.Sender, t.NonceKey); {
		case t.Nonce < next:
			return drop
		case t.Nonce > next:
			return wait
		}
		for _, w := range waiting {
			if w != tx && w.sameNonce(t.Sender, t.NonceKey, t.Nonce) && w.tempo.Tip.Cmp(t.Tip) > 0 && c.ready(w, nil) == include {
				return wait // the better paid one goes first
			}
		}
	}
	reserve, ok := feeOf(t.Gas, payment.UnitsOf(c.price(t)))
	if !ok || c.balances[holding{c.feeToken(t), t.FeePayer}].Cmp(reserve) < 0 {
		return drop
	}
	return include
}

// simulates is what eth_call says to t, which looks at the window, the gas limit
// and the fee, and does not carry the calls out.
func (c *Chain) simulates(t *TempoTx) error {
	now := c.clock.Now().Unix()
	switch {
	case t.ChainID != c.tempo.number:
		return ErrOtherChain
	case t.delegated:
		return ErrAccessKey
	case t.ValidBefore > 0 && int64(t.ValidBefore) <= now:
		return fmt.Errorf("%w (%d)", ErrValidBefore, t.ValidBefore)
	case int64(t.ValidAfter) > now:
		return ErrNotValidYet
	case c.expiring(t) && (t.ValidBefore == 0 || int64(t.ValidBefore) > now+int64(expiringSpan/time.Second)+1):
		return ErrTooFarAhead
	case t.Gas < c.gasFloor(t):
		return ErrIntrinsicGas
	case t.MaxFee.Cmp(payment.UnitsOf(c.tempo.rules.BaseFee)) < 0:
		return ErrFeePrice
	}
	if t.FeePayer.IsZero() {
		return nil
	}
	return c.feeCovered(t)
}

// applyTempo carries tx out in the head block. What reverts has used its nonce
// up and paid its fee.
func (c *Chain) applyTempo(tx *transaction) error {
	t := tx.tempo
	price, token := c.price(t), c.feeToken(t)
	reserve, _ := feeOf(t.Gas, payment.UnitsOf(price)) // ready has looked
	used := c.gas(t)
	if c.expiring(t) {
		c.tempo.replays[t.replay()] = true
	} else {
		l := lane{t.Sender, t.NonceKey}
		c.tempo.lanes[l] = append(c.tempo.lanes[l], c.head().Number)
	}
	err := c.carryOut(tx, token, reserve, used)
	if errors.Is(err, ErrOutOfGas) {
		used = t.Gas
	}
	fee, _ := feeOf(used, payment.UnitsOf(price))
	if !fee.IsZero() {
		c.transfer(tx, Transfer{Token: token, From: t.FeePayer, To: FeeManager, Value: fee, Fee: true})
	}
	c.tempo.uses = append(c.tempo.uses, TempoUse{
		Tx: t, TxHash: tx.hash, Block: c.stamp(), Failed: err != nil, Fee: fee, Token: token, GasUsed: used, GasPrice: price,
		expiring: c.expiring(t),
	})
	return err
}

// carryOut makes the calls, all or none, while the most that the fee can be is
// set aside.
func (c *Chain) carryOut(tx *transaction, feeToken payment.Address, reserve payment.Units, gas uint64) error {
	t := tx.tempo
	if gas > t.Gas {
		return ErrOutOfGas
	}
	moves, err := t.Transfers()
	if err != nil {
		return ErrCall
	}
	left := map[holding]payment.Units{}
	balance := func(h holding) payment.Units {
		if _, known := left[h]; !known {
			left[h] = c.balances[h]
		}
		return left[h]
	}
	payer := holding{feeToken, t.FeePayer}
	left[payer], _ = balance(payer).Sub(reserve)
	for _, m := range moves {
		from, to := holding{m.Token, t.Sender}, holding{m.Token, m.To}
		if _, known := c.assets.Lookup(c.id, m.Token); !known {
			return ErrCall
		}
		if m.To.IsZero() || [2]byte(m.To[:2]) == [2]byte{0x20, 0xc0} {
			return ErrRecipient
		}
		rest, ok := balance(from).Sub(m.Amount)
		if !ok {
			return ErrBalance
		}
		left[from] = rest
		if left[to], ok = balance(to).Add(m.Amount); !ok {
			return ErrBalance
		}
	}
	for _, m := range moves {
		c.transfer(tx, Transfer{Token: m.Token, From: t.Sender, To: m.To, Value: m.Amount, Memo: m.Memo, HasMemo: m.HasMemo})
	}
	return nil
}

// transfer moves money and records it.
func (c *Chain) transfer(tx *transaction, t Transfer) {
	t.TxHash, t.Block = tx.hash, c.stamp()
	c.move(t.Token, t.From, t.To, t.Value)
	c.transfers = append(c.transfers, t)
}

// takeBack undoes the uses from block number on, whose transfers were undone.
func (c *Chain) takeBack(number uint64) {
	s := &c.tempo
	for len(s.uses) > 0 && s.uses[len(s.uses)-1].Block.Number >= number {
		u := s.uses[len(s.uses)-1]
		s.uses = s.uses[:len(s.uses)-1]
		if c.expiring(u.Tx) {
			delete(s.replays, u.Tx.replay())
			continue
		}
		l := lane{u.Tx.Sender, u.Tx.NonceKey}
		s.lanes[l] = s.lanes[l][:len(s.lanes[l])-1]
	}
}

// LaneNonce is the next nonce of a lane, 0 where it was never used. The zero key
// is the account's own nonce.
func (c *Chain) LaneNonce(account payment.Address, key [32]byte) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	return c.next(account, key)
}

func (c *Chain) next(account payment.Address, key [32]byte) uint64 {
	return uint64(len(c.tempo.lanes[lane{account, key}]))
}

// TempoUses returns the mined transactions of Tempo, oldest first.
func (c *Chain) TempoUses() []TempoUse {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	return slices.Clone(c.tempo.uses)
}

// expiring reports whether t is on a nonce that expires.
func (c *Chain) expiring(t *TempoTx) bool { return t.Expiring() && !c.tempo.rules.T0 }

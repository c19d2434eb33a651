package canopytest_test

import (
	"encoding/hex"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// maxKey is the expiring nonce.
var maxKey = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))

// tempoTx is a transaction as a buyer writes it, by hand over rlp.
type tempoTx struct {
	chain       uint64
	tip, maxFee uint64
	gas         uint64
	calls       []rlpCall
	key         *big.Int
	nonce       uint64
	before      uint64
	after       uint64
	token       []byte
	sponsored   bool
	envelope    byte // 0x76 or 0x78
}

type rlpCall struct {
	To    []byte
	Value *big.Int
	Data  []byte
}

func newTempoTx(chain *canopytest.Chain, calls ...rlpCall) *tempoTx {
	number, _ := chain.ID().Number()
	token := chain.Dollar().Address
	return &tempoTx{
		chain: number, tip: 1_000_000_000, maxFee: 25_000_000_000, gas: 1_200_000, calls: calls, key: big.NewInt(7),
		before: uint64(chain.Clock().Now().Add(25 * time.Second).Unix()), token: token[:], envelope: 0x76,
	}
}

func (x *tempoTx) on(key *big.Int, nonce uint64) *tempoTx {
	x.key, x.nonce = key, nonce
	return x
}

func (x *tempoTx) expiring() *tempoTx { return x.on(maxKey, 0) }

// fields are those before the signature; feePayer is the encoded slot.
func (x *tempoTx) fields(token []byte, feePayer any) []any {
	return []any{
		x.chain, x.tip, x.maxFee, x.gas, x.calls, []any{}, x.key, x.nonce, x.before, x.after, token, feePayer, []any{},
	}
}

func encodeRLP(kind byte, v any) []byte {
	b, err := rlp.EncodeToBytes(v)
	if err != nil {
		panic(err)
	}
	return append([]byte{kind}, b...)
}

// raw is x signed by w: self-paid, or on its way to a sponsor.
func (w wallet) raw(x *tempoTx) []byte {
	fields := x.fields(x.token, []byte{})
	if x.sponsored {
		fields = x.fields(nil, []byte{0})
	}
	sig, err := crypto.Sign(crypto.Keccak256(encodeRLP(0x76, fields)), w.key)
	if err != nil {
		panic(err)
	}
	sig[64] += 27
	if x.envelope == 0x78 {
		from := w.Address()
		fields = x.fields(nil, from[:])
	}
	return encodeRLP(x.envelope, append(fields, sig))
}

// seal signs fields, of a transaction that pays for itself.
func (w wallet) seal(fields []any) []byte {
	sig, err := crypto.Sign(crypto.Keccak256(encodeRLP(0x76, fields)), w.key)
	if err != nil {
		panic(err)
	}
	sig[64] += 27
	return encodeRLP(0x76, append(fields, sig))
}

// sponsoredRaw is x signed by w, and paid for by sponsor.
func (w wallet) sponsoredRaw(x *tempoTx, sponsor wallet) []byte {
	x.sponsored, x.envelope = true, 0x76
	from := w.Address()
	sig, _ := crypto.Sign(crypto.Keccak256(encodeRLP(0x76, x.fields(nil, []byte{0}))), w.key)
	sig[64] += 27
	paid, _ := crypto.Sign(crypto.Keccak256(encodeRLP(0x78, x.fields(x.token, from[:]))), sponsor.key)
	slot := []any{uint64(paid[64]), new(big.Int).SetBytes(paid[:32]), new(big.Int).SetBytes(paid[32:64])}
	return encodeRLP(0x76, append(x.fields(x.token, slot), sig))
}

func transferCall(token, to payment.Address, amount uint64) rlpCall {
	data := append([]byte{0xa9, 0x05, 0x9c, 0xbb}, make([]byte, 12)...)
	data = append(data, to[:]...)
	units := payment.UnitsOf(amount).Bytes()
	return rlpCall{To: token[:], Value: new(big.Int), Data: append(data, units[:]...)}
}

func memoCall(token, to payment.Address, amount uint64, memo [32]byte) rlpCall {
	c := transferCall(token, to, amount)
	c.Data = append(append([]byte{0x95, 0x77, 0x7d, 0x59}, c.Data[4:]...), memo[:]...)
	return c
}

func otherWallet(name string) wallet {
	w := newWallet()
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("canopytest wallet " + name)))
	if err != nil {
		panic(err)
	}
	w.key = key
	return w
}

// newTempo is a world on Tempo.
func newTempo(t *testing.T, mining canopytest.Mining) *world {
	clock := canopytest.NewStillClock(start)
	w := &world{T: t, clock: clock, wallet: newWallet(), chain: canopytest.NewChain(canopytest.ChainConfig{ID: payment.TempoTest, Clock: clock, Mining: mining})}
	w.chain.Fund(w.wallet.Address(), 100*payment.Dollar)
	w.client = newClient(t)
	return w
}

func hexOf(b [32]byte) string { return "0x" + hex.EncodeToString(b[:]) }

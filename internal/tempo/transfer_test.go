package tempo_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

var (
	pathUSD = payment.Address{0: 0x20, 1: 0xc0}
	payee   = payment.Address{0x74, 0x2d, 0x35, 0xcc, 0x66, 0x34, 0xc0, 0x53, 0x29, 0x25, 0xa3, 0xb8, 0x44, 0xbc, 0x9e, 0x75, 0x95, 0xf8, 0xfe, 0x00}
)

func TestTransferCall(t *testing.T) {
	t.Parallel()
	v := readVectors(t).MPP
	plain := tempo.Transfer{Token: pathUSD, To: payee, Amount: payment.UnitsOf(1_000_000)}
	memo := plain
	memo.HasMemo, memo.Memo = true, [32]byte(v.Attribution.Cases[0].Memo)
	most := tempo.Transfer{Token: pathUSD, To: payee, Amount: payment.UnitsFromBytes(tempo.ExpiringKey), HasMemo: true}
	same(t, "data of a transfer", plain.Call().Data, v.Calldata.Transfer)
	same(t, "data of a transfer with memo", memo.Call().Data, v.Calldata.TransferWithMemo)
	for _, want := range []tempo.Transfer{plain, memo, most} {
		if got, err := tempo.ParseCall(want.Call()); err != nil || got != want {
			t.Errorf("ParseCall = %+v, %v, want %+v", got, err, want)
		}
	}
}

// ParseCall refuses whatever is not exactly one of the two functions.
func TestParseCallStrict(t *testing.T) {
	t.Parallel()
	good := tempo.Transfer{Token: pathUSD, To: payee, Amount: payment.UnitsOf(1)}
	for _, memo := range []bool{false, true} {
		good.HasMemo = memo
		change := func(name string, f func(*tempo.Call)) {
			c := good.Call()
			f(&c)
			if got, err := tempo.ParseCall(c); !errors.Is(err, tempo.ErrCall) || got != (tempo.Transfer{}) {
				t.Errorf("%s, memo %v: ParseCall = %+v, %v, want ErrCall", name, memo, got, err)
			}
		}
		change("empty", func(c *tempo.Call) { c.Data = nil })
		change("three bytes", func(c *tempo.Call) { c.Data = c.Data[:3] })
		change("selector alone", func(c *tempo.Call) { c.Data = c.Data[:4] })
		change("a byte short", func(c *tempo.Call) { c.Data = c.Data[:len(c.Data)-1] })
		change("a byte long", func(c *tempo.Call) { c.Data = append(c.Data, 0) })
		change("a word long", func(c *tempo.Call) { c.Data = append(c.Data, make([]byte, 64)...) })
		change("the other's length", func(c *tempo.Call) {
			if memo {
				c.Data = c.Data[:68]
			} else {
				c.Data = append(c.Data, make([]byte, 32)...)
			}
		})
		change("value", func(c *tempo.Call) { c.Value = payment.UnitsOf(1) })
		change("create", func(c *tempo.Call) { c.Create = true })
		change("transferFrom", func(c *tempo.Call) { copy(c.Data, []byte{0x23, 0xb8, 0x72, 0xdd}) })
		change("approve", func(c *tempo.Call) { copy(c.Data, []byte{0x09, 0x5e, 0xa7, 0xb3}) })
		for i := range 16 {
			change("a bit of selector or padding", func(c *tempo.Call) { c.Data[i] ^= 1 })
		}
	}
}

func FuzzParseCall(f *testing.F) {
	f.Add(make([]byte, 20), uint64(0), false, tempo.Transfer{To: payee}.Call().Data)
	f.Add(pathUSD[:], uint64(1), false, tempo.Transfer{To: payee, HasMemo: true, Amount: payment.UnitsOf(1)}.Call().Data)
	f.Add(pathUSD[:], uint64(0), true, []byte{0xa9, 0x05, 0x9c, 0xbb})
	f.Fuzz(func(t *testing.T, to []byte, value uint64, create bool, data []byte) {
		c := tempo.Call{Create: create, Value: payment.UnitsOf(value), Data: data}
		copy(c.To[:], to)
		before := bytes.Clone(data)
		p, err := tempo.ParseCall(c)
		if !bytes.Equal(data, before) {
			t.Error("ParseCall wrote to the data")
		}
		if err != nil {
			if p != (tempo.Transfer{}) {
				t.Errorf("ParseCall = %+v with an error", p)
			}
			return
		}
		if !p.Call().Equal(c) {
			t.Errorf("ParseCall(%+v).Call() = %+v", c, p.Call())
		}
	})
}

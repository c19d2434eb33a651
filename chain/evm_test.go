package chain_test

import (
	"errors"
	"fmt"

	"github.com/canopy-go/canopy/payment"
)

// machine runs the few instructions of the EVM that packed questions are made
// of, as the Yellow Paper has them; numbers are of 256 bits only where they are
// loaded, shifted and compared with what fits 64.
type machine struct {
	code  []byte
	at    int
	stack [][32]byte
	mem   [4096]byte
	back  []byte // what the last call returned
	call  func(to payment.Address, input []byte) ([]byte, bool)
}

// run runs code as a creation does, and returns what it returns.
func run(code []byte, call func(payment.Address, []byte) ([]byte, bool)) (out []byte, err error) {
	defer func() {
		if r := recover(); r != nil { // out of the code, the stack or the memory
			err = fmt.Errorf("%v", r)
		}
	}()
	m := machine{code: code, call: call}
	for range 1_000_000 {
		if out, done, err := m.step(); done || err != nil {
			return out, err
		}
	}
	return nil, errors.New("out of gas")
}

func (m *machine) push(w [32]byte) { m.stack = append(m.stack, w) }

func (m *machine) pop() [32]byte {
	w := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return w
}

func (m *machine) small(n uint64) { m.push(payment.UnitsOf(n).Bytes()) }

func (m *machine) pick() int {
	n, ok := payment.UnitsFromBytes(m.pop()).Uint64()
	if !ok || n > 1<<20 {
		panic("a number that does not fit")
	}
	return int(n)
}

func (m *machine) truth(is bool) {
	if is {
		m.small(1)
	} else {
		m.small(0)
	}
}

func (m *machine) jump(to int) {
	if m.code[to] != 0x5b {
		panic("a jump into nothing")
	}
	m.at = to
}

func (m *machine) step() (out []byte, done bool, err error) {
	op := m.code[m.at]
	m.at++
	switch {
	case op == 0x60: // PUSH1
		m.small(uint64(m.code[m.at]))
		m.at++
		return nil, false, nil
	case op >= 0x80 && op <= 0x8f: // DUP
		m.push(m.stack[len(m.stack)-1-int(op-0x80)])
		return nil, false, nil
	case op >= 0x90 && op <= 0x9f: // SWAP
		a, b := len(m.stack)-1, len(m.stack)-2-int(op-0x90)
		m.stack[a], m.stack[b] = m.stack[b], m.stack[a]
		return nil, false, nil
	}
	switch op {
	case 0x01: // ADD
		m.small(uint64(m.pick() + m.pick()))
	case 0x03: // SUB
		a, b := m.pick(), m.pick()
		m.small(uint64(a - b))
	case 0x10, 0x11: // LT, GT
		a, b := payment.UnitsFromBytes(m.pop()), payment.UnitsFromBytes(m.pop())
		m.truth(op == 0x10 && a.Cmp(b) < 0 || op == 0x11 && a.Cmp(b) > 0)
	case 0x14: // EQ
		a, b := m.pop(), m.pop()
		m.truth(a == b)
	case 0x15: // ISZERO
		m.truth(m.pop() == [32]byte{})
	case 0x16: // AND
		a, b := m.pop(), m.pop()
		for i := range a {
			a[i] &= b[i]
		}
		m.push(a)
	case 0x1c: // SHR
		m.shift(m.pick())
	case 0x38: // CODESIZE
		m.small(uint64(len(m.code)))
	case 0x39: // CODECOPY
		to, from, n := m.pick(), m.pick(), m.pick()
		clear(m.mem[to : to+n])
		copy(m.mem[to:to+n], m.code[min(from, len(m.code)):])
	case 0x3d: // RETURNDATASIZE
		m.small(uint64(len(m.back)))
	case 0x51: // MLOAD
		m.push([32]byte(m.mem[m.pick():]))
	case 0x53: // MSTORE8
		at := m.pick()
		m.mem[at] = m.pop()[31]
	case 0x56: // JUMP
		m.jump(m.pick())
	case 0x57: // JUMPI
		if to := m.pick(); m.pop() != [32]byte{} {
			m.jump(to)
		}
	case 0x5a: // GAS
		m.small(1 << 20)
	case 0x5b: // JUMPDEST
	case 0xfa: // STATICCALL
		m.pop()
		to, in, size, at, room := m.pop(), m.pick(), m.pick(), m.pick(), m.pick()
		var ok bool
		m.back, ok = m.call(payment.Address(to[12:]), m.mem[in:in+size])
		copy(m.mem[at:at+room], m.back)
		m.truth(ok)
	case 0xf3: // RETURN
		at, n := m.pick(), m.pick()
		return m.mem[at : at+n], true, nil
	case 0xfd: // REVERT
		return nil, true, errors.New("it reverts")
	default:
		return nil, true, fmt.Errorf("no instruction %#x", op)
	}
	return nil, false, nil
}

// shift shifts the last word right by a number of bits.
func (m *machine) shift(by int) {
	w := m.pop()
	var out [32]byte
	for i := by; i < 256; i++ { // bit i from the left comes from bit i-by
		from := i - by
		if w[from/8]&(0x80>>(from%8)) != 0 {
			out[i/8] |= 0x80 >> (i % 8)
		}
	}
	m.push(out)
}

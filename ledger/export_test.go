package ledger

import (
	"crypto/rand"
	"sync"
)

var dead sync.Map // owner to true

func alive(owner string) bool {
	_, gone := dead.Load(owner)
	return !gone
}

// Handle is a second process on the same ledger, which the product does not
// have: only tests play it.
func (m *Memory) Handle() *Memory {
	m.alive = alive
	return &Memory{clock: m.clock, owner: rand.Text(), alive: alive, book: m.book}
}

// Kill ends the process of a handle.
func (m *Memory) Kill() { dead.Store(m.owner, true) }

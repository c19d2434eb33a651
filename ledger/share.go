package ledger

// Share returns another hold on m's ledger, as a second process has on a shared
// one: with a clock and an owner of its own. alive tells which owners' processes
// still run; each Reserve asks it about the others. It is for
// tests and simulators: a Memory is forgotten with the one process that it is in.
func (m *Memory) Share(o Options, owner string, alive func(owner string) bool) *Memory {
	return &Memory{clock: NewClock(o), owner: owner, alive: alive, book: m.book}
}

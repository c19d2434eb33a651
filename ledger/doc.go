// Package ledger is the record of payments, and what makes the promises hold:
// every cap, key and duplicate is checked, and the hold taken, in one atomic and
// durable step before anything is signed.
//
// An [Entry] is one payment. Its [State] moves only along one table of moves,
// each by a compare-and-set on its version, and each move is an [Event] in the
// payment's own hash chain. Money that can still move and money that moved count
// alike; no server's word lowers what counts, only the chain's or an operator's.
//
// A [Store] keeps the ledger. [Memory] forgets it with the process; package
// ledger/sqlite keeps it in one file that several processes share. All stores
// decide by the same functions over a [Tx], and all pass package
// ledger/ledgertest.
package ledger

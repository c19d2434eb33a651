// Package chain reads EVM chains over JSON-RPC: balances, used authorizations,
// finalized blocks, receipts and logs. It holds no keys and decides nothing.
//
// A node can lie, stall or be behind. What releases a hold is therefore asked of
// every URL that is configured, at one block that all of them call final, and
// has to come back equal from two of them where there are two. A chain with one
// URL says so by Sources, so that what rests on its word alone is marked.
package chain

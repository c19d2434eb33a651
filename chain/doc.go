// Package chain reads EVM chains and those of Tempo over JSON-RPC: balances, used
// authorizations and nonces, finalized blocks, and what let money of an account
// go. It sends what somebody else signed. It holds no keys and decides nothing.
//
// A node can lie, stall or be behind. What releases a hold is therefore asked of
// every URL that is configured, at one block that all of them call final, and
// has to come back equal from two of them where there are two. A chain with one
// URL says so by Sources, so that what rests on its word alone is marked.
//
// Reads that a node puts off are made again, within bounds; large questions are
// split, and smaller where a node takes no more. A signed transaction goes to
// every node, which may be done any number of times. No error tells more of a URL
// than its host: the rest may be a key.
package chain

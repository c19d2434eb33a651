// Package x402 pays sellers that speak x402, version 2 and version 1, with the
// exact scheme on EVM chains: one EIP-3009 authorization, laid out by this
// package and signed by a [payment.Signer], that moves one amount of one pinned
// token to one payee.
//
// [New] makes the rail. It reads the offers of a 402, builds the authorization
// of a grant, reads it back, and reads what the seller says of the settlement.
// It has no clock, no I/O and no keys.
//
// What a seller says of a token's decimals, name or version is never believed:
// an offer whose EIP-712 domain differs from the pinned table is skipped. What
// a seller wants echoed (accepted, resource, extensions) is echoed as the bytes
// that it sent.
//
// Other schemes and methods (upto, batch-settlement, Permit2, ERC-7710) are
// skipped: an authorization of theirs moves more than one payment, or needs an
// allowance. Contract accounts (EIP-1271) cannot pay: a signature must recover
// to the payer.
package x402

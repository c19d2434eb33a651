// Package mpp pays sellers of the Machine Payments Protocol: the Payment scheme
// of HTTP authentication, with charges on Tempo and by EIP-3009 on other chains.
//
// A [Rail] reads the challenges of a 402, or of a 401, and answers one of them:
//
//   - tempo/charge by a signed transaction that the seller broadcasts (pull), by
//     the hash of one that was broadcast first where the seller takes nothing
//     else (push), or, where the seller pays the fee, by a transaction that it
//     signs too (sponsored). Further recipients (splits) are calls of the same
//     transaction.
//   - tempo/charge of zero by a proof, a signature that moves nothing.
//   - evm/charge by an EIP-3009 authorization whose nonce the challenge binds.
//   - a direct transfer on Tempo by a transaction of our own.
//
// Each transaction takes a lane and a nonce of it, or the expiring nonce where it
// is sponsored, and ends at validBefore: without one nothing is signed. Its fee is
// bound by [Fees] and part of what a payment costs.
//
// The rail holds no key, decides nothing, and does no I/O but what a signer and,
// for pushes and transfers, a [Node] does. Where the drafts of the protocol and
// the reference servers (mppx 0.11) disagree, it does as the servers do.
package mpp

// Package e2e pays real sellers on a real chain: npm's @x402/express and x402-express, their own
// facilitators, and anvil with an EIP-3009 dollar at USDC's address on chain 8453.
//
// Its tests carry the build tag e2e, so `go test ./...` needs only Go. Run them with e2e/run.sh, which
// installs the peers (Node.js 20 or newer) and starts nothing that outlives the tests.
package e2e

// Package e2e pays real sellers on real chains: npm's @x402/express and x402-express, their own facilitators,
// and anvil with an EIP-3009 dollar at USDC's address on chain 8453; and mppx on anvil's Tempo network. It kills
// the program while it pays, races processes for a cap, and cuts the power of a disk. A headless Chromium opens
// the page, rules on it and tries to break it.
//
// Its tests carry the build tag e2e, so `go test ./...` needs only Go. Run them with e2e/run.sh, which
// installs the peers (Node.js 20 or newer; strace and Chromium have to be there) and starts nothing that
// outlives the tests. E2E_SEED repeats the choices of a run that failed; E2E_SHOTS is a folder for pictures of
// the page.
package e2e

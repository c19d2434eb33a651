// Package canopytest tests programs that spend money, without money: a chain in
// memory, sellers that really verify and settle on it, and faults that make
// them misbehave on cue.
//
// A test needs a [Chain], a [Seller] and a key with dollars on the chain:
//
//	chain := canopytest.NewChain(canopytest.ChainConfig{})
//	chain.Fund(signer.Address(), 5*payment.Dollar)
//	seller := canopytest.NewSeller(chain, canopytest.SellerConfig{
//		Routes: []canopytest.Route{{Pattern: "GET /report", Price: payment.Cent}},
//	})
//	url := seller.Start(t) // http://127.0.0.1:…, closed when the test ends
//
// Give chain to the client as one of its chains, fetch url+"/report", and ask
// the chain what happened: [Chain.AssertSpent] and [Chain.AssertTransfers]
// look at what moved, never at what a server said.
//
// Of payment.Tempo or payment.TempoTest the chain is a Tempo network: it takes
// raw transactions ([Chain.Broadcast]) that it decodes and whose signatures it
// recovers itself, with lanes, the expiring nonce, sponsors, and fees in dollars.
// Fees are in [Chain.Spent] and not in [Chain.AssertTransfers].
//
// The sellers answer as the reference servers were measured to: x402 version 2
// as @x402/express 2.27 and version 1 as x402-express 1.2, and MPP as mppx 0.11,
// down to the error codes, the headers and the mistakes. They are written from
// the protocols and share no code with Canopy's own rails, so that each checks
// the other. [SellerConfig] says which [Protocol] a seller has; X402|MPP offers
// both at once, on the chains of the route's terms.
//
// A [Plan] scripts faults by attempt:
//
//	Faults: canopytest.Plan{canopytest.First(canopytest.DropAfterSettling())}
//
// drops the connection of the first paid request after the money moved. What a
// seller was handed and did not settle stays in its [Harvest], which a test can
// settle when it hurts most. [HostileTexts], [MalformedChallenges]
// and [MalformedPaymentChallenges] are corpora for every field that a seller
// writes.
//
// A [Node] is the chain by JSON-RPC, for programs that read and send by URL, and
// for sellers of other makes: mppx runs on it, sponsored charges included.
//
// Times come from a [Clock] that tests move. It follows the system clock, and
// so the fake one inside a [testing/synctest] bubble; [Network] carries HTTP
// without sockets, as such a bubble needs.
//
// [SpySigner], [Recorder] and [Rebinder] watch the other side: what was signed,
// what was sent, and where a name led.
package canopytest

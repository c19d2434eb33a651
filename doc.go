// Package canopy lets a Go program that is driven by a language model spend
// money inside limits that a person set. It pays HTTP sellers that answer 402
// Payment Required, asks a person where the policy says so, and can prove
// afterwards what happened.
//
// Three promises come before everything else:
//
//   - A cap holds. Whatever servers, crashes, clocks, retries and parallel
//     processes do, money that can still move plus money that moved never
//     exceeds a cap.
//   - Pay once. One purchase moves money at most once, and its outcome is known,
//     or honestly called unknown until the chain tells.
//   - What was approved is what is signed. Preview, approval, ledger and
//     signature carry the same terms; any change is a new decision.
//
// The shortest program reads a configuration and uses an ordinary http.Client:
//
//	file, err := config.Load("canopy.toml")
//	if err != nil {
//		log.Fatal(err)
//	}
//	client, err := file.Open(ctx, "researcher")
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer client.Close()
//	resp, err := client.HTTPClient().Get("https://feed.example/depth/btc-usd")
//
// A program that brings its own parts builds a [Config] instead: a policy from
// package policy, a store from ledger or ledger/sqlite, a signer from signer, and
// rails from x402 and mpp. [Client.Fetch] has more to say than a bare http.Client: its
// options and typed errors. [Client.Pay] sends dollars to an address.
// [Client.CheckURL] and [Client.Preview] decide without signing anything.
//
// A [Chain] of the treasury that is a [Reconciler], such as those of package
// chain, tells what became of payments: [Client.Reconcile] settles or releases
// what is held, on finalized evidence only.
package canopy

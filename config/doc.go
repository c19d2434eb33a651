// Package config opens canopy.toml: the policy, the ledger, the chains and the
// account that pays, in one file. A program is then short:
//
//	file, err := config.Load("canopy.toml")
//	...
//	client, err := file.Open(ctx, "trader")
//	...
//	defer client.Close()
//	resp, err := client.HTTPClient().Get("https://feed.example/depth/btc-usd")
//
// The file is strict: a key that nobody knows, a unit that is missing, a value
// of another type are errors that name the line, the key and what would be
// right. Secrets never stand in it: it names the environment variable, the
// keystore file or the command that has them.
package config

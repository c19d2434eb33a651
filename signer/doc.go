// Package signer holds private keys, and is the only place that does. A key
// comes from hex digits, an environment variable or a Web3 keystore file, and
// signs only under a permit that a committed ledger entry mints.
//
// A [Key] prints as its address with every verb, in JSON, in a log and inside
// another value; no error of this package tells anything of a secret.
package signer

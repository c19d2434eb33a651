// Package dashboard is the local page: what waits for a person, what was spent,
// the ledger, the policy, and the switch that stops everything. It reads the
// ledger, rules through an approvals.Desk and holds no key: nothing in it can
// pay.
//
// It is for loopback. Whoever opens it logs in with an approver's credential
// (approvals.Register), which the session keeps in memory and no URL ever has.
// GET changes nothing; every form is for one use. What a person rules on is
// rendered from the stored terms, and the ruling names their hash.
package dashboard

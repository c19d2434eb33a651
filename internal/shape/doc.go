// Package shape is the JSON that the tools speak: what canopy_fetch and the
// others return, and what the same commands of the binary print with --json.
// Both use these types, so that a program can move from one to the other. The
// results of canopy_fetch, canopy_approve and canopy_deny are in snake case,
// all others in camel case.
//
// Amounts are JSON numbers of dollars, exact to a millionth. Of a payment
// amountUsd is what its recipients get together, feeUsd the most that a fee can
// add, costUsd both, which is what limits use, and spentUsd what counts in the
// caps: costUsd until the chain told the fee, then less. Instants are
// RFC 3339 in UTC, whole seconds. What is unknown is null.
package shape

// Package whatif tells what another policy would have decided about the
// payments that a ledger holds. It changes nothing.
//
// Each payment is judged again at the instant at which it was decided, in order,
// with its stored terms and with what the other policy itself would have let
// through by then counting against its caps. What was decided before the time
// that is asked about counts as it really was. A payment that the other policy
// would put to a person counts as approved where it was really paid. What the
// ledger or the client refused for reasons that are no policy's (a duplicate, a
// freeze, a clock, no funds) stays refused.
package whatif

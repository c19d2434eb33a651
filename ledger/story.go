package ledger

import "fmt"

// VerifyPayment holds the record of one payment against its events, oldest
// first: their chain has to verify, each move has to be one of the table, and
// together they have to tell what the record says.
func VerifyPayment(e *Entry, events []Event) error {
	got, err := replay(events)
	if err != nil {
		return fmt.Errorf("%s: %w", e.ID, err)
	}
	if what := differ(&got, e); what != "" {
		return fmt.Errorf("%s: its events tell another %s than its record", e.ID, what)
	}
	return nil
}

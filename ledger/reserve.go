package ledger

import (
	"errors"
	"time"

	"github.com/canopy-go/canopy/policy"
)

var errTODO = errors.New("ledger: not written yet")

// ReserveTx is Store.Reserve in one step. Hand the entry out through Committed,
// after the commit.
func ReserveTx(tx Tx, r *Request, env Env) (*Entry, []policy.Use, error) { return nil, nil, errTODO }

// AdvanceTx is Store.Advance in one step.
func AdvanceTx(tx Tx, c *Change, env Env) (*Entry, error) { return nil, errTODO }

// DecideTx is Approvals.Decide in one step. An approval that expired is
// recorded as such, and ErrDecided returned with it.
func DecideTx(tx Tx, d Decision, env Env) (*Approval, error) { return nil, errTODO }

// RecoverTx moves the payments of owners that are not alive from Authorized to
// InDoubt, and tells how many. A store runs it on opening; ReserveTx runs it.
func RecoverTx(tx Tx, env Env) (int, error) { return 0, errTODO }

// UseTx is Store.Use. It writes nothing, so it may run on a snapshot.
func UseTx(tx Tx, limits []policy.Limit, now time.Time) ([]policy.Use, error) { return nil, errTODO }

// Committed is e as a store hands it out once it is committed: the caller's
// own copy, with a permit where a signature may be made.
func Committed(e *Entry) Entry { return *e }

// Package ledgertest is the suite that every ledger.Store passes. It holds a
// store to what the interfaces of package ledger say: the moves, the caps, the
// keys, the duplicate guard, approvals, clocks and chains, and plays random
// histories against a model that counts everything from scratch.
package ledgertest

import (
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
)

// Opener opens the one ledger of a test.
type Opener struct {
	// Open opens a handle on the ledger, which is empty at first. The store's
	// own clock must be c.Now, and its elapsed time c.Elapsed, of one boot. Run closes
	// what it opens. Never nil.
	Open func(t testing.TB, c *Clock) ledger.Store

	// Shared says that Open may be called while another handle is open, as
	// another process would.
	Shared bool

	// Durable says that a ledger that was closed can be opened again.
	Durable bool

	// Kill ends a handle as the death of its process would: its payments in
	// flight have no live owner afterwards. nil where that cannot be played.
	Kill func(t testing.TB, s ledger.Store)
}

// Run runs the suite. open is called once for every test of it, and gives a
// new ledger each time.
func Run(t *testing.T, open func(t *testing.T) Opener) {
	for _, tt := range []struct {
		name string
		test func(*world)
	}{
		{"Moves", testMoves},
		{"Facts", testFacts},
		{"CompareAndSet", testCompareAndSet},
		{"Outcome", testOutcome},
		{"Holds", testHolds},
		{"Proofs", testProofs},
		{"Caps", testCaps},
		{"CapRace", testCapRace},
		{"CapForms", testCapForms},
		{"CapScopes", testCapScopes},
		{"CapChanges", testCapChanges},
		{"Overflow", testOverflow},
		{"HoldOutlivesWindow", testHoldOutlivesWindow},
		{"Windows", testWindows},
		{"Ageing", testAgeing},
		{"Use", testUse},
		{"Keys", testKeys},
		{"KeyRace", testKeyRace},
		{"EqualCalls", testEqualCalls},
		{"Guard", testGuard},
		{"GuardNewest", testGuardNewest},
		{"RetryStorm", testRetryStorm},
		{"DuplicateTransfer", testDuplicateTransfer},
		{"Approval", testApproval},
		{"ApprovalRules", testApprovalRules},
		{"ApprovalSwaps", testApprovalSwaps},
		{"ApprovalRace", testApprovalRace},
		{"ApprovalBlocked", testApprovalBlocked},
		{"ApprovalCost", testApprovalCost},
		{"Approvers", testApprovers},
		{"ApproverRace", testApproverRace},
		{"Named", testNamed},
		{"Quorum", testQuorum},
		{"QuorumRace", testQuorumRace},
		{"Ways", testWays},
		{"Fatigue", testFatigue},
		{"Override", testOverride},
		{"OverrideBounds", testOverrideBounds},
		{"RuledByNow", testRuledByNow},
		{"VotesOfNow", testVotesOfNow},
		{"OverrideRules", testOverrideRules},
		{"OverrideRace", testOverrideRace},
		{"Deliveries", testDeliveries},
		{"DeliveryRace", testDeliveryRace},
		{"Pins", testPins},
		{"KeyBack", testKeyBack},
		{"TransferReplaced", testTransferReplaced},
		{"SharedKeys", testSharedKeys},
		{"MaxPending", testMaxPending},
		{"Validity", testValidity},
		{"Slots", testSlots},
		{"Permits", testPermits},
		{"Skew", testSkew},
		{"Jump", testJump},
		{"JumpBefore", testJumpBefore},
		{"CreepingClock", testCreepingClock},
		{"JumpAfterUptime", testJumpAfterUptime},
		{"SteppedClock", testSteppedClock},
		{"Freeze", testFreeze},
		{"Denied", testDenied},
		{"Entries", testEntries},
		{"Spending", testSpending},
		{"Paid", testPaid},
		{"Past", testPast},
		{"Totals", testTotals},
		{"TotalRace", testTotalRace},
		{"Shadow", testShadow},
		{"Chains", testChains},
		{"Copies", testCopies},
		{"Hostile", testHostile},
		{"Contexts", testContexts},
		{"Closed", testClosed},
		{"Reopened", testReopened},
		{"TwoHandles", testTwoHandles},
		{"Recovery", testRecovery},
		{"FindSlots", testFindSlots},
		{"Cursors", testCursors},
		{"Recover", testRecover},
		{"Only", testOnly},
		{"Lanes", testLanes},
		{"LaneApproved", testLaneApproved},
		{"LaneRace", testLaneRace},
		{"LaneModel", testLaneModel},
		{"TakenForEver", testTakenForEver},
		{"Variants", testVariants},
		{"VariantRules", testVariantRules},
		{"VariantCounts", testVariantCounts},
		{"Fees", testFees},
		{"Gas", testGas},
		{"GasFrees", testGasFrees},
		{"GasApproved", testGasApproved},
		{"GasRace", testGasRace},
		{"Carries", testCarries},
		{"CarryRules", testCarryRules},
		{"Budgets", testBudgets},
		{"BudgetRules", testBudgetRules},
		{"BudgetApproval", testBudgetApproval},
		{"BudgetOwner", testBudgetOwner},
		{"BudgetGrants", testBudgetGrants},
		{"BudgetLasts", testBudgetLasts},
		{"BudgetRace", testBudgetRace},
		{"BudgetModel", testBudgetModel},
		{"Runs", testRuns},
		{"Model", testModel},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(newWorld(t, open(t))) })
	}
}

// Clock is a clock that a test moves. It is safe for concurrent use.
type Clock struct {
	mu   sync.Mutex
	wall time.Time
	mono time.Duration
}

// NewClock returns a clock that stands at now.
func NewClock(now time.Time) *Clock { return &Clock{wall: now} }

// Now is the wall clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall
}

// Elapsed is the monotonic clock.
func (c *Clock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mono
}

// Advance lets d pass.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
	c.mono += d
}

// Step sets the wall clock ahead by d, or back, without time passing.
func (c *Clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

package shape

import (
	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Ping is the result of canopy_ping.
type Ping struct {
	OK        bool   `json:"ok"`
	Agent     Agent  `json:"agent"`
	Org       Org    `json:"org"`
	LatencyMS int64  `json:"latencyMs"`
	Error     string `json:"error,omitempty"` // where ok is false
	Able

	Chains []ChainState `json:"chains,omitempty"` // those that can be asked
}

// Agent is who pays.
type Agent struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"` // active or frozen
	Reason string `json:"reason,omitempty"`
}

// Org is on whose behalf.
type Org struct {
	Name            *string          `json:"name"`
	TreasuryAddress *payment.Address `json:"treasuryAddress"` // null without a key
}

// PingOf is the shape of p, and of the error that came with it; cannot is what
// canopy.Client.CannotPay returns.
func PingOf(p canopy.Pong, cannot []policy.Reason, err error) Ping {
	out := Ping{
		OK: err == nil, LatencyMS: p.Latency.Milliseconds(),
		Agent: Agent{p.AgentID, p.Agent, p.Status, p.Frozen},
		Org:   Org{orNull(p.Org), orNull(p.Account)},
		Able:  AbleOf(cannot),
	}
	if err != nil {
		out.Error, out.CanPay = failureOf(err).Error, false
	}
	return out
}

package main

import (
	"fmt"
	"strings"

	"github.com/canopy-go/canopy/payment"
)

// notAgent refuses a name that is an agent's: what an operator says is never
// said by the agent that it is about.
func notAgent(by string, agents ...string) error {
	by = strings.TrimSpace(by)
	for _, agent := range agents {
		if strings.EqualFold(by, strings.TrimSpace(agent)) || strings.EqualFold(by, payment.AgentID(agent)) {
			return fmt.Errorf("--by %s: that is the agent itself: name the person who says so", show(by, 100))
		}
	}
	return nil
}

package canopy

import (
	"context"
	"errors"
	"fmt"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/policy"
)

// Explain is CheckURL, with what every rule of the policy says of the offer that
// would be taken: which it passes, which refuse it or ask a person, and what
// would make it pass. Where no offer can be taken whatever the policy says, the
// explanation is that of the first one, and has no rules where its terms cannot
// be judged; a page that asks for nothing has none.
func (c *Client) Explain(ctx context.Context, rawURL string, opts ...Option) (Check, policy.Explanation, error) {
	seen, o, cached, err := c.look(ctx, rawURL, opts)
	if err != nil {
		return Check{}, policy.Explanation{}, err
	}
	check, err := c.checkOffers(ctx, seen, o)
	check.Cached = cached
	if err != nil || len(seen.offers) == 0 {
		return check, policy.Explanation{}, err
	}
	x, err := c.explainOffers(ctx, seen, o)
	return check, x, err
}

// explainOffers explains what the policy says of the offer that checkOffers tells.
func (c *Client) explainOffers(ctx context.Context, seen probed, o options) (policy.Explanation, error) {
	now := c.cfg.Now()
	p, err := c.newPurchase(seen.req, newReplay(seen.req), o, now)
	if err != nil {
		return policy.Explanation{}, nil // checkOffers told it
	}
	taken, _, err := c.choose(ctx, p, seen.offers)
	if denied := (*DeniedError)(nil); errors.As(err, &denied) {
		taken = seen.offers[0]
		_ = c.judge(ctx, p, &taken) // its payment is what is explained, as far as it was read
	} else if err != nil {
		return policy.Explanation{}, err
	}
	if len(taken.payment.Terms.Recipients) == 0 {
		return policy.Explanation{}, nil
	}
	past, err := ledger.PastOf(ctx, c.cfg.Store, c.cfg.Policy, &taken.payment)
	if err != nil {
		return policy.Explanation{}, fmt.Errorf("canopy: explain: reading what was paid before: %w", err)
	}
	h := policy.History{Past: past}
	h.Uses, err = c.cfg.Store.Use(ctx, c.cfg.Policy.Evaluate(taken.payment, now, h).Limits, now)
	if err != nil {
		return policy.Explanation{}, fmt.Errorf("canopy: explain: reading the ledger: %w", err)
	}
	return c.cfg.Policy.Explain(taken.payment, now, h), nil
}

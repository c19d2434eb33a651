package canopy

import (
	"errors"
	"fmt"
	"time"
)

// Option changes one call. Options are made by the With functions only.
type Option interface{ apply(*options) error }

type options struct {
	maxPrice    USD
	hasMaxPrice bool
	key         string
	purpose     string
	ask         bool
	wait        time.Duration
	stay        bool // redirects are answers
	announce    bool // the rails tell what they pay by
}

type optionFunc func(*options) error

func (f optionFunc) apply(o *options) error { return f(o) }

func optionsOf(opts []Option) (options, error) {
	var o options
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt.apply(&o); err != nil {
			return options{}, err
		}
	}
	return o, nil
}

// WithMaxPrice refuses offers that cost more than max, below whatever the
// policy allows. Zero is a real maximum.
func WithMaxPrice(max USD) Option {
	return optionFunc(func(o *options) error {
		if max < 0 {
			return errors.New("canopy: WithMaxPrice: a price is not negative")
		}
		o.maxPrice, o.hasMaxPrice = max, true
		return nil
	})
}

// Bounds of what a caller says of a payment.
const (
	maxKey     = 256
	maxPurpose = 512
)

// WithKey makes a repeated call with the same key the same payment: at most one
// is made, and later calls get its outcome. A key stands for one method, URL
// and body of one agent, and is kept for at least 90 days. It is never sent. A
// key whose call was answered by the payment of an equal one stands for that
// payment from then on. Where the seller's terms change after a person approved,
// the key has a new decision, and what was approved ends.
func WithKey(key string) Option {
	return optionFunc(func(o *options) error {
		if err := checkKey(key); err != nil {
			return fmt.Errorf("canopy: WithKey: %w", err)
		}
		o.key = key
		return nil
	})
}

func checkKey(key string) error {
	if key == "" || len(key) > maxKey {
		return fmt.Errorf("a key has 1 to %d bytes, not %d", maxKey, len(key))
	}
	for i := range len(key) {
		if key[i] < 0x20 || key[i] == 0x7f {
			return errors.New("a key has no control characters")
		}
	}
	return nil
}

// WithPurpose says what the payment is for, to people who approve it or read
// the ledger. No rule looks at it.
func WithPurpose(purpose string) Option {
	return optionFunc(func(o *options) error {
		if len(purpose) > maxPurpose {
			return errors.New("canopy: WithPurpose: at most 512 bytes")
		}
		o.purpose = purpose
		return nil
	})
}

// WithApproval asks a person even where the policy would allow the payment by
// itself. It never weakens the policy.
func WithApproval() Option {
	return optionFunc(func(o *options) error { o.ask = true; return nil })
}

// WithWait waits up to d for a person where one has to be asked, then sends the
// request afresh and pays. Without it a call returns a *PendingError at once.
func WithWait(d time.Duration) Option {
	return optionFunc(func(o *options) error {
		if d < 0 {
			return errors.New("canopy: WithWait: a wait is not negative")
		}
		o.wait = d
		return nil
	})
}

// WithoutRedirects makes a redirect an answer like any other, which Fetch
// returns and does not follow.
func WithoutRedirects() Option {
	return optionFunc(func(o *options) error { o.stay = true; return nil })
}

package main

import (
	"net/url"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/policy"
)

// hint says what a person can do about a denial.
func (a *app) hint(reasons []canopy.Reason, rawURL string) {
	name := config.Find(a.config)
	for _, r := range reasons {
		switch r.Code {
		case policy.CodeNotAllowed:
			if u, err := url.Parse(rawURL); err == nil && u.Host != "" {
				a.note("To allow it, add \"host:%s\" to allow in %s.", show(u.Host, 300), name)
			}
		case policy.CodeMaxPayment:
			a.note("The limit is max_payment in %s.", name)
		case policy.CodeCapExceeded, policy.CodeCountExceeded:
			a.note("See canopy budget for when there is room again.")
		case policy.CodeFrozen:
			a.note("canopy unfreeze lets it pay again, where canopy freeze stopped it.")
		case "no_signer":
			a.note("Name a key in [treasury] of %s: canopy init makes one.", name)
		}
	}
}

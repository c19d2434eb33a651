// Package payment holds the nouns that every other package speaks: amounts,
// assets, terms, offers, grants, slots and authorizations. It has no I/O and no
// clock.
//
// Money is counted in [USD], millionths of a dollar, and in [Units], base units
// of a token; [Asset.Value] is the one bridge between them and rounds up. There
// are no floats. Every parser is strict: one spelling of a value is accepted,
// all others are errors.
package payment

package canopytest

import "net/http"

// Plan scripts the faults of a seller or of a route. Each rule that matches
// plays its fault; where several answer in place of the seller, the last one
// does. A plan is not changed by its use.
type Plan []Rule

// Rule says at which attempts a fault is played. Attempts count from 1, for
// each seller and route by itself: a fault of paid requests counts those with
// a payment, a fault of challenges those without, any other all of them.
type Rule struct {
	From  int // the first attempt
	To    int // the last one; 0 for ever
	Fault Fault
}

// First plays f at the first attempt.
func First(f Fault) Rule { return Rule{From: 1, To: 1, Fault: f} }

// Nth plays f at attempt n.
func Nth(n int, f Fault) Rule { return Rule{From: n, To: n, Fault: f} }

// From plays f at attempt n and at all that follow.
func From(n int, f Fault) Rule { return Rule{From: n, Fault: f} }

// Always plays f at every attempt.
func Always(f Fault) Rule { return Rule{From: 1, Fault: f} }

// Fault is one way to misbehave. Make one with the functions of this package,
// or of your own with Instead, Editing and Delivering.
type Fault struct {
	name    string
	stage   Stage
	terms   func(*Exchange)
	instead func(*Exchange) Answer
	edit    func(*Exchange, *Answer)
	deliver func(*Exchange, http.ResponseWriter, Answer)
}

// Stage says which requests a fault is of.
type Stage uint8

// The stages.
const (
	OnAny       Stage = iota // every request
	OnChallenge              // requests without a payment
	OnPaid                   // requests with one
)

// String is the fault's name.
func (f Fault) String() string { return f.name }

// At returns f for the requests of another stage.
func (f Fault) At(s Stage) Fault {
	f.stage = s
	return f
}

// Both plays f and g at once, at the stage of f: where both answer, g does.
func Both(f, g Fault) Fault {
	out := f
	out.name = f.name + " and " + g.name
	if g.instead != nil {
		out.instead = g.instead
	}
	if g.deliver != nil {
		out.deliver = g.deliver
	}
	out.terms = func(x *Exchange) {
		for _, each := range []Fault{f, g} {
			if each.terms != nil {
				each.terms(x)
			}
		}
	}
	out.edit = func(x *Exchange, a *Answer) {
		for _, each := range []Fault{f, g} {
			if each.edit != nil {
				each.edit(x, a)
			}
		}
	}
	return out
}

// Instead returns a fault that answers in place of the seller.
func Instead(name string, s Stage, answer func(*Exchange) Answer) Fault {
	return Fault{name: name, stage: s, instead: answer}
}

// Editing returns a fault that changes the seller's answer.
func Editing(name string, s Stage, edit func(*Exchange, *Answer)) Fault {
	return Fault{name: name, stage: s, edit: edit}
}

// Delivering returns a fault that sends the seller's answer in a way of its
// own.
func Delivering(name string, s Stage, deliver func(*Exchange, http.ResponseWriter, Answer)) Fault {
	return Fault{name: name, stage: s, deliver: deliver}
}

// script is a plan and how far it has got.
type script struct {
	plan             Plan
	all, paid, quote int
}

// next returns the faults of the next request. The caller holds the seller's
// lock.
func (s *script) next(paid bool) []Fault {
	s.all++
	if paid {
		s.paid++
	} else {
		s.quote++
	}
	var out []Fault
	for _, r := range s.plan {
		n := s.all
		switch {
		case r.Fault.stage == OnPaid && !paid, r.Fault.stage == OnChallenge && paid:
			continue
		case r.Fault.stage == OnPaid:
			n = s.paid
		case r.Fault.stage == OnChallenge:
			n = s.quote
		}
		if n >= r.From && (r.To == 0 || n <= r.To) {
			out = append(out, r.Fault)
		}
	}
	return out
}

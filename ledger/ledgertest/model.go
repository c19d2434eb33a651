package ledgertest

import (
	"slices"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// model is a naive ledger: a list of payments that every question reads from
// end to end. It shares no counting code with package ledger, and decides from
// the rules of package ledger alone.
type model struct {
	now    time.Time // of the ledger
	list   []*modelPayment
	shared map[[2]string]*modelPayment // by agent and key
}

type modelPayment struct {
	ledger.Entry // its plain facts
	expires      time.Time
	approved     bool // by a person, and carried out
	outcome      time.Time
}

// live lists payments, newest first, after expiring what has expired.
func (m *model) live() []*modelPayment {
	for _, p := range m.list {
		if (p.State == ledger.PendingApproval || p.State == ledger.Approved) && !m.now.Before(p.expires) {
			p.State = ledger.ApprovalExpired
		}
	}
	out := slices.Clone(m.list)
	slices.Reverse(out)
	return out
}

// use adds up from scratch what counts against l.
func (m *model) use(l policy.Limit) (u policy.Use) {
	u.Limit = l
	for _, p := range m.list {
		var until time.Time
		open, live := false, false
		switch p.State {
		case ledger.Authorized, ledger.InDoubt, ledger.Claimed:
			until, open = p.ValidBefore, p.Watched
			live = open || !until.Before(m.now)
		case ledger.NeedsOperator:
			open, live = true, true
		case ledger.Settled, ledger.Cancelled:
			if p.State == ledger.Cancelled && p.Spent == 0 {
				continue
			}
			if until = p.SpentAt; until.IsZero() {
				until = p.ValidBefore
			}
		default:
			continue
		}
		facts := policy.Facts{Agent: p.Agent, Shared: p.Shared, Host: p.Host, Run: p.Run}
		for _, r := range p.Terms.Recipients {
			facts.Payees = append(facts.Payees, r.Address)
		}
		counts, err := l.Window.Counts(p.AuthorizedAt, until, open, m.now)
		if err != nil {
			panic(err)
		}
		if !counts || !l.Scope.Covers(facts) {
			continue
		}
		u.USD += p.Spent
		u.Count++
		if live {
			u.Held += p.Spent
		}
	}
	return u
}

// decision is what the model expects of a Reserve.
type decision struct {
	state  ledger.State // of the entry that comes back
	id     payment.ID   // of the entry that comes back
	join   ledger.Join
	err    error
	denied []string // codes of every denial, sorted
	uses   []policy.Use
}

// reserve decides r as the ledger should, and records it.
func (m *model) reserve(r ledger.Request) decision {
	cost, terms, v := r.Payment.Terms.Cost(), r.Payment.Terms.Hash(), r.Verdict
	var approved, pending *modelPayment
	asks := func(p *modelPayment) bool { return p.State == ledger.PendingApproval || p.State == ledger.Approved }
	takesKey, own := false, false
	list := m.live()
	var holder *modelPayment
	for _, p := range list {
		if r.Key != "" && p.Agent == r.Payment.Agent && p.Key == r.Key && !p.State.Freed() {
			holder = p
		}
	}
	if p := m.shared[[2]string{r.Payment.Agent, r.Key}]; holder == nil && p != nil && !p.State.Freed() {
		holder = p
	}
	joins := func(p *modelPayment, why ledger.Join) decision {
		if r.Key != "" && r.Key != p.Key {
			if takesKey {
				holder.State = ledger.ApprovalExpired
			}
			if m.shared == nil {
				m.shared = map[[2]string]*modelPayment{}
			}
			m.shared[[2]string{p.Agent, r.Key}] = p
		}
		return decision{state: p.State, id: p.ID, join: why}
	}
	if holder != nil {
		switch {
		case holder.Fingerprint != r.Fingerprint:
			return decision{err: ledger.ErrKeyConflict}
		case holder.State == ledger.Approved && holder.TermsHash == terms:
			approved = holder
		case holder.State == ledger.Approved:
			takesKey = true
		case holder.State == ledger.PendingApproval && v.Status == payment.Denied:
			own = true
		default:
			return decision{state: holder.State, id: holder.ID, join: ledger.JoinKey}
		}
	}
	var outdated []*modelPayment
	if approved == nil && !own {
		for _, p := range list {
			if p.Agent == r.Payment.Agent && p.Fingerprint == r.Fingerprint && m.guards(p, r) {
				return joins(p, ledger.JoinGuard)
			}
		}
		for _, p := range list {
			if p.Agent != r.Payment.Agent || p.Fingerprint != r.Fingerprint || !asks(p) || p.Key != "" && r.Key != "" {
				continue
			}
			if p.State == ledger.PendingApproval && pending == nil {
				pending = p
			}
			if p.State == ledger.Approved && p.TermsHash == terms && approved == nil {
				approved = p
			}
			if p.State == ledger.Approved && p.TermsHash != terms && p.Terms.IsTransfer() {
				outdated = append(outdated, p)
			}
		}
		for _, p := range list {
			if approved == nil && p.Agent == r.Payment.Agent && p.Fingerprint == r.Fingerprint && p.waitedWith(m.now, r) {
				return joins(p, ledger.JoinEqual)
			}
		}
	}
	if approved == nil && pending != nil && v.Status != payment.Denied {
		return joins(pending, ledger.JoinEqual)
	}

	var d decision
	if v.Status == payment.Denied {
		d.denied = append(d.denied, "host_denied")
	}
	if approved == nil && r.Key == "" && r.Payment.Terms.IsTransfer() {
		for _, p := range list {
			if p.Agent == r.Payment.Agent && p.Fingerprint == r.Fingerprint && !p.AuthorizedAt.IsZero() && !p.State.Freed() &&
				m.now.Sub(p.AuthorizedAt) <= v.DuplicateWindow {
				d.denied = append(d.denied, ledger.CodeDuplicate)
				break
			}
		}
	}
	asked := v.Status == payment.PendingApproval
	for _, l := range v.Limits {
		u := m.use(l)
		u.Held = 0
		switch full := l.Counting && u.Count >= l.Count || !l.Counting && u.USD+cost > l.USD; {
		case !full || l.Shadow:
		case l.Asks:
			asked = true
		case l.Counting:
			d.denied = append(d.denied, policy.CodeCountExceeded)
		default:
			d.denied = append(d.denied, policy.CodeCapExceeded)
		}
		d.uses = append(d.uses, u)
	}
	if len(d.denied) == 0 && asked && approved == nil {
		n := 0
		for _, p := range list {
			if p.Agent == r.Payment.Agent && p.State == ledger.PendingApproval {
				n++
			}
		}
		if n >= v.MaxPending {
			d.denied = append(d.denied, ledger.CodeTooManyPending)
		}
	}
	slices.Sort(d.denied)
	if len(d.denied) > 0 && approved != nil {
		d.state, d.id = ledger.Approved, approved.ID
		return d
	}
	p := approved
	if p == nil {
		p = &modelPayment{Entry: ledger.Entry{ID: r.Payment.ID, Key: r.Key}, expires: m.now.Add(v.ApprovalTTL)}
		m.list = append(m.list, p)
	}
	switch {
	case len(d.denied) > 0:
		p.State = ledger.Denied
	case asked && approved == nil:
		p.State = ledger.PendingApproval
	default:
		p.State = ledger.Authorized
		p.approved = approved != nil
		p.Spent = cost
		p.AuthorizedAt, p.ValidBefore = m.now, m.now.Add(r.Validity).Truncate(time.Second)
	}
	if p.Key == "" && approved != nil {
		p.Key = r.Key
	}
	if takesKey && p.State != ledger.Denied && p.Key == r.Key {
		holder.State = ledger.ApprovalExpired
	}
	for _, o := range outdated {
		if p.State != ledger.Denied && (o.Key == "" || p.Key == "" || o.Key == p.Key) {
			o.State = ledger.ApprovalExpired
		}
	}
	p.Agent, p.Shared, p.Host, p.Terms, p.TermsHash = r.Payment.Agent, v.Shared, r.Payment.Host, r.Payment.Terms, terms
	p.Run = ""
	if slices.ContainsFunc(v.Limits, func(l policy.Limit) bool { return l.Scope.Kind == policy.ScopeRun }) {
		p.Run = r.Payment.Run
	}
	p.Cost, p.Fingerprint, p.Watched, p.DuplicateWindow = cost, r.Fingerprint, r.Watched, v.DuplicateWindow
	d.state, d.id = p.State, p.ID
	return d
}

// waitedWith reports whether p was approved and carried out while the call of r
// was under way.
func (p *modelPayment) waitedWith(now time.Time, r ledger.Request) bool {
	return p.approved && !p.State.Freed() && r.Began.Before(p.AuthorizedAt) && now.Before(p.AuthorizedAt.Add(time.Hour)) &&
		(p.Key == "" || r.Key == "" || p.Key == r.Key)
}

// guards reports whether p answers a later equal call.
func (m *model) guards(p *modelPayment, r ledger.Request) bool {
	doubt := p.State == ledger.InDoubt || p.State == ledger.NeedsOperator
	paid := p.State == ledger.Claimed || p.State == ledger.Settled
	if p.Terms.IsTransfer() && !doubt || !p.Terms.IsTransfer() && (p.Delivered || !doubt && !paid) {
		return false
	}
	safe := p.outcome.Add(p.DuplicateWindow)
	if p.ValidBefore.After(safe) {
		safe = p.ValidBefore
	}
	return m.now.Before(safe) && (p.Recovered || !r.Began.Before(p.outcome))
}

// advance records a move that the table allows.
func (m *model) advance(p *modelPayment, c ledger.Change) {
	if p.outcome.IsZero() && c.To != ledger.Authorized {
		p.outcome, p.Recovered = m.now, c.By == ledger.ByRecovery
	}
	p.State = c.To
	p.Delivered = p.Delivered || c.Delivered
	switch {
	case c.To.Freed() && c.Fee == nil:
		p.Spent = 0
	case c.To == ledger.Cancelled:
		p.Spent = *c.Fee
	case c.Fee != nil:
		p.Spent = p.Terms.Cost() - p.Terms.FeeBound + *c.Fee
	}
	if (c.To == ledger.Settled || c.Fee != nil) && !c.SpentAt.IsZero() {
		if p.SpentAt = c.SpentAt; p.SpentAt.Before(p.AuthorizedAt) {
			p.SpentAt = p.AuthorizedAt
		}
	}
}

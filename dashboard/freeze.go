package dashboard

import (
	"net/http"
	"slices"
	"strings"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/policy"
)

// freezeView is the switch.
type freezeView struct {
	view
	Stopped []frozen
	Agents  []string
	Token   string
}

func (p *Page) freezePage(w http.ResponseWriter, r *http.Request, s *session) {
	v := freezeView{view: p.view(r, s, "Freeze", "freeze"), Agents: p.agents(), Token: s.form(purpose{act: "freeze"}, p.cfg.Now())}
	all, err := p.freezer.Freezes(r.Context())
	if err != nil {
		p.broken(w, r, s, err)
		return
	}
	for _, f := range freezesOf(all) {
		f.Token = s.form(purpose{act: "unfreeze"}, p.cfg.Now())
		v.Stopped = append(v.Stopped, f)
	}
	p.render(w, r, http.StatusOK, "freeze", v)
}

// agents are those with a table of their own.
func (p *Page) agents() []string {
	all := slices.Clone(p.cfg.Policy.Agents())
	if !slices.Contains(all, policy.Default) {
		all = append(all, policy.Default)
	}
	slices.Sort(all)
	return all
}

// freeze stops an agent's payments, or everybody's, or ends that.
func (p *Page) freeze(w http.ResponseWriter, r *http.Request, s *session) {
	if r.ParseForm() != nil {
		p.fail(w, r, s, http.StatusBadRequest, "The form could not be read: nothing was done.", "")
		return
	}
	act := r.PostForm.Get("act")
	if act != "unfreeze" {
		act = "freeze"
	}
	if _, err := s.spend(r, act, "", p.cfg.Now()); err != nil {
		p.fail(w, r, s, http.StatusForbidden, "That form was sent before, or is too old: nothing was done.", "Load the page again.")
		return
	}
	agent := r.PostForm.Get("agent")
	if r.PostForm.Get("whom") == "all" {
		agent = ""
	} else if policy.CheckName(agent) != nil {
		p.fail(w, r, s, http.StatusBadRequest, "No agent can have that name: nothing was done.", "")
		return
	}
	reason := clean(r.PostForm.Get("reason"), 300)
	if reason == "" {
		p.fail(w, r, s, http.StatusBadRequest, "A reason is needed, for the record: nothing was done.", "Go back and say why.")
		return
	}
	turn := p.freezer.Freeze
	if act == "unfreeze" {
		turn = p.freezer.Unfreeze
		for _, a := range append(p.agents(), agent) {
			if a != "" && ledger.FoldApprover(strings.TrimSpace(a)) == ledger.FoldApprover(s.name) {
				p.fail(w, r, s, http.StatusForbidden, "An agent has your name, and no agent ends a freeze.", "Nothing was done.")
				return
			}
		}
	}
	err := turn(r.Context(), agent, "page:"+s.name, reason)
	if err != nil {
		p.broken(w, r, s, err)
		return
	}
	p.cfg.Logger.Info("dashboard: "+act, "agent", agent, "approver", s.name)
	http.Redirect(w, r, "/freeze", http.StatusSeeOther)
}

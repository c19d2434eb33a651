package dashboard

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// purpose is what a form may do: nothing else, and once.
type purpose struct {
	act     string // rule, freeze, unfreeze, logout
	subject string // the approval's id
	terms   payment.Hash
}

// forms are those of a session that may still be sent, by the hash of their
// tokens.
type forms struct {
	of    map[[32]byte]form
	order [][32]byte // oldest first
}

type form struct {
	purpose
	made time.Time
}

// How long a form may be sent, and how many are kept for a session: the oldest
// give way.
const (
	formAge  = 2 * time.Hour
	maxForms = 2048
)

// form returns the token of a new form.
func (n *session) form(p purpose, now time.Time) string {
	token := secret()
	key := sha256.Sum256([]byte(token))
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.forms.of == nil {
		n.forms.of = map[[32]byte]form{}
	}
	n.forms.of[key] = form{p, now}
	if n.forms.order = append(n.forms.order, key); len(n.forms.order) > maxForms {
		delete(n.forms.of, n.forms.order[0])
		n.forms.order = n.forms.order[1:]
	}
	return token
}

var errForm = errors.New("dashboard: the form was sent before, is too old, or is of another session")

// spend uses up the form of a posted request, which must be for act and subject.
// The hash is that of the terms that were shown in it.
func (n *session) spend(r *http.Request, act, subject string, now time.Time) (payment.Hash, error) {
	if err := r.ParseForm(); err != nil {
		return payment.Hash{}, err
	}
	key := sha256.Sum256([]byte(r.PostForm.Get("token")))
	n.mu.Lock()
	f, ok := n.forms.of[key]
	delete(n.forms.of, key)
	n.mu.Unlock()
	if !ok || f.act != act || f.subject != subject || now.Sub(f.made) >= formAge {
		return payment.Hash{}, errForm
	}
	if !f.terms.IsZero() && r.PostForm.Get("terms") != f.terms.String() {
		return payment.Hash{}, errForm
	}
	return f.terms, nil
}

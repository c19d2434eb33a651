package policy

import (
	"fmt"
	"reflect"
	"strings"
)

// String is the policy as a document: its tables in the order in which they
// were given, their keys in a fixed order, defaults left out, comments and
// other tables gone. Parse reads it as an equal policy, but for Rules, which a
// comment names.
func (p *Policy) String() string {
	if p == nil || p.doc == nil {
		return "# no policy\n"
	}
	var b strings.Builder
	if o := &p.doc.org; p.doc.orgName != "" || o.caps.set || o.timezone.set || o.frozen.set {
		b.WriteString("[org]\n")
		writeText(&b, "name", value{text: p.doc.orgName, set: p.doc.orgName != ""})
		writeList(&b, "caps", o.caps)
		writeText(&b, "timezone", o.timezone)
		writeFlag(&b, "frozen", o.frozen)
	}
	for _, s := range p.doc.tables {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "[policy.%s]\n", keyText(s.name))
		writeText(&b, "from", s.from)
		writeFlag(&b, "frozen", s.frozen)
		writeText(&b, "max_payment", s.maxPayment)
		writeList(&b, "caps", s.caps)
		writeText(&b, "approve_above", s.approveAbove)
		writeList(&b, "approve_above_total", s.approveTotal)
		writeList(&b, "allow", s.allow)
		writeList(&b, "deny", s.deny)
		writeList(&b, "hours", s.hours)
		writeText(&b, "timezone", s.timezone)
		writeText(&b, "new_payee", s.newPayee)
		writeText(&b, "price_jump", s.priceJump)
		writeText(&b, "mode", s.mode)
		writeText(&b, "max_validity", s.maxValidity)
		writeText(&b, "duplicate_window", s.duplicateWindow)
		writeText(&b, "approval_ttl", s.approvalTTL)
		if s.maxPending.set {
			fmt.Fprintf(&b, "max_pending = %d\n", s.maxPending.n)
		}
		writeFlag(&b, "chat_approval", s.chat)
		writeList(&b, "approvers", s.approvers)
		if s.quorum.set {
			fmt.Fprintf(&b, "quorum = %d\n", s.quorum.n)
		}
		for _, r := range s.rules {
			fmt.Fprintf(&b, "# rule %s\n", reflect.TypeOf(r))
		}
	}
	return b.String()
}

func writeText(b *strings.Builder, key string, v value) {
	if v.set {
		b.WriteString(key + " = ")
		quote(b, v.text)
		b.WriteByte('\n')
	}
}

func writeList(b *strings.Builder, key string, v values) {
	switch {
	case !v.set:
		return
	case v.bare:
		writeText(b, key, v.list[0])
		return
	}
	b.WriteString(key + " = [")
	for i, item := range v.list {
		if i > 0 {
			b.WriteString(", ")
		}
		quote(b, item.text)
	}
	b.WriteString("]\n")
}

func writeFlag(b *strings.Builder, key string, f flag) {
	if f.set {
		fmt.Fprintf(b, "%s = %t\n", key, f.on)
	}
}

// quote writes s as a basic string of TOML, whose escapes are not Go's.
func quote(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(b, `\U%08X`, r)
		default:
			fmt.Fprintf(b, `\u%04X`, r)
		}
	}
	b.WriteByte('"')
}

package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// tableKeys are the keys of a [policy.NAME] table, orgKeys those of [org].
var (
	tableKeys = []string{
		"max_payment", "caps", "approve_above", "allow", "deny", "frozen", "from", "timezone", "max_validity",
		"duplicate_window", "approval_ttl", "max_pending", "chat_approval", "mode", "approve_above_total", "hours",
		"new_payee", "price_jump", "approvers", "quorum",
	}
	orgKeys = []string{"name", "caps", "timezone", "frozen"}
)

// Parse reads a policy document: TOML with the tables [org] and [policy.NAME],
// as docs/policy.md says. name, such as canopy.toml, stands in errors. It is
// strict: what it does not know is an error, with its line, and so is every
// other top-level key but those of others, which are not looked at beyond
// being TOML. The error is an *Error, or several joined.
//
// doc may have MaxDocument bytes and is not kept. Calendar windows in a zone
// other than UTC need the zone database: of the system, or of time/tzdata where
// the program imports it.
func Parse(name string, doc []byte, others ...string) (*Policy, error) {
	d := &document{name: name, errs: errorList{file: name}}
	root, err := read(name, doc, others, &d.errs)
	if err != nil {
		return nil, err
	}
	for _, top := range root.keys {
		switch n := root.table[top]; {
		case n.kind != unstable.Table:
			d.errs.add(n.line, top, "must be a table, not "+n.what())
		case top == "org":
			d.readOrg(n)
		case top == "policy":
			d.readPolicies(n)
		}
	}
	p, err := d.compile()
	if err != nil {
		return nil, err
	}
	p.hash = hashOf(doc)
	return p, nil
}

func (d *document) readOrg(n *node) {
	d.org = source{name: "org", line: n.line}
	for _, key := range n.keys {
		switch v := n.table[key]; key {
		case "name":
			d.orgName = d.text(v, "org.name").text
		case "caps":
			d.org.caps = d.list(v, "org.caps")
		case "timezone":
			d.org.timezone = d.text(v, "org.timezone")
		case "frozen":
			d.org.frozen = d.flag(v, "org.frozen")
		default:
			d.unknown(v, "org", key, orgKeys)
		}
	}
}

func (d *document) readPolicies(n *node) {
	for _, name := range n.keys {
		t := n.table[name]
		if t.kind != unstable.Table {
			text := "a policy is a table: write [policy." + keyText(name) + "], not " + t.what()
			for _, k := range tableKeys {
				if k == name {
					text = "stands outside of an agent's table: write it below [policy.default] or another [policy.NAME]"
				}
			}
			d.errs.add(t.line, tableKey(name), text)
			continue
		}
		d.tables = append(d.tables, d.readTable(name, t))
	}
}

func (d *document) readTable(name string, n *node) *source {
	s := &source{name: name, line: n.line}
	for _, key := range n.keys {
		v, path := n.table[key], tableKey(name)+"."+keyText(key)
		switch key {
		case "from":
			s.from = d.text(v, path)
		case "max_payment":
			s.maxPayment = d.amount(v, path)
		case "approve_above":
			s.approveAbove = d.amount(v, path)
		case "caps":
			s.caps = d.list(v, path)
		case "allow":
			s.allow = d.list(v, path)
		case "deny":
			s.deny = d.list(v, path)
		case "frozen":
			s.frozen = d.flag(v, path)
		case "timezone":
			s.timezone = d.text(v, path)
		case "max_validity":
			s.maxValidity = d.text(v, path)
		case "duplicate_window":
			s.duplicateWindow = d.text(v, path)
		case "approval_ttl":
			s.approvalTTL = d.text(v, path)
		case "max_pending":
			s.maxPending = d.number(v, path)
		case "chat_approval":
			s.chat = d.flag(v, path)
		case "mode":
			s.mode = d.text(v, path)
		case "approve_above_total":
			s.approveTotal = d.oneOrMore(v, path)
		case "hours":
			s.hours = d.oneOrMore(v, path)
		case "new_payee":
			s.newPayee = d.text(v, path)
		case "price_jump":
			s.priceJump = d.text(v, path)
		case "approvers":
			s.approvers = d.list(v, path)
		case "quorum":
			s.quorum = d.number(v, path)
		default:
			d.unknown(v, tableKey(name), key, tableKeys)
		}
	}
	return s
}

func (d *document) unknown(v *node, table, key string, known []string) {
	hint := didYouMean(key, known...)
	if hint == "" {
		hint = "; the keys here are " + strings.Join(known, ", ")
	}
	d.errs.add(v.line, table+"."+keyText(key), "unknown key"+hint)
}

// text is a text that is not empty.
func (d *document) text(n *node, path string) value {
	switch {
	case n.kind != unstable.String:
		d.errs.add(n.line, path, "must be text in quotes, not "+n.what())
	case n.text == "":
		d.errs.add(n.line, path, "is empty: leave the key out for its default")
	}
	return value{text: n.text, line: n.line, set: true}
}

func (d *document) amount(n *node, path string) value {
	if n.kind == unstable.Integer || n.kind == unstable.Float {
		d.errs.add(n.line, path, fmt.Sprintf(`%s has no unit: write "$%s", in quotes`, clip(n.text), clip(n.text)))
		return value{text: "$0", line: n.line, set: true}
	}
	v := d.text(n, path)
	if n.kind != unstable.String || n.text == "" {
		v.text = "$0" // the fault is told
	}
	return v
}

// oneOrMore is a text, or a list of texts.
func (d *document) oneOrMore(n *node, path string) values {
	if n.kind != unstable.String {
		return d.list(n, path)
	}
	return values{list: []value{d.text(n, path)}, line: n.line, set: true, bare: true}
}

func (d *document) list(n *node, path string) values {
	out := values{line: n.line, set: true}
	if n.kind != unstable.Array {
		hint := ""
		if n.kind == unstable.String {
			hint = ": write it in square brackets"
		}
		d.errs.add(n.line, path, "must be a list of texts, not "+n.what()+hint)
		return out
	}
	for _, item := range n.items {
		if item.kind != unstable.String {
			d.errs.add(item.line, path, "must be a list of texts in quotes: one is "+item.what())
			continue
		}
		out.list = append(out.list, value{text: item.text, line: item.line, set: true})
	}
	return out
}

func (d *document) flag(n *node, path string) flag {
	if n.kind != unstable.Bool {
		d.errs.add(n.line, path, "must be true or false, without quotes, not "+n.what())
	}
	return flag{on: n.text == "true", line: n.line, set: true}
}

func (d *document) number(n *node, path string) number {
	v := number{line: n.line, set: true, n: 1}
	i, err := strconv.ParseInt(n.text, 10, 64)
	if n.kind != unstable.Integer || err != nil {
		d.errs.add(n.line, path, "must be a whole number, without quotes, not "+n.what())
		return v
	}
	v.n = i
	return v
}

// keyText is a key as a document writes it: bare, or quoted and bounded.
func keyText(s string) string {
	bare := s != "" && len(s) <= 80
	for i := range len(s) {
		c := s[i]
		bare = bare && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_')
	}
	if bare {
		return s
	}
	return strconv.QuoteToASCII(clip(s))
}

package mpp

import "strings"

const (
	// maxChallenges and maxParameters bound what is looked at.
	maxChallenges = 32
	maxParameters = 32

	// maxLine bounds what is read of one header line, and maxLines of all.
	maxLine  = 64 << 10
	maxLines = 256 << 10
)

// schemePayment is the authentication scheme, in any case of letters.
const schemePayment = "Payment"

// reader goes through the WWW-Authenticate lines of a response. Each byte is
// visited a bounded number of times.
type reader struct {
	found []challenge
	bad   []Skipped
	seen  int  // challenges of the scheme
	full  bool // no more of them are looked at

	open bool // a challenge of the scheme is being read
	params
}

// lines reads each line by itself: nothing is carried from one to the next. Of a
// line that is too long its beginning is read, but for the challenge that it cuts.
func (r *reader) lines(lines []string) {
	total := 0
	for _, s := range lines {
		if total += len(s); r.full || total > maxLines {
			return
		}
		r.line(s[:min(len(s), maxLine)])
		if len(s) > maxLine {
			r.fail("too_large", "a line of more than 64 KiB")
		}
		r.close()
	}
}

// line splits s at the commas outside quotes, and leaves its last challenge
// open. An element that begins with a name and an equals sign is a parameter of
// the challenge before it; any other name begins a challenge.
func (r *reader) line(s string) {
	for i := 0; i < len(s) && !r.full; {
		if blank(s[i]) || s[i] == ',' {
			i++
			continue
		}
		end := tokenEnd(s, i)
		next := skipBlank(s, end)
		switch {
		case end == i:
			i = r.junk(s, i)
		case next < len(s) && s[next] == '=':
			i = r.parameter(s, s[i:end], next+1)
		case next < len(s) && next == end && s[next] != ',':
			i = r.junk(s, i)
		default:
			i = r.begin(s, s[i:end], next)
		}
	}
}

// begin opens the challenge of a scheme. What follows the scheme in its own
// element, at i, is the first parameter or credentials of some other form.
func (r *reader) begin(s, scheme string, i int) int {
	r.close()
	if strings.EqualFold(scheme, schemePayment) {
		if r.seen == maxChallenges {
			r.full = true
			r.bad = append(r.bad, Skipped{r.seen, "too_many", "this challenge and all after it"})
			return i
		}
		r.open = true
		r.params = params{}
	}
	if i == len(s) || s[i] == ',' {
		return i
	}
	end := tokenEnd(s, i)
	if next := skipBlank(s, end); end > i && next < len(s) && s[next] == '=' {
		return r.parameter(s, s[i:end], next+1)
	}
	return r.junk(s, i)
}

// close ends the challenge that is open, if one is.
func (r *reader) close() {
	if !r.open {
		return
	}
	r.open = false
	c, why := r.challenge()
	if why == (skip{}) {
		c.index = r.seen
		r.found = append(r.found, c)
	} else {
		r.bad = append(r.bad, Skipped{r.seen, why.code, why.detail})
	}
	r.seen++
}

// parameter reads the value at i of the parameter called name, and returns
// where its element ends.
func (r *reader) parameter(s, name string, i int) int {
	if i = skipBlank(s, i); i == len(s) || s[i] == ',' {
		r.fail("malformed", name+" has no value")
		return i
	}
	var v value
	if s[i] == '"' {
		end := quoteEnd(s, i, &v)
		if end < 0 {
			r.fail("unterminated", name)
			return len(s)
		}
		v.raw = s[i+1 : end]
		i = end + 1
	} else {
		end := bareEnd(s, i)
		v.raw = s[i:end]
		i = end
	}
	if next := skipBlank(s, i); next < len(s) && s[next] != ',' {
		r.fail("malformed", "text after the value of "+name)
		return elementEnd(s, next)
	}
	r.set(name, v)
	return i
}

// junk goes past an element that is no part of any challenge.
func (r *reader) junk(s string, i int) int {
	r.fail("malformed", s[i:min(len(s), i+40)])
	return elementEnd(s, i)
}

func (r *reader) fail(code, said string) {
	if r.open && r.why == (skip{}) {
		r.why = skipped(code, said)
	}
}

func (r *reader) set(name string, v value) {
	if r.open && r.why == (skip{}) {
		r.why = r.params.set(name, v)
	}
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

func skipBlank(s string, i int) int {
	for i < len(s) && blank(s[i]) {
		i++
	}
	return i
}

// class is what a byte may be part of.
var class = func() (t [256]uint8) {
	for c := range 256 {
		switch b := byte(c); {
		case b >= '0' && b <= '9', b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0:
			t[c] = inToken | inBare | inQuote
		case b == ' ', b == ',':
			t[c] = inQuote
		case b == '"', b == '\\':
		case b > ' ' && b < 0x7f:
			t[c] = inBare | inQuote
		}
	}
	return t
}()

const (
	inToken = 1 << iota
	inBare  // a value without quotes, taken more widely than a token
	inQuote // stands for itself between quotes
)

func tokenEnd(s string, i int) int {
	for i < len(s) && class[s[i]]&inToken != 0 {
		i++
	}
	return i
}

func bareEnd(s string, i int) int {
	for i < len(s) && class[s[i]]&inBare != 0 {
		i++
	}
	return i
}

// quoteEnd returns where the quote that opens at i closes, or -1.
func quoteEnd(s string, i int, v *value) int {
	for i++; i < len(s); i++ {
		c := s[i]
		if class[c]&inQuote != 0 {
			continue
		}
		switch c {
		case '"':
			return i
		case '\\':
			v.escaped = true
			i++ // past the end, where the line ends here
			if i < len(s) && class[s[i]] == 0 && s[i] != '"' && s[i] != '\\' {
				v.foreign = true
			}
		default:
			v.foreign = true
		}
	}
	return -1
}

// elementEnd returns where the element that goes on at i ends: at the next comma
// outside quotes.
func elementEnd(s string, i int) int {
	for i < len(s) && s[i] != ',' {
		if s[i] == '"' {
			if i = quoteEnd(s, i, new(value)); i < 0 {
				return len(s)
			}
		}
		i++
	}
	return i
}

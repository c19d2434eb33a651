package host

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// Suspicious returns why a normalised name may not be what it looks like, or "".
// A label is suspicious when it cannot be decoded, mixes scripts that no one
// language mixes, or reads as plain ASCII although it is not. The reason is
// ASCII itself and safe to show. It is a warning for a person and decides
// nothing.
func Suspicious(name string) string {
	for label := range strings.SplitSeq(name, ".") {
		if !strings.HasPrefix(label, "xn--") {
			continue
		}
		u, err := idna.Display.ToUnicode(label)
		if err != nil {
			return fmt.Sprintf("label %s cannot be decoded", quote(label))
		}
		if s, ok := readsAs(u); ok {
			return fmt.Sprintf("label %s reads as %s but is spelt with other letters", quote(label), quote(s))
		}
		if s := scripts(u); !together(s) {
			return fmt.Sprintf("label %s mixes %s letters", quote(label), strings.Join(s, " and "))
		}
	}
	return ""
}

// scripts returns the scripts of s's letters, sorted.
func scripts(s string) []string {
	var found []string
	for _, r := range s {
		if name := script(r); name != "" && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

func script(r rune) string {
	for name, table := range unicode.Scripts {
		if name != "Common" && name != "Inherited" && unicode.Is(table, r) {
			return name
		}
	}
	return ""
}

// writing are the scripts that one language writes together (UTS #39, highly
// restrictive), each set with Latin allowed beside it.
var writing = [][]string{
	{"Han", "Hiragana", "Katakana", "Latin"},
	{"Bopomofo", "Han", "Latin"},
	{"Han", "Hangul", "Latin"},
}

func together(scripts []string) bool {
	if len(scripts) < 2 {
		return true
	}
	for _, set := range writing {
		if !slices.ContainsFunc(scripts, func(s string) bool { return !slices.Contains(set, s) }) {
			return true
		}
	}
	return false
}

// lookalikes maps a letter to the ASCII that common fonts draw like it.
var lookalikes = func() map[rune]rune {
	m := map[rune]rune{}
	for pair := range strings.FieldsSeq(`
		аa сc ԁd еe ԍg һh іi јj кk ӏl оo рp ԛq гr ѕs ѵv ԝw хx уy ьb пn
		αa εe ιi κk νv οo ρp τt υu ωw χx ηn γy σo ϲc ϳj
		օo սu հh ցg զq յj ոn ռn քp
		ყy ძd ოo סo
		ɑa ɡg ıi ȷj ɩl ɪi ʏy ʋv ʟl ƅb ᴀa ᴄc ᴋk ᴏo ᴘp ᴛt ᴠv ᴡw ᴢz
		०0 ০0 ੦0 ૦0 ௦0 ౦0 ๐0 ໐0 ០0
	`) {
		r := []rune(pair)
		m[r[0]] = r[1]
	}
	return m
}()

// readsAs returns the ASCII that s looks like, and whether all of it does.
func readsAs(s string) (string, bool) {
	var b strings.Builder
	for _, r := range s {
		if r >= unicode.MaxASCII {
			ascii, ok := lookalikes[r]
			if !ok {
				return "", false
			}
			r = ascii
		}
		b.WriteRune(r)
	}
	return b.String(), true
}

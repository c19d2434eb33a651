package canopytest

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// jcs writes v, of maps, lists, strings, booleans and whole numbers, in the one
// form that JCS gives it.
func jcs(v any) []byte {
	var b strings.Builder
	writeJCS(&b, v)
	return []byte(b.String())
}

func writeJCS(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case uint64:
		b.WriteString(strconv.FormatUint(v, 10))
	case string:
		writeJCSText(b, v)
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJCS(b, e)
		}
		b.WriteByte(']')
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, func(x, y string) int {
			return slices.Compare(utf16.Encode([]rune(x)), utf16.Encode([]rune(y)))
		})
		b.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJCSText(b, k)
			b.WriteByte(':')
			writeJCS(b, v[k])
		}
		b.WriteByte('}')
	default:
		panic("canopytest: JCS of another type")
	}
}

func writeJCSText(b *strings.Builder, s string) {
	short := map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\t': `\t`, '\n': `\n`, '\f': `\f`, '\r': `\r`}
	b.WriteByte('"')
	for _, r := range s {
		if esc, ok := short[r]; ok {
			b.WriteString(esc)
		} else if r < 0x20 {
			b.WriteString(`\u` + strconv.FormatUint(0x10000|uint64(r), 16)[1:])
		} else {
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

func hex0x(b []byte) string { return "0x" + hex.EncodeToString(b) }

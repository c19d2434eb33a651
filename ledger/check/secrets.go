package check

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
)

// secrets is I16, as far as the ledger goes.
func (c *checking) secrets(h *history, found func(string, ...any)) {
	if len(c.o.Secrets) == 0 {
		return
	}
	text, err := json.Marshal(h.entry)
	if err != nil {
		found("I16: it cannot be searched: %v", err)
		return
	}
	all := append(bytes.ToLower(text), h.entry.Echo...)
	for i := range h.events {
		all = append(all, h.events[i].Data...)
	}
	for _, s := range c.o.Secrets {
		if bytes.Contains(all, s) || bytes.Contains(all, []byte(hex.EncodeToString(s))) {
			found("I16: it holds a secret")
			return
		}
	}
}

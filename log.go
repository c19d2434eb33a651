package canopy

import (
	"log/slog"

	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/ledger"
)

const (
	levelInfo  = slog.LevelInfo
	levelError = slog.LevelError
)

// attrs describe e in a log: who, what and how much, never a seller's text, a
// key or signed bytes.
func attrs(e ledger.Entry, more ...any) []slog.Attr {
	out := []slog.Attr{
		slog.String("payment", string(e.ID)), slog.String("agent", e.Agent), slog.String("state", e.State.String()),
		slog.String("rail", e.Terms.Rail), slog.String("host", e.Host), slog.String("cost", e.Cost.String()),
	}
	for i := 0; i+1 < len(more); i += 2 {
		out = append(out, slog.Any(more[i].(string), more[i+1]))
	}
	return out
}

// clip bounds text that an error quotes.
func clip(s string) string { return plaintext.Clean(s, 60) }

package canopy

import (
	"context"
	"log/slog"
	"strings"

	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/ledger"
)

const (
	levelInfo  = slog.LevelInfo
	levelError = slog.LevelError
)

// log tells of e: who, what and how much, never a seller's text, a key or
// signed bytes. what goes before the state where it ends in a space.
func (c *Client) log(ctx context.Context, level slog.Level, what string, e *ledger.Entry, more ...slog.Attr) {
	if !c.cfg.Logger.Enabled(ctx, level) {
		return
	}
	if strings.HasSuffix(what, " ") {
		what += e.State.String()
	}
	c.cfg.Logger.LogAttrs(ctx, level, what, append([]slog.Attr{
		slog.String("payment", string(e.ID)), slog.String("agent", e.Agent), slog.String("state", e.State.String()),
		slog.String("rail", e.Terms.Rail), slog.String("host", e.Host), slog.String("cost", e.Cost.String()),
	}, more...)...)
}

// clip bounds text that an error quotes.
func clip(s string) string { return plaintext.Clean(s, 60) }

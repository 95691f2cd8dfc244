package queue

import (
	"context"
	"log/slog"
)

// quiet lets River's warnings and errors through: its infos tell of jobs, not
// of operations.
type quiet struct{ slog.Handler }

// Enabled says whether a record of this level is written.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

// WithAttrs keeps the silence.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup keeps the silence.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

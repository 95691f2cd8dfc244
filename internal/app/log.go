package app

import (
	"io"
	"log/slog"

	"gitlab.com/sluice-runners/sluice/internal/config"
)

// logger writes one line per fact. A command that prints progress itself logs
// warnings only: everything else is in the journal that it prints.
func logger(w io.Writer, c config.Log, role Role) *slog.Logger {
	if w == nil {
		return slog.New(slog.DiscardHandler)
	}
	level := slog.LevelInfo
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo
	}
	if role != RoleServe && level == slog.LevelInfo {
		level = slog.LevelError
	}
	o := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

package store

import (
	"context"
	"errors"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// fail turns what SQLite said into an error that names the file and what to do
// about it. Errors of ours pass unchanged; nil stays nil.
func (s *Store) fail(what string, err error) error {
	if err == nil {
		return nil
	}
	if ours, ok := errors.AsType[*fleet.Error](err); ok {
		return ours
	}
	if errors.Is(err, context.Canceled) {
		return fleet.Errorf(fleet.CodeCanceled, "%s: canceled before it was stored: %w", what, err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fleet.Errorf(fleet.CodeUnavailable, "%s: the journal %s did not answer in time: %w", what, s.path, err).
			WithHint("check the load of the disk that holds it")
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return s.explain(what, e)
	}
	return fleet.Errorf(fleet.CodeInternal, "%s: the journal %s: %w", what, s.path, err)
}

// explain maps SQLite's primary result codes (sqlite.org/rescode.html).
func (s *Store) explain(what string, err *sqlite.Error) error {
	dir := filepath.Dir(s.path)
	switch err.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return fleet.Errorf(fleet.CodeUnavailable, "%s: the disk is full: the journal %s cannot grow: %w", what, s.path, err).
			WithHint("free space in %s; nothing was half done, it goes on by itself", dir)
	case sqlite3.SQLITE_IOERR:
		return fleet.Errorf(fleet.CodeUnavailable, "%s: reading or writing the journal %s failed: %w", what, s.path, err).
			WithHint("check space, quota and health of the disk that holds %s; nothing was half done", dir)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return fleet.Errorf(fleet.CodeForbidden, "%s: the journal %s cannot be written: %w", what, s.path, err).
			WithHint("check owner and mode of the file, its -wal and -shm, and of %s", dir)
	case sqlite3.SQLITE_CANTOPEN:
		return fleet.Errorf(fleet.CodeForbidden, "%s: the journal %s cannot be opened: %w", what, s.path, err).
			WithHint("the user needs the right to read the file and to write in %s, where SQLite keeps its -wal and -shm", dir)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fleet.Errorf(fleet.CodeInvalid, "%s: the journal %s is damaged or no SQLite file: %w", what, s.path, err).
			WithHint("stop Sluice, keep a copy, then restore a backup or try `sqlite3 FILE .recover`")
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fleet.Errorf(fleet.CodeUnavailable, "%s: another process held the journal %s for longer than %s: %w", what, s.path, busyTimeout, err).
			WithHint("see who has it open with `fuser %s`; it is tried again", s.path)
	case sqlite3.SQLITE_INTERRUPT:
		return fleet.Errorf(fleet.CodeCanceled, "%s: canceled before it was stored: %w", what, err)
	default:
		return fleet.Errorf(fleet.CodeInternal, "%s: the journal %s: %w", what, s.path, err)
	}
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// connections bounds the pool. SQLite has one writer at a time; the others
// read beside it. More of them only wait longer for each other
// (measured in facts/durable-engine.md).
const connections = 6

// busyTimeout is how long a connection waits for another process's lock.
const busyTimeout = 5 * time.Second

// Clock tells the time of day, for the age of idempotency keys.
type Clock interface {
	Now() time.Time
}

// Options are what a Store is made of.
type Options struct {
	Path  string // of the SQLite file; its directory must exist
	Clock Clock
	// Works says which operations this process moves; nil = all. Queued
	// operations that nobody moves hold no place in the line (see Admit).
	Works func(operation string) bool
}

// Store is the truth in one SQLite file. It is safe for concurrent use.
type Store struct {
	db     *sql.DB
	path   string
	clock  Clock
	works  func(string) bool
	writer chan struct{} // one slot: our writers queue here, in turn, not inside SQLite
	inbox  inbox         // deliveries that wait for the slot: one commit takes them all
}

// Open opens the file for reading and writing, makes it if there is none
// (mode 0600), and brings its tables up to date. Whoever opens it so holds the
// engine lock or is about to take it.
//
// Errors: CodeInvalid (not a journal of ours, or of a newer version),
// CodeForbidden (no right to write), CodeUnavailable (busy, disk full).
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := create(o.Path); err != nil {
		return nil, err
	}
	s, err := open(o, url.Values{
		"_txlock": {"immediate"},
		"_pragma": {
			"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
		},
	})
	if err != nil {
		return nil, err
	}
	if err := s.migrate(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// OpenReader opens the file for reading only, beside a writer or without one.
// Every write through it is refused.
//
// Errors: CodeNotFound (no such file), CodeConflict (tables of an older or a
// newer version), and those of [Open].
func OpenReader(ctx context.Context, o Options) (*Store, error) {
	if _, err := os.Stat(o.Path); errors.Is(err, fs.ErrNotExist) {
		return nil, fleet.Errorf(fleet.CodeNotFound, "there is no journal at %s", o.Path).
			WithHint("check store.sqlite in the configuration; the first operation makes the file")
	}
	s, err := open(o, url.Values{
		"mode":    {"ro"},
		"_pragma": {"busy_timeout(5000)", "query_only(1)"},
	})
	if err != nil {
		return nil, err
	}
	if err := s.checkVersion(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func open(o Options, query url.Values) (*Store, error) {
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeInvalid, "the journal's path %q: %w", o.Path, err)
	}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeInternal, "the journal %s cannot be opened: %w", path, err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	works := o.Works
	if works == nil {
		works = func(string) bool { return true }
	}
	return &Store{db: db, path: path, clock: o.Clock, works: works, writer: make(chan struct{}, 1)}, nil
}

// create makes an empty file that only its owner can read: stored create
// requests may name secrets.
func create(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		code, hint := fleet.CodeForbidden, "check the owner and the mode of the file and its directory"
		switch {
		case errors.Is(err, fs.ErrNotExist):
			code, hint = fleet.CodeInvalid, "make the directory "+filepath.Dir(path)+", or change store.sqlite in the configuration"
		case !errors.Is(err, fs.ErrPermission):
			code, hint = fleet.CodeUnavailable, "check the disk that holds "+filepath.Dir(path)
		}
		return fleet.Errorf(code, "the journal cannot be opened: %w", err).WithHint("%s", hint)
	}
	return file.Close()
}

// Close ends all connections. What was committed stays.
func (s *Store) Close() error { return s.db.Close() }

// DB is the connection pool, for the queue that shares the file.
func (s *Store) DB() *sql.DB { return s.db }

// Path is the absolute path of the file.
func (s *Store) Path() string { return s.path }

// write runs f in one immediate transaction, durable when it returns nil.
// After an error nothing of f is stored. f must not call the store.
func (s *Store) write(ctx context.Context, what string, f func(*sql.Tx) error) error {
	select {
	case s.writer <- struct{}{}:
		defer func() { <-s.writer }()
	case <-ctx.Done():
		return s.fail(what, ctx.Err())
	}
	return s.commit(ctx, what, f)
}

// commit is write for who holds the writer's slot.
func (s *Store) commit(ctx context.Context, what string, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return s.fail(what, err)
	}
	if err := f(tx); err != nil {
		_ = tx.Rollback() // the first error is the one to tell
		return s.fail(what, err)
	}
	return s.fail(what, tx.Commit())
}

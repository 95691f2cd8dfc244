package store_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
	"gitlab.com/sluice-runners/sluice/internal/store/storetest"
)

func TestJournalSurvivesAReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s, err := store.Open(t.Context(), store.Options{Path: path, Clock: storetest.NewClock()})
	must(t, err)
	ask(t, s, "a")
	must(t, s.Close())
	s = openStore(t, path, nil)
	if _, err := s.Operation(t.Context(), "op-a"); err != nil {
		t.Fatal(err)
	}
}

func TestJournalIsReadableByItsOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s := openStore(t, path, nil)
	ask(t, s, "a")
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		must(t, err)
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o", filepath.Base(name), mode)
		}
	}
}

func TestJournalsPathMayHoldAnyCharacter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b?mode=memory#%41&x;é")
	must(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "s?l#u%20.db")
	ask(t, openStore(t, path, nil), "a")
	info, err := os.Stat(path)
	must(t, err)
	if info.Size() == 0 {
		t.Error("the journal went elsewhere")
	}
	r := openReader(t, path)
	if _, err := r.Operation(t.Context(), "op-a"); err != nil {
		t.Error(err)
	}
}

func TestReaderWorksBesideAWriterAndWithoutOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s, err := store.Open(t.Context(), store.Options{Path: path, Clock: storetest.NewClock()})
	must(t, err)
	r := openReader(t, path)
	ask(t, s, "a")

	tx, err := s.DB().BeginTx(t.Context(), nil) // the writer is in the middle of something
	must(t, err)
	_, err = tx.ExecContext(t.Context(), "delete from operations")
	must(t, err)
	if op, err := r.FindOperation(t.Context(), "op-a"); err != nil || op.VM != "a" {
		t.Errorf("beside a writer: %+v, %v", op, err)
	}
	must(t, tx.Rollback())
	must(t, s.Close())

	if ops, err := openReader(t, path).Operations(t.Context(), control.Filter{}); err != nil || len(ops) != 1 {
		t.Errorf("without a writer: %d operations, %v", len(ops), err)
	}
	_, err = r.NextOrder(t.Context(), fleet.Ref{Fleet: "f", VM: "a"})
	mustSay(t, err, fleet.CodeForbidden, path, "cannot be written")
}

func TestOpeningSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(file("text"), []byte(strings.Repeat("this is no database\n", 100)), 0o600))
	sqlite(t, file("foreign"), "create table theirs (x)")
	openStore(t, file("newer"), nil)
	sqlite(t, file("newer"), "pragma user_version = 99")
	openStore(t, file("older"), nil)
	sqlite(t, file("older"), "pragma user_version = 0")

	writer := func(name string) error {
		_, err := store.Open(t.Context(), store.Options{Path: file(name), Clock: storetest.NewClock()})
		return err
	}
	reader := func(name string) error {
		_, err := store.OpenReader(t.Context(), store.Options{Path: file(name), Clock: storetest.NewClock()})
		return err
	}
	for _, test := range []struct {
		name string
		err  error
		code fleet.Code
		says []string
	}{
		{"reader, no file", reader("none"), fleet.CodeNotFound, []string{file("none"), "store.sqlite"}},
		{"writer, no directory", writer("no/dir"), fleet.CodeInvalid, []string{file("no"), "make the directory"}},
		{"writer, text file", writer("text"), fleet.CodeInvalid, []string{file("text"), "backup"}},
		{"reader, text file", reader("text"), fleet.CodeInvalid, []string{file("text"), "backup"}},
		{"writer, foreign file", writer("foreign"), fleet.CodeInvalid, []string{file("foreign"), "not a journal of Sluice"}},
		{"reader, foreign file", reader("foreign"), fleet.CodeInvalid, []string{file("foreign"), "not a journal of Sluice"}},
		{"writer, newer version", writer("newer"), fleet.CodeConflict, []string{file("newer"), "newer Sluice"}},
		{"reader, newer version", reader("newer"), fleet.CodeConflict, []string{file("newer"), "newer Sluice"}},
		{"reader, older version", reader("older"), fleet.CodeConflict, []string{file("older"), "older version"}},
	} {
		t.Run(test.name, func(t *testing.T) { mustSay(t, test.err, test.code, test.says...) })
	}
	if _, err := os.Stat(file("none")); err == nil {
		t.Error("reading made a file")
	}
}

func TestFactsAreNeverChanged(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "sluice.db"), nil)
	ask(t, s, "a")
	if _, err := s.DB().ExecContext(t.Context(), "update facts set operation = 'x'"); err == nil {
		t.Error("a fact was changed")
	}
}

// A VM has one unfinished operation even if the code above were wrong.
func TestTwoUnfinishedOperationsOnAVMAreImpossible(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "sluice.db"), nil)
	ask(t, s, "a")
	_, err := s.DB().ExecContext(t.Context(), `insert into operations (id, fleet, vm, kind, phase, parallel, revision, created_at, state)
		select 'other', fleet, vm, kind, phase, parallel, revision, created_at, state from operations`)
	if err == nil || !strings.Contains(err.Error(), "UNIQUE") {
		t.Errorf("got %v", err)
	}
}

// Queued operations that this process does not move hold no place in the line:
// a dead command must not hold up the next one (design.md section 9, alone).
func TestAloneOthersQueuedOperationsHoldNoPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	ask(t, openStore(t, path, nil), "dead")
	s, err := store.Open(t.Context(), store.Options{
		Path: path, Clock: storetest.NewClock(), Works: func(id string) bool { return id == "op-mine" },
	})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	op := ask(t, s, "mine")
	if ok, why, err := s.Admit(t.Context(), op, fleet.PhasePreflight, fleet.Budget{Room: 1}, op.CreatedAt); !ok || err != nil {
		t.Errorf("has to wait: %q, %v", why, err)
	}
}

func ask(t testing.TB, s *store.Store, vm string) *fleet.Operation {
	t.Helper()
	now := storetest.NewClock().Now()
	got, err := s.Insert(context.WithoutCancel(t.Context()), []fleet.Operation{{
		ID: "op-" + vm, Fleet: "f", VM: vm, Kind: fleet.KindDrain, Phase: fleet.PhaseQueued, CreatedAt: now, UpdatedAt: now,
	}}, control.Key{}, nil)
	must(t, err)
	return &got[0].Operation
}

func openReader(t testing.TB, path string) *store.Store {
	t.Helper()
	r, err := store.OpenReader(t.Context(), store.Options{Path: path, Clock: storetest.NewClock()})
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	return r
}

// sqlite runs statements on a file past the store.
func sqlite(t testing.TB, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	_, err = db.ExecContext(t.Context(), statements)
	must(t, err)
	must(t, db.Close())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mustSay wants an error of a code that holds the words a person needs.
func mustSay(t testing.TB, err error, code fleet.Code, words ...string) {
	t.Helper()
	if got := fleet.CodeOf(err); got != code {
		t.Fatalf("got %v (code %q), want code %q", err, got, code)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

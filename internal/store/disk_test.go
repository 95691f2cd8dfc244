package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
	"gitlab.com/sluice-runners/sluice/internal/store/storetest"
)

// bulky is an update that needs more room than the disks below have.
func bulky(ctx context.Context, s *store.Store, op *fleet.Operation) error {
	op.Waiting = strings.Repeat("x", 1<<20)
	vm := &fleet.VM{Ref: op.Ref(), Intake: fleet.IntakeDrained}
	return s.UpdateOperation(ctx, op,
		[]fleet.Fact{{Operation: op.ID, Text: "bulky"}}, vm, []fleet.Chore{{ID: "c", Operation: op.ID, State: []byte("{}")}})
}

// nothingHalfDone checks that of a failed bulky update nothing is stored.
func nothingHalfDone(t *testing.T, s *store.Store, op *fleet.Operation, was int64) {
	t.Helper()
	if op.Revision != was {
		t.Errorf("the caller's revision was raised to %d", op.Revision)
	}
	stored, err := s.Operation(t.Context(), op.ID)
	must(t, err)
	facts, err := s.Facts(t.Context(), 0, op.ID, 0)
	must(t, err)
	chores, err := s.Chores(t.Context(), op.ID)
	must(t, err)
	vm, err := s.VM(t.Context(), op.Ref())
	must(t, err)
	if stored.Revision != was || stored.Waiting != "" || len(facts) != 1 || len(chores) != 0 || vm.Intake != fleet.IntakeServing {
		t.Errorf("half done: %+v, %d facts, %d chores, %+v", stored, len(facts), len(chores), vm)
	}
}

func TestFullDatabaseIsSaidAndNothingIsHalfDone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s := openStore(t, path, nil)
	op := ask(t, s, "a")
	was := op.Revision
	s.DB().SetMaxOpenConns(1) // the limit belongs to a connection
	var pages int
	must(t, s.DB().QueryRowContext(t.Context(), "pragma page_count").Scan(&pages))
	limit := func(n int) {
		_, err := s.DB().ExecContext(t.Context(), fmt.Sprintf("pragma max_page_count = %d", n))
		must(t, err)
	}
	limit(pages + 10)
	mustSay(t, bulky(t.Context(), s, op), fleet.CodeUnavailable, path, "disk is full", "free space in "+filepath.Dir(path), "nothing was half done")
	nothingHalfDone(t, s, op, was)
	limit(1 << 30)
	must(t, bulky(t.Context(), s, op)) // the very same call goes on
	if op.Revision != was+1 {
		t.Errorf("revision %d", op.Revision)
	}
}

func TestFullDiskIsSaidAndNothingIsHalfDone(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("a small disk cannot be mounted: %v", err)
		}
		t.Skipf("needs the right to mount a small disk: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	path := filepath.Join(dir, "sluice.db")
	s := openStore(t, path, nil)
	op := ask(t, s, "a")
	was := op.Revision
	mustSay(t, bulky(t.Context(), s, op), fleet.CodeUnavailable, path, dir, "nothing was half done")
	nothingHalfDone(t, s, op, was)
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=16m"))
	must(t, bulky(t.Context(), s, op))
	must(t, s.Close())
	s = openStore(t, path, nil)
	if stored, err := s.Operation(t.Context(), op.ID); err != nil || stored.Revision != was+1 {
		t.Errorf("after reopening: %+v, %v", stored, err)
	}
}

func TestBusyJournalNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s, other := openStore(t, path, nil), openStore(t, path, nil)
	op := ask(t, s, "a")
	tx, err := other.DB().BeginTx(t.Context(), nil)
	must(t, err)
	began := time.Now()
	mustSay(t, s.UpdateOperation(t.Context(), op, nil, nil, nil), fleet.CodeUnavailable, path, "another process")
	if waited := time.Since(began); waited < 4*time.Second {
		t.Errorf("gave up after %s", waited)
	}
	must(t, tx.Rollback())
	must(t, s.UpdateOperation(t.Context(), op, nil, nil, nil))
}

func TestDamagedJournalIsSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s, err := store.Open(t.Context(), store.Options{Path: path, Clock: storetest.NewClock()})
	must(t, err)
	ask(t, s, "a")
	var page int64 // of the table's root, counted from 1
	must(t, s.DB().QueryRowContext(t.Context(), `select rootpage from sqlite_schema where name = 'operations'`).Scan(&page))
	must(t, s.Close())
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	_, err = file.WriteAt([]byte(strings.Repeat("\xff", 4096)), (page-1)*4096)
	must(t, errors.Join(err, file.Close()))
	s = openStore(t, path, nil)
	_, err = s.Operation(t.Context(), "op-a")
	mustSay(t, err, fleet.CodeInvalid, path, "damaged", "backup")
}

func TestCanceledWriteIsCanceledAndNotStored(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "sluice.db"), nil)
	op := ask(t, s, "a")
	was := op.Revision
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	mustSay(t, bulky(ctx, s, op), fleet.CodeCanceled)
	nothingHalfDone(t, s, op, was)
}

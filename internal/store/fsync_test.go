package store_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
	"gitlab.com/sluice-runners/sluice/internal/store/storetest"
)

func commitTo(path, times string) {
	n, err := strconv.Atoi(times)
	if err != nil {
		panic(err)
	}
	s, err := store.Open(context.Background(), store.Options{Path: path, Clock: storetest.NewClock()})
	if err != nil {
		panic(err)
	}
	for range n {
		if _, err := s.NextOrder(context.Background(), fleet.Ref{Fleet: "f", VM: "a"}); err != nil {
			panic(err)
		}
	}
	os.Exit(0) // not closed: the checkpoint at the end would sync, too
}

// A power cut must not forget a deleted VM: each commit is on the disk when
// its call returns. The kernel is asked, not SQLite.
func TestEveryCommitIsSyncedToTheDisk(t *testing.T) {
	straced(t)
	const n = 20
	none, some := syncs(t, 0), syncs(t, n)
	if got := some - none; got < n {
		t.Fatalf("%d commits synced the disk %d times (%d times without a commit)", n, got, none)
	}
	t.Logf("%d commits, %d syncs", n, some-none)
}

// syncs counts the syncs of the journal's write-ahead log by a process that
// commits some times.
func syncs(t *testing.T, times int) int {
	t.Helper()
	dir := t.TempDir()
	journal, trace := filepath.Join(dir, "sluice.db"), filepath.Join(dir, "trace")
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-y", "-e", "trace=fsync,fdatasync", "-o", trace, os.Args[0])
	cmd.Env = append(os.Environ(), writesTo+"="+journal, commits+"="+strconv.Itoa(times))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(trace)
	must(t, err)
	count := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "sync(") && strings.Contains(line, "sluice.db-wal") {
			count++
		}
	}
	return count
}

// BenchmarkCommit prints how long one durable step takes: an operation with a
// fact, compare-and-set, synced.
func BenchmarkCommit(b *testing.B) {
	s := openStore(b, filepath.Join(b.TempDir(), "sluice.db"), nil)
	op := ask(b, s, "a")
	for b.Loop() {
		must(b, s.UpdateOperation(b.Context(), op, []fleet.Fact{{Operation: op.ID, Text: "moved"}}, nil, nil))
	}
}

// BenchmarkAdmit prints how long an admission takes with 2,000 others queued.
func BenchmarkAdmit(b *testing.B) {
	s := openStore(b, filepath.Join(b.TempDir(), "sluice.db"), nil)
	for i := range 2000 {
		ask(b, s, strconv.Itoa(i))
	}
	op := ask(b, s, "last")
	for b.Loop() {
		if ok, why, err := s.Admit(b.Context(), op, fleet.PhasePreflight, fleet.Budget{Room: 1}, op.CreatedAt); ok || err != nil {
			b.Fatal(ok, why, err)
		}
	}
}

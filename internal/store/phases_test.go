package store_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
	"gitlab.com/sluice-runners/sluice/internal/store/storetest"
)

// life is a recreate as the engine commits it: each phase, and within them the
// intents that come before an effect.
var life = []struct {
	name string
	move func(*fleet.Operation)
}{
	{"preflight", to(fleet.PhasePreflight)},
	{"draining", to(fleet.PhaseDraining)},
	{"the order to stop", func(op *fleet.Operation) { op.Order = fleet.Order{Verb: fleet.OrderStop, Number: 1} }},
	{"deleting", to(fleet.PhaseDeleting)},
	{"the intent to delete", func(op *fleet.Operation) { op.Delete.IntentAt = op.CreatedAt }},
	{"creating", to(fleet.PhaseCreating)},
	{"the token of a create", func(op *fleet.Operation) { op.Create.Attempt = 1 }},
	{"verifying", to(fleet.PhaseVerifying)},
	{"succeeded", to(fleet.PhaseSucceeded)},
}

func to(phase fleet.Phase) func(*fleet.Operation) {
	return func(op *fleet.Operation) { op.Phase = phase }
}

// live moves an operation through its life on a journal at path. Before and
// after each commit it looks for a file that is not there, which strace sees.
func live(path, synchronous string) {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Options{Path: path, Clock: storetest.NewClock()})
	check(err)
	if synchronous != "" {
		s.DB().SetMaxOpenConns(1) // the setting is a connection's
		_, err := s.DB().ExecContext(ctx, "PRAGMA synchronous = "+synchronous)
		check(err)
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	mark("before", "queued")
	got, err := s.Insert(ctx, []fleet.Operation{{
		ID: "op-1", Fleet: "f", VM: "a", Kind: fleet.KindRecreate, Phase: fleet.PhaseQueued, CreatedAt: now, UpdatedAt: now,
	}}, control.Key{}, nil)
	check(err)
	mark("after", "queued")
	op := &got[0].Operation
	for _, step := range life {
		step.move(op)
		mark("before", step.name)
		check(s.UpdateOperation(ctx, op, []fleet.Fact{{At: now, Operation: op.ID, Kind: fleet.FactPhase, Text: step.name}}, nil, nil))
		mark("after", step.name)
	}
	os.Exit(0) // not closed: the checkpoint at the end would sync, too
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func mark(when, name string) { _, _ = os.Stat("/mark/" + when + "/" + name) }

// A power cut at any instant forgets no phase, no order and no intent: each is
// on the disk when its commit returns. The kernel is asked, not SQLite. With
// synchronous(OFF) none is: so the test would see it.
func TestNoPhaseIsEnteredBeforeItIsOnTheDisk(t *testing.T) {
	straced(t)
	unsynced := lived(t, "")
	if len(unsynced) > 0 {
		t.Errorf("not on the disk when their commit returned: %s", strings.Join(unsynced, ", "))
	}
	if got, all := lived(t, "OFF"), len(life)+1; len(got) != all {
		t.Errorf("with synchronous(OFF) only %d of %d are found missing (%s): this test sees too little", len(got), all, strings.Join(got, ", "))
	}
}

// straced skips a test where strace is missing; in CI it fails.
func straced(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("strace is missing: .ci/setup installs it")
		}
		t.Skip("needs strace (.ci/setup)")
	}
}

// lived runs a life in a process of its own under strace, and names the commits
// during which the journal's write-ahead log was not synced.
func lived(t *testing.T, synchronous string) (unsynced []string) {
	t.Helper()
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-y", "-e", "trace=fsync,fdatasync,?newfstatat,?stat,?statx", "-o", trace, os.Args[0])
	cmd.Env = append(os.Environ(), livesOn+"="+filepath.Join(dir, "sluice.db"), lifeSync+"="+synchronous)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(trace)
	must(t, err)
	inside, synced, seen := "", false, 0
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.Contains(line, "sync(") && strings.Contains(line, "sluice.db-wal"):
			synced = true
		case strings.Contains(line, "/mark/before/"):
			inside, synced = marked(line), false
		case strings.Contains(line, "/mark/after/"):
			if name := marked(line); name != inside {
				t.Fatalf("%s ended within %s", name, inside)
			}
			if seen++; !synced {
				unsynced = append(unsynced, inside)
			}
		}
	}
	if want := len(life) + 1; seen != want {
		t.Fatalf("%d commits were seen in the trace, want %d", seen, want)
	}
	return unsynced
}

// marked is the name in a line of the trace: …"/mark/before/NAME"….
func marked(line string) string {
	_, rest, _ := strings.Cut(line, "/mark/")
	_, rest, _ = strings.Cut(rest, "/")
	name, _, ok := strings.Cut(rest, `"`)
	if !ok {
		panic(fmt.Sprintf("no name in %q", line))
	}
	return name
}

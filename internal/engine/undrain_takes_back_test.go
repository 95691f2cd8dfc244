package engine_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// undrainInstead lets an undrain take over from an operation, as control stores it
// (internal/control, inherit).
func undrainInstead(t *testing.T, w *enginetest.World, from string) string {
	t.Helper()
	old := w.Op(from)
	id := succeed(t, w, from, fleet.KindUndrain)
	err := change(t, w, id, func(op *fleet.Operation) error {
		op.CutJobs = old.CutJobs
		op.Drain.OrderedAt, op.Drain.InheritedStop = old.Drain.OrderedAt, old.Drain.StoppedAt
		op.Drain.StoppedAt, op.Drain.EndOrderedAt = old.Drain.StoppedAt, old.Drain.EndOrderedAt
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// skippedDelete is a delete of a without a drain; at what the moment is due, an
// undrain takes its place, whose id is in next.
func skippedDelete(t *testing.T, w *enginetest.World, due func(*fleet.Operation) bool) (next *string) {
	t.Helper()
	w.Job("a", 42, 10*time.Minute)
	id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.NoDrain = true })
	next = new(string)
	once(w, "commit:after", func() bool { return due(w.Op(id)) }, func() { *next = undrainInstead(t, w, id) })
	w.Run(time.Minute)
	return next
}

// The job was recorded as cut before anything was done to it, and nothing was: it
// goes on, whether or not the stop that was on its way takes effect. Seed 486997 of
// the worlds.
func TestAnUndrainTakesBackTheJobsThatASkippedDeleteWasToCut(t *testing.T) {
	for name, lost := range map[string]bool{"the stop is lost": true, "the stop takes effect": false} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a")
			if lost {
				w.Refuse["stop"] = []error{fleet.Errorf(fleet.CodeUnavailable, "connection reset")}
			}
			next := skippedDelete(t, w, func(op *fleet.Operation) bool { return len(op.CutJobs) > 0 })
			w.Run(time.Hour)
			ended(t, w, *next, fleet.PhaseSucceeded, "")
			recorded(t, w, *next)
			if n := strings.Count(w.Story(), "was not cut after all"); n != 1 || len(w.Cut) != 0 || !w.VM("a").Serving() || w.Calls["stop"] != 1 {
				t.Errorf("taken back %d times; cut %v\n%s", n, w.Cut, w.Story())
			}
		})
	}
}

// The runner was told to end its jobs, and is about to. Seed 486997 of the worlds.
func TestAnUndrainDoesNotTakeBackAJobWhoseRunnerWasJustToldToEndIt(t *testing.T) {
	w := enginetest.New("a")
	w.With = func(f *engine.Fleet) { f.Hosts = endsSlowly{f.Hosts, w, func() bool { return true }} }
	next := skippedDelete(t, w, func(op *fleet.Operation) bool { return !op.Drain.EndedAt.IsZero() })
	w.Run(time.Hour)
	ended(t, w, *next, fleet.PhaseSucceeded, "")
	recorded(t, w, *next, 42)
	if strings.Contains(w.Story(), "after all") || !w.VM("a").Serving() {
		t.Errorf("taken back\n%s", w.Story())
	}
}

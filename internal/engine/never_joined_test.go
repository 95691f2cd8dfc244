package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// seenAndStopped asks for a recreate of a whose preflight sees the runner's
// process, cannot ask GitLab, and has to look again: then after has happened,
// somebody has stopped the runner, and GitLab does not list its manager.
func seenAndStopped(w *enginetest.World, after func()) (id string) {
	w.Refuse["managers"] = []error{fleet.Errorf(fleet.CodeUnavailable, "502 Bad Gateway")}
	w.Fences["managers"] = func() {
		after()
		vm := w.VM("a")
		vm.Unit = fleet.UnitState{ActiveState: "inactive", SubState: "dead", Result: "success"}
		w.Removed = []string{vm.SystemID}
	}
	id = w.Ask(fleet.KindRecreate, "a")
	for w.Op(id).Phase == fleet.PhaseQueued || w.Op(id).Phase == fleet.PhasePreflight {
		w.Run(100 * time.Millisecond)
	}
	w.Removed = nil
	return id
}

// A manager may be missing from a stale answer: what a look of the same preflight
// has seen to run has joined. Seed 28556 of the worlds.
func TestARunnerThatPreflightHasSeenIsNotCalledNeverJoined(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a").ID
	id := seenAndStopped(w, func() {})
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
	if op := w.Op(id); op.Drain.Verdict != fleet.VerdictDrained || w.Calls["stop"] != 1 {
		t.Errorf("%s after %d stops\n%s", op.Drain.Verdict, w.Calls["stop"], w.Story())
	}
}

// What was seen on one instance says nothing about the next of its name.
func TestARunnerThatRanOnAnotherInstanceDoesNotMakeThisOneJoined(t *testing.T) {
	w := enginetest.New("a")
	id := seenAndStopped(w, func() {
		w.Replace("a")
		w.VM("a").Never = true
	})
	w.Run(time.Hour)
	if op := w.Op(id); op.Phase != fleet.PhaseSucceeded || op.Drain.Verdict != fleet.VerdictNever || w.Calls["stop"] != 0 {
		t.Errorf("%s, %s after %d stops\n%s", op.Phase, op.Drain.Verdict, w.Calls["stop"], w.Story())
	}
}

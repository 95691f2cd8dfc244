package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// neverEnding is a world whose host lets intake be stopped, and refuses to end
// the job that runs for half an hour (sudo).
func neverEnding(kind fleet.Kind) (w *enginetest.World, id string) {
	w = enginetest.New("a")
	w.Job("a", 42, 30*time.Minute)
	refuse(w, "end", fleet.CodeForbidden)
	return w, w.Ask(kind, "a")
}

// A drain is done when the runner has ended, and says what it waits for until
// then. Seed 414265 of the worlds.
func TestADrainWhoseHostRefusesToEndItsJobsWaitsForThem(t *testing.T) {
	w, id := neverEnding(fleet.KindDrain)
	w.Run(20 * time.Minute)
	op := w.Op(id)
	if op.Phase != fleet.PhaseDraining || op.Drain.Verdict != fleet.VerdictOverrun {
		t.Fatalf("%s (%s)\n%s", op.Phase, op.Drain.Verdict, w.Story())
	}
	if !strings.Contains(op.Waiting, "the runner could not be told to end its jobs") || !strings.HasPrefix(op.Then, "it is told again") {
		t.Errorf("it waits for %q, then %q", op.Waiting, op.Then)
	}
	if w.Calls["end"] < 30 {
		t.Errorf("told %d times in ten minutes", w.Calls["end"])
	}
	w.Run(time.Hour)
	if ended(t, w, id, fleet.PhaseSucceeded, ""); w.VM("a").Unit.MainPID != 0 || len(w.Cut) != 0 {
		t.Errorf("cut %v\n%s", w.Cut, w.Story())
	}
	recorded(t, w, id)
	says(t, w, "[cut] job 42", "[note] job 42 (https://gitlab.example/acme/app/-/jobs/42) on f/a was not cut after all")
}

// A drain that was heard at last has cut the job. Seed 414265 of the worlds.
func TestADrainThatIsHeardAtLastHasCutTheJob(t *testing.T) {
	w, id := neverEnding(fleet.KindDrain)
	w.Run(20 * time.Minute)
	w.Refuse["end"] = nil
	w.Run(time.Minute)
	ended(t, w, id, fleet.PhaseSucceeded, "")
	if !slices.Equal(w.Cut, []int64{42}) || strings.Contains(w.Story(), "after all") {
		t.Errorf("cut %v\n%s", w.Cut, w.Story())
	}
	recorded(t, w, id, 42)
}

// A delete ends the jobs in any case.
func TestADeleteWhoseHostRefusesToEndItsJobsGoesOn(t *testing.T) {
	w, id := neverEnding(fleet.KindDelete)
	w.Run(11 * time.Minute)
	ended(t, w, id, fleet.PhaseSucceeded, "")
	if !slices.Equal(w.Cut, []int64{42}) || w.Calls["end"] != 1 {
		t.Errorf("cut %v, told %d times\n%s", w.Cut, w.Calls["end"], w.Story())
	}
	recorded(t, w, id, 42)
	says(t, w, "[warning] the runner could not be told to end its jobs: refused")
}

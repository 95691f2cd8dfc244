package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// unlisted is a recreate of a, whose runner somebody has unregistered and stopped
// that long ago.
func unlisted(ago time.Duration) (w *enginetest.World, id string) {
	w = enginetest.New("a")
	w.With = func(f *engine.Fleet) { f.Hosts = endedAgo{f.Hosts, ago} }
	vm := w.VM("a")
	vm.Unit = fleet.UnitState{ActiveState: "inactive", SubState: "dead", Result: "success"}
	w.Removed = []string{vm.SystemID}
	return w, w.Ask(fleet.KindRecreate, "a")
}

// So long after the runner's end, a GitLab that does not list it is no stale
// answer: there is nothing to wait for.
func TestAVMWhoseRunnerWasUnregisteredLongAgoIsRecreatedAtOnce(t *testing.T) {
	w, id := unlisted(16 * time.Minute)
	w.Run(2 * time.Minute)
	if op := ended(t, w, id, fleet.PhaseSucceeded, ""); op.Drain.Verdict != fleet.VerdictNever {
		t.Errorf("%s\n%s", op.Drain.Verdict, w.Story())
	}
}

// Before that it may be one. Whoever knows better is told how to go on.
func TestAVMWhoseRunnerWasUnregisteredJustNowWaitsAndSaysHowToGoOn(t *testing.T) {
	w, id := unlisted(14 * time.Minute)
	w.Run(2 * time.Minute)
	if op := w.Op(id); op.Phase != fleet.PhaseDraining || op.Waiting == "" {
		t.Fatalf("%s, waits for %q\n%s", op.Phase, op.Waiting, w.Story())
	}
	says(t, w, "[note] GitLab does not list the manager of a runner that has run on f/a just now",
		"until GitLab agrees or the cap passes; `sluice op skip-drain` goes on at once")
	if err := skipDrain(t, w, id); err != nil {
		t.Fatal(err)
	}
	w.Run(2 * time.Minute)
	ended(t, w, id, fleet.PhaseSucceeded, "")
}

package engine_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// bootingTwin is a world in which a second VM has come late that boots for a
// while yet; an unreachable VM is given up after a minute there.
func bootingTwin(boot time.Duration) (w *enginetest.World, twin *enginetest.VM) {
	w = enginetest.New("a")
	w.Spec.Drain.ReachDeadline, w.Spec.Drain.Unreachable = time.Minute, fleet.UnreachableProceed
	id := w.Ask(fleet.KindRecreate, "a")
	for w.Op(id).Phase != fleet.PhaseVerifying {
		w.Run(time.Second)
	}
	w.Twin("a", id)
	twin = w.VMs[len(w.VMs)-1]
	twin.Pids, twin.Unit = 0, fleet.UnitState{ActiveState: "inactive", Result: "success"}
	twin.Ready = w.Now().Add(boot)
	return w, twin
}

// A second VM may be booting when it is found, and take a job as soon as it has:
// it has as long as any new VM to become reachable. Seed 68832 of the worlds.
func TestASecondVMHasTheTimeToBoot(t *testing.T) {
	w, twin := bootingTwin(5 * time.Minute)
	w.Run(5 * time.Minute)
	w.JobOn(twin.ID, 7, time.Minute)
	w.Run(time.Hour)
	if len(w.Cut) != 0 || twin.Gone.IsZero() || len(w.Living("a")) != 1 {
		t.Errorf("cut %v, the second VM is gone: %t\n%s", w.Cut, !twin.Gone.IsZero(), w.Story())
	}
	if strings.Contains(w.Story(), "without a proof") {
		t.Errorf("it was given up\n%s", w.Story())
	}
}

// Nor has it longer than that, where the policy gives up what cannot be reached.
func TestASecondVMThatNeverBootsIsGivenUpAfterTheTimeOfANewOne(t *testing.T) {
	w, twin := bootingTwin(24 * time.Hour)
	w.Run(9 * time.Minute)
	if !twin.Gone.IsZero() {
		t.Errorf("deleted after %s\n%s", twin.Gone.Sub(twin.Born), w.Story())
	}
	w.Run(2 * time.Minute)
	if twin.Gone.IsZero() {
		t.Errorf("it is there still\n%s", w.Story())
	}
}

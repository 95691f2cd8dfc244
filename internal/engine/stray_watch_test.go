package engine_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// twinned is a world in which the recreate id of a is about to succeed, and a
// second VM has come late.
func twinned(w *enginetest.World) (id string, twin *enginetest.VM) {
	id = w.Ask(fleet.KindRecreate, "a")
	for w.Op(id).Phase != fleet.PhaseVerifying {
		w.Run(time.Second)
	}
	w.Twin("a", id)
	return id, w.VMs[len(w.VMs)-1]
}

// A second VM's runner is judged by what becomes of that VM, not of the one that
// was kept. Seed 23186 of the worlds.
func TestAJobThatGoesOnOnASecondVMIsNotCalledCut(t *testing.T) {
	w := enginetest.New("a")
	w.With = func(f *engine.Fleet) { f.GitLab = traced{f.GitLab} }
	old := w.VM("a").ID
	id, twin := twinned(w)
	w.JobOn(twin.ID, 77, 3*time.Minute)
	w.Refuse["stop"] = []error{fleet.Errorf(fleet.CodeForbidden, "sudo: a password is required")}
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
	if !strings.Contains(w.Story(), "the second instance "+twin.ID+" of f/a is still there: sudo") {
		t.Errorf("its first drain did not fail\n%s", w.Story())
	}
	if strings.Contains(w.Story(), "it was cut") || w.Meter.CutJobs != 0 {
		t.Errorf("a job that ended well is told as cut\n%s", w.Story())
	}
}

// Seed 23186 of the worlds: what may have reached a second VM that is still
// there is neither canceled nor run again before that is gone.
func TestARecoveryFromASecondVMWaitsUntilThatIsGone(t *testing.T) {
	w := enginetest.New("a")
	w.Spec.HasWriteToken, w.Spec.Recovery = true, fleet.RecoveryPolicy{Orphans: true}
	w.BootDelay = 5 * time.Second // the one that is kept serves before the watch looks
	_, twin := twinned(w)
	w.DeleteDelay = 3 * time.Minute
	w.Fences["delete"] = func() { // GitLab assigned it just after the stop was answered
		w.OrphanOn(twin, fleet.Job{ID: lostJob, URL: w.JobURL(lostJob), StartedAt: w.Now()})
	}
	var gone bool
	w.Fences["cancel"] = func() { gone = len(w.Living("a")) == 1 }
	w.Run(3 * time.Hour)
	if l := w.Lost[lostJob]; l == nil || l.Retries != 1 || !gone {
		t.Errorf("the second VM was gone: %t; %+v\n%s", gone, l, w.Story())
	}
	closed(t, w)
}

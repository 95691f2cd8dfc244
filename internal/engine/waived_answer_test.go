package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// F1: under unreachable=proceed lookAtOld does not look at the host: refuseUnseen is never reached.
func TestFindingUnreachableProceedRefusesAHostThatAnswersAgain(t *testing.T) {
	w := enginetest.New("a")
	vm := w.VM("a")
	vm.Unregisters, vm.Cutoff = true, true
	id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.Policy.Unreachable = fleet.UnreachableProceed })
	once(w, "commit:after", func() bool { return w.Op(id).Phase == fleet.PhaseDeleting }, func() { vm.Cutoff = false })
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "unregister")
	untouched(t, w, vm, 0)
}

// F2: recordDoomed comes before refuseUnseen: a VM that is left alone has a job "cut".
func TestFindingARefusedDeleteRecordsNoJobAsCut(t *testing.T) {
	w := enginetest.New("a")
	id, vm := bootsAt(w, unseen()["before the delete's intent is stored"])
	vm.Unregisters = true
	w.Run(time.Hour)
	if op := ended(t, w, id, fleet.PhaseFailed, "unregister"); len(op.CutJobs) != 0 || w.Meter.CutJobs != 0 {
		t.Errorf("recorded as cut %v\n%s", op.CutJobs, w.Story())
	}
}

// F3 (promise 9): an inspection that hangs uses up the step of 16 s (inspectLimit is 20 s), each time.
func TestFindingASkippedDrainGoesOnWhileTheInspectionHangs(t *testing.T) {
	moments := unseen()
	moments["from the start"] = nil
	for name, moment := range moments {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := enginetest.New("a")
				w.Bubble, w.Hang = time.Now, map[string]bool{"inspect": true}
				id := ""
				if moment == nil {
					id = w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.NoDrain = true })
				} else {
					id, _ = bootsAt(w, moment)
				}
				lookWhile(t, w, id, fleet.PhaseQueued, 100)
				lookWhile(t, w, id, fleet.PhasePreflight, 100)
				for range 2 {
					lookWhile(t, w, id, fleet.PhaseDraining, 100)
					lookWhile(t, w, id, fleet.PhaseDeleting, 100)
				}
				if op := w.Op(id); op.Delete.CalledAt.IsZero() {
					t.Errorf("at %s it is %s and waits for %q\n%s", w.Now(), op.Phase, op.Waiting, w.Story())
				}
			})
		})
	}
}

// F4 (older than 61460ce): the watch is made at the end of the drain, recordDoomed records in the delete.
func TestFindingAJobIsToldAsCutOnce(t *testing.T) {
	w := enginetest.New("a")
	w.With = func(f *engine.Fleet) { f.GitLab = traced{f.GitLab} }
	w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) {
		r.Policy.Cap, r.Policy.HardCap, r.Policy.Unreachable = 2*time.Hour, 2*time.Hour, fleet.UnreachableProceed
	})
	w.Job("a", 42, 3*time.Hour)
	w.Run(time.Minute)
	w.Orphan("a", fleet.Job{ID: lostJob, URL: w.JobURL(lostJob), StartedAt: w.Now().Add(-time.Minute)})
	w.VM("a").Cutoff = true
	w.Run(3 * time.Hour)
	if told(w, fleet.FactCut) != 1 || w.Meter.CutJobs != 2 {
		t.Errorf("told %d times, counted %d\n%s", told(w, fleet.FactCut), w.Meter.CutJobs, w.Story())
	}
}

package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Promise 2: out of reach, the host could not be asked, and the policy lets the
// delete go on. It answers again just before that, and would end the whole fleet's
// token.
func TestAHostThatAnswersAgainBeforeItsWaivedDeleteIsRefusedIfItUnregisters(t *testing.T) {
	w := enginetest.New("a")
	vm := w.VM("a")
	vm.Unregisters, vm.Cutoff = true, true
	id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.Policy.Unreachable = fleet.UnreachableProceed })
	once(w, "commit:after", func() bool { return w.Op(id).Phase == fleet.PhaseDeleting }, func() { vm.Cutoff = false })
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "unregister")
	untouched(t, w, vm, 0)
}

// A VM that is left alone keeps its job: that is not recorded before the host has
// been looked at.
func TestAWaivedDeleteThatIsRefusedRecordsNoJobAsCut(t *testing.T) {
	w := enginetest.New("a")
	id, vm := bootsAt(w, unseen()["before the delete's intent is stored"])
	vm.Unregisters = true
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "unregister")
	recorded(t, w, id)
	if w.Meter.CutJobs != 0 || vm.Busy != 42 {
		t.Errorf("counted %d as cut, runs job %d\n%s", w.Meter.CutJobs, vm.Busy, w.Story())
	}
}

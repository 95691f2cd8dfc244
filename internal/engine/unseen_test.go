package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// unseen are the moments past preflight at which a host may answer for the first
// time, where its drain is skipped.
func unseen() map[string]func(op *fleet.Operation) bool {
	return map[string]func(*fleet.Operation) bool{
		"before the runner is told to end":     func(op *fleet.Operation) bool { return op.Phase == fleet.PhaseDraining },
		"before the delete's intent is stored": func(op *fleet.Operation) bool { return op.Phase == fleet.PhaseDeleting },
	}
}

// bootsAt is a delete without a drain of a, which is off in preflight and boots
// at the moment.
func bootsAt(w *enginetest.World, moment func(*fleet.Operation) bool) (id string, vm *enginetest.VM) {
	vm = w.VM("a")
	vm.Off = true
	id = w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.NoDrain = true })
	once(w, "commit:after", func() bool { return moment(w.Op(id)) }, func() {
		vm.Off = false
		w.Reboot("a")
		w.Job("a", 42, 3*time.Hour)
	})
	return id, vm
}

// Promise 2: whoever skips the drain, a host that would end the whole fleet's
// token at its shutdown is not deleted, also where it answers only after preflight.
func TestASkippedDrainRefusesAHostThatUnregistersAsSoonAsItAnswers(t *testing.T) {
	for name, moment := range unseen() {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a")
			id, vm := bootsAt(w, moment)
			vm.Unregisters = true
			w.Run(time.Hour)
			ended(t, w, id, fleet.PhaseFailed, "unregister")
			untouched(t, w, vm, 0)
			if len(w.Cut) != 0 {
				t.Errorf("cut %v\n%s", w.Cut, w.Story())
			}
		})
	}
}

// The waiver is for a host that cannot be asked; one that is asked and does no
// harm goes the same way.
func TestASkippedDrainGoesOnWhereNothingIsSeenToUnregister(t *testing.T) {
	for name, moment := range unseen() {
		for why, spoil := range map[string]func(*enginetest.World, *enginetest.VM){
			"it does not unregister": func(*enginetest.World, *enginetest.VM) {},
			"it cannot be inspected": func(w *enginetest.World, vm *enginetest.VM) {
				vm.Unregisters = true
				refuse(w, "inspect", fleet.CodeUnavailable)
			},
		} {
			t.Run(name+", "+why, func(t *testing.T) {
				w := enginetest.New("a")
				id, vm := bootsAt(w, moment)
				spoil(w, vm)
				w.Run(time.Hour)
				op := w.Op(id)
				if op.Phase != fleet.PhaseSucceeded || vm.Gone.IsZero() || len(op.CutJobs) != 1 {
					t.Errorf("%s: %s, recorded as cut %v\n%s", op.Phase, op.ErrMessage, op.CutJobs, w.Story())
				}
			})
		}
	}
}

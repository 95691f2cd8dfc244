package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// cases.md T9, T14, T98: a cloud or a person takes the guest away under a job.
// The job is not ours to save any more; it is told of, and not called drained.
func TestAJobWhoseVMWasSwitchedOffInMidDrainIsCutByOthers(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a")
	w.Job("a", 42, time.Hour)
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Minute)
	old.Off, old.Unit.MainPID, old.Unit.ActiveState, old.Quit = true, 0, "inactive", false
	w.Run(30 * time.Minute)
	op, live := w.Op(id), w.Living("a")
	if op.Phase != fleet.PhaseSucceeded || len(live) != 1 || live[0].ID == old.ID {
		t.Fatalf("%s, %d of the name\n%s", op.Phase, len(live), w.Story())
	}
	if len(op.CutJobs) != 1 || op.CutJobs[0].ID != 42 || !strings.Contains(w.Story(), "was cut: cut by others") {
		t.Errorf("recorded %v\n%s", op.CutJobs, w.Story())
	}
}

// cases.md T57: somebody deleted the VM, and `create` makes it anew. Nothing was
// drained or deleted by us, but its manager must not stay for ever.
func TestTheManagerOfAVMThatVanishedGoesWhenItIsCreatedAnew(t *testing.T) {
	w := enginetest.New("a")
	w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	vanished := w.VM("a")
	vanished.Gone = w.Now()
	id := w.Ask(fleet.KindCreate, "a")
	w.Run(time.Hour)
	replaced(t, w, id, "a", vanished.ID)
	if !slices.Contains(w.Removed, vanished.SystemID) {
		t.Errorf("removed managers: %v, want %s among them\n%s", w.Removed, vanished.SystemID, w.Story())
	}
}

// The same, where the cloud gives the new VM the old one's system_id.
func TestTheManagerOfAVMThatVanishedStaysIfTheNewOneHasIt(t *testing.T) {
	w := enginetest.New("a")
	w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	w.SameSystemID = true
	vanished := w.VM("a")
	vanished.Gone = w.Now()
	id := w.Ask(fleet.KindCreate, "a")
	w.Run(time.Hour)
	replaced(t, w, id, "a", vanished.ID)
	if slices.Contains(w.Removed, w.VM("a").SystemID) {
		t.Errorf("removed %v, which the new VM has\n%s", w.Removed, w.Story())
	}
}

// The same, where the provider had only overlooked the VM: its runner may work.
func TestTheManagerOfAVMThatCameBackIsNotRemoved(t *testing.T) {
	w := enginetest.New("a")
	w.Ask(fleet.KindDrain, "a")
	w.Run(time.Minute)
	w.Ask(fleet.KindUndrain, "a")
	w.Run(time.Hour)
	vanished := w.VM("a")
	vanished.Gone = w.Now()
	id := w.Ask(fleet.KindCreate, "a")
	for w.Op(id).Phase != fleet.PhaseVerifying {
		w.Run(time.Second)
	}
	vanished.Gone = time.Time{}
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseSucceeded, "")
	if len(w.Removed) > 0 || !strings.Contains(w.Story(), "skipped: instance "+vanished.ID+" is listed again") {
		t.Errorf("removed %v\n%s", w.Removed, w.Story())
	}
}

// cases.md T50: the cap runs from the stop that the host has answered, not from
// the first that was sent.
func TestTheCapBeginsWhenTheStopHasTakenEffect(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a").ID
	w.Job("a", 42, 12*time.Minute)
	for range 280 {
		w.Refuse["stop"] = append(w.Refuse["stop"], fleet.Errorf(fleet.CodeUnavailable, "the connection was cut"))
	}
	began := w.Now()
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
	if d := w.Op(id).Drain; d.Overran || d.StoppedAt.Sub(began) < 4*time.Minute {
		t.Errorf("overran %t, stopped after %s: the job ended within ten minutes of the stop", d.Overran, d.StoppedAt.Sub(began))
	}
}

// cases.md T36: one long drain holds up no other VM that the budget has room for.
func TestALongDrainHoldsUpNoOtherVM(t *testing.T) {
	w := enginetest.New("a", "b", "c")
	w.Spec.MaxUnavailable = 2
	w.Job("a", 42, 45*time.Minute)
	slow := w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy.OnOverrun = fleet.OverrunWait })
	others := []string{w.Ask(fleet.KindRecreate, "b"), w.Ask(fleet.KindRecreate, "c")}
	w.Run(10 * time.Minute)
	if op := w.Op(slow); op.Phase != fleet.PhaseDraining {
		t.Fatalf("the long one is %s\n%s", op.Phase, w.Story())
	}
	for _, id := range others {
		if op := w.Op(id); op.Phase != fleet.PhaseSucceeded {
			t.Errorf("%s is %s and waits for %q", op.Ref(), op.Phase, op.Waiting)
		}
	}
}

// cases.md T64: what does not have our label is not ours, whatever its name.
func TestAVMThatSomebodyMadeUnderTheNameIsNotAdopted(t *testing.T) {
	w := enginetest.New("a")
	old, foreign := w.VM("a").ID, ""
	w.Fences["create"] = func() { foreign = w.Twin("a", "") }
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(30 * time.Minute)
	op, vm := w.Op(id), w.VM("a")
	if op.Phase != fleet.PhaseCreating || vm == nil || vm.ID != foreign || vm.DropIn.Present || !strings.Contains(op.ErrMessage+op.Waiting, foreign) {
		t.Fatalf("%s, waiting for %q %q\n%s", op.Phase, op.Waiting, op.ErrMessage, w.Story())
	}
	vm.Gone = w.Now() // the one whose it is takes it away
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
	if w.VM("a").ID == foreign {
		t.Error("it was adopted")
	}
}

// cases.md T60: a deregistration is the controller's, and tried until it is done.
func TestADeregistrationThatFailsForAWhileIsTriedAgain(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a")
	for range 20 {
		w.Refuse["deregister"] = append(w.Refuse["deregister"], fleet.Errorf(fleet.CodeUnavailable, "502 Bad Gateway"))
	}
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(3 * time.Hour)
	replaced(t, w, id, "a", old.ID)
	if len(w.Removed) != 1 || w.Removed[0] != old.SystemID || !strings.Contains(w.Story(), "the fleet's token lives") {
		t.Errorf("removed %v\n%s", w.Removed, w.Story())
	}
}

package engine_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// GitLab's clock at the create may be unknown for a moment: a VM that came
// well must not fail at the gate for it.
func TestACreateBesideAShortOutageOfGitLabPassesTheGate(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a").ID
	w.Ask(fleet.KindDelete, "a")
	w.Run(time.Hour)
	w.Refuse["managers"] = []error{fleet.Errorf(fleet.CodeUnavailable, "502 Bad Gateway")}
	id := w.Ask(fleet.KindCreate, "a")
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
}

// design.md section 6: a deregistration is skipped where the new incarnation
// has the system_id, and it is not known before the new one was verified.
// cases.md T51.
func TestTheManagerOfAVMThatIsMadeAnewMeanwhileIsNotRemoved(t *testing.T) {
	w := enginetest.New("a")
	w.SameSystemID = true
	w.BootDelay = 5 * time.Minute
	old := w.VM("a").ID
	w.Ask(fleet.KindDelete, "a")
	w.Run(20 * time.Second)
	id := w.Ask(fleet.KindCreate, "a")
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
	if len(w.Removed) > 0 {
		t.Errorf("removed %v, which the new VM has\n%s", w.Removed, w.Story())
	}
}

// cases.md T43, T45: a late twin is never given up, however long it cannot be
// drained.
func TestASecondMachineOutOfReachIsRemovedOnceItCanBe(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a").ID
	id := w.Ask(fleet.KindRecreate, "a")
	for w.Op(id).Phase != fleet.PhaseVerifying {
		w.Run(time.Second)
	}
	twin := w.Twin("a", id)
	for _, vm := range w.VMs {
		vm.Cutoff = vm.ID == twin
	}
	w.Run(time.Hour)
	for _, vm := range w.VMs {
		vm.Cutoff = false
	}
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
}

// The stop may have taken effect long before its answer came through.
func TestAnOrphanOfAStopWhoseAnswersWereLostIsFound(t *testing.T) {
	w := enginetest.New("a")
	w.Lose["stop"] = 300
	w.Orphan("a", fleet.Job{ID: 99, StartedAt: w.Now()})
	w.Ask(fleet.KindDrain, "a")
	w.Run(10 * time.Minute)
	w.ClearOrphans("a")
	w.Run(2 * time.Hour)
	if w.Meter.Orphaned != 1 {
		t.Errorf("%d orphans counted\n%s", w.Meter.Orphaned, w.Story())
	}
}

// A trace that nobody may read is no reason to watch for ever and say nothing.
func TestAnOrphanWhoseTraceCannotBeReadIsReportedAllTheSame(t *testing.T) {
	w := enginetest.New("a")
	for range 100000 {
		w.Refuse["trace"] = append(w.Refuse["trace"], fleet.Errorf(fleet.CodeForbidden, "403 Forbidden"))
	}
	w.Orphan("a", fleet.Job{ID: 99, URL: "https://gitlab.example/-/jobs/99", StartedAt: w.Now()})
	w.Ask(fleet.KindDrain, "a")
	w.Run(2 * time.Hour)
	if strings.Count(w.Story(), "https://gitlab.example/-/jobs/99) is still shown running") != 1 {
		t.Errorf("the job is not reported\n%s", w.Story())
	}
	if open, _ := w.Store.UnfinishedChores(t.Context()); len(open) > 0 {
		t.Errorf("the watch never ends: %s", open[0].State)
	}
}

// A VM that was down before us may be started by a person while we restore.
func TestAPersonsStartEndsTheRestoreOfAVMThatWasDown(t *testing.T) {
	w := enginetest.New("a")
	vm := w.VM("a")
	vm.Unit.MainPID, vm.Unit.ActiveState = 0, "inactive"
	w.Refuse["check"] = []error{fleet.Errorf(fleet.CodeImageMissing, "image x was deleted").WithHint("build it")}
	w.Fences["release"] = func() { vm.StartQueued = true; w.Advance(0) }
	w.Refuse["release"] = []error{fleet.Errorf(fleet.CodeUnavailable, "the connection was cut")}
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "image x was deleted")
	if !vm.Serving() {
		t.Errorf("the drop-in is still there\n%s", w.Story())
	}
}

// "No runner has joined" is true of a moment: it is not kept over a pause.
func TestARunnerThatJoinsDuringPreflightIsDrained(t *testing.T) {
	w := enginetest.New("a", "b")
	vm := w.VM("a")
	vm.Unit.MainPID, vm.Unit.ActiveState, vm.Never = 0, "inactive", true
	w.Refuse["list"] = []error{fleet.Errorf(fleet.CodeUnavailable, "503 for now")}
	w.Fences["list"] = func() { vm.Never, vm.StartQueued = false, true }
	id := w.Ask(fleet.KindDrain, "a")
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseSucceeded, "")
	if vm.Unit.MainPID != 0 {
		t.Errorf("said to be drained, and takes jobs\n%s", w.Story())
	}
}

// cases.md T55: a deregistration that GitLab refuses is told of, and ends.
func TestARefusedDeregistrationEndsAndSaysSo(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a").ID
	for range 10000 {
		w.Refuse["deregister"] = append(w.Refuse["deregister"], fleet.Errorf(fleet.CodeForbidden, "403 Forbidden"))
	}
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(3 * time.Hour)
	replaced(t, w, id, "a", old)
	if open, _ := w.Store.UnfinishedChores(t.Context()); len(open) > 0 || !strings.Contains(w.Story(), "[warning] the manager of s_"+old) {
		t.Errorf("%d chores are open\n%s", len(open), w.Story())
	}
}

// What is learnt about a peer must not undo what was decided about it meanwhile.
func TestALookAtAPeerKeepsWhatWasDecidedAboutItMeanwhile(t *testing.T) {
	w := enginetest.New("a", "b")
	armed := false
	w.Points.At = func(name string) {
		switch {
		case name == "glance:before" && w.Calls["stop"] == 0:
			armed = true
		case name == "commit:before" && armed:
			armed, w.Points.At = false, nil
			drained := fleet.VM{Ref: fleet.Ref{Fleet: enginetest.Fleet, VM: "b"}, Intake: fleet.IntakeDrained}
			if err := w.Store.SaveVM(t.Context(), &drained); err != nil {
				t.Error(err)
			}
		}
	}
	w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Minute)
	vm, err := w.Store.VM(t.Context(), fleet.Ref{Fleet: enginetest.Fleet, VM: "b"})
	if err != nil || vm.Intake != fleet.IntakeDrained || vm.SystemID == "" {
		t.Errorf("%+v, %v", vm, err)
	}
}

// cases.md T57: the manager of a VM that was deleted without a drain goes, too.
func TestADeleteWithoutADrainLeavesNoGhostManager(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a")
	w.Job("a", 8, time.Hour)
	w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.NoDrain = true })
	w.Run(3 * time.Hour)
	if len(w.Living("a")) != 0 || len(w.Removed) != 1 || w.Removed[0] != old.SystemID {
		t.Errorf("removed managers: %v\n%s", w.Removed, w.Story())
	}
}

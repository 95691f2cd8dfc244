package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// What changes between the proof and the delete.

// once runs act at the first point of a name at which it is due.
func once(w *enginetest.World, point string, due func() bool, act func()) {
	done := false
	w.Points.At = func(name string) {
		if !done && name == point && due() {
			done = true
			act()
		}
	}
}

// Promise 3, cases.md T7: another has the name by the time of the delete, which
// goes to an instance id.
func TestWhatHasTheNameAtTheTimeOfTheDeleteIsLeftAlone(t *testing.T) {
	w := enginetest.New("a")
	id, other := w.Ask(fleet.KindRecreate, "a"), ""
	once(w, "read:before", func() bool { return w.VM("a").Unit.MainPID == 0 }, func() {
		w.Replace("a")
		other = w.VM("a").ID
	})
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "replaced behind our back")
	if vm := w.VM("a"); other == "" || vm == nil || vm.ID != other || !vm.Serving() {
		t.Errorf("the other instance %q was touched\n%s", other, w.Story())
	}
}

// Promise 1: the call begins within five seconds of the proof, or it is proven
// again. Here the commit of the intent takes longer, and the host boots in it.
func TestACommitThatTakesLongIsFollowedByANewProof(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a").ID
	id := w.Ask(fleet.KindRecreate, "a")
	once(w, "commit:after", func() bool { return !w.Op(id).Delete.IntentAt.IsZero() }, func() {
		w.Advance(20 * time.Second)
		w.Reboot("a")
		w.Job("a", 43, time.Minute)
	})
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
	if !strings.Contains(w.Story(), "the delete did not happen") {
		t.Errorf("the proof was not lost\n%s", w.Story())
	}
}

// A VM that no runner has joined from is proven by its boot: in the next one a
// runner may start at any moment.
func TestAVMThatNeverJoinedIsLookedAtAnewAfterAReboot(t *testing.T) {
	w := enginetest.New("a")
	vm := w.VM("a")
	vm.Never, vm.SystemID = true, ""
	vm.Unit = fleet.UnitState{ActiveState: "inactive", SubState: "dead", Result: "success"}
	id := w.Ask(fleet.KindRecreate, "a")
	once(w, "check:before", func() bool { return w.Op(id).Phase == fleet.PhaseDeleting }, func() { vm.Boot = "another" })
	w.Run(time.Hour)
	if op := w.Op(id); op.Phase != fleet.PhaseSucceeded || !strings.Contains(w.Story(), "the delete did not happen: the host was rebooted") {
		t.Errorf("%s\n%s", op.Phase, w.Story())
	}
}

// Promise 5: while the host answers, a provider that does not list the VM closes
// no way back.
func TestAVMThatTheProviderOverlooksIsNotTakenForDeleted(t *testing.T) {
	w := enginetest.New("a")
	id := w.Ask(fleet.KindRecreate, "a")
	once(w, "commit:after", func() bool { return w.Op(id).Phase == fleet.PhaseDeleting }, func() { w.Overlook(w.Calls["describe"]+1, 1000) })
	w.Run(10 * time.Minute)
	if op := w.Op(id); op.Phase != fleet.PhaseDeleting || !op.Delete.IntentAt.IsZero() || !strings.Contains(op.Waiting, "its host answers") {
		t.Fatalf("%s, waits for %q, %+v\n%s", op.Phase, op.Waiting, op.Delete, w.Story())
	}
	cancel(t, w, id)
	w.Blind = nil
	w.Run(10 * time.Minute)
	if ended(t, w, id, fleet.PhaseCanceled, ""); !w.VM("a").Serving() {
		t.Errorf("the VM does not serve\n%s", w.Story())
	}
}

// Section 6: GitLab links jobs to the manager; without it the watch is blind.
func TestTheManagerIsRemovedOnlyAfterTheOrphanWatch(t *testing.T) {
	w := enginetest.New("a")
	id, early := w.Ask(fleet.KindRecreate, "a"), 0
	w.Points.At = func(name string) {
		if name != "deregister:before" {
			return
		}
		open, err := w.Store.UnfinishedChores(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range open {
			if c.Operation == id && c.Kind == fleet.ChoreOrphanWatch {
				early++
			}
		}
	}
	w.Run(time.Hour)
	if w.Calls["deregister"] == 0 || early > 0 {
		t.Errorf("%d removals, %d of them before the watch had ended\n%s", w.Calls["deregister"], early, w.Story())
	}
}

// Promise 6: GitLab shows a manager online for two hours after its last contact.
// Where the new VM has the old one's system_id, only a new contact counts.
func TestAManagerThatHasNotContactedGitLabSinceTheDeleteIsNotTheNewVMs(t *testing.T) {
	w := enginetest.New("a")
	w.SameSystemID = true
	id, long := w.Ask(fleet.KindRecreate, "a"), w.Now()
	w.Points.At = func(name string) {
		if vms := w.VMs; name == "managers:before" && len(vms) > 1 {
			vms[1].Born, vms[1].Contact = long, long // it runs, and reaches no GitLab
		}
	}
	w.Run(2 * time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "has not contacted GitLab since")
}

// Promise 3: the delete goes to the instance that was proven stopped, also if
// another has its name in the very moment of the call.
func TestTheDeleteGoesToTheInstanceThatWasProven(t *testing.T) {
	w := enginetest.New("a")
	id, other := w.Ask(fleet.KindRecreate, "a"), ""
	once(w, "commit:after", func() bool { return !w.Op(id).Delete.IntentAt.IsZero() }, func() {
		w.Replace("a")
		other = w.VM("a").ID
	})
	w.Run(10 * time.Minute)
	if vm := w.VM("a"); other == "" || vm == nil || vm.ID != other || !vm.Serving() {
		t.Fatalf("the other instance %q was touched\n%s", other, w.Story())
	}
	if op := w.Op(id); !strings.Contains(op.Waiting, "still lists instance "+other) {
		t.Errorf("it waits for %q\n%s", op.Waiting, w.Story())
	}
}

// Section 6: what had a container here has run here, and is not to run again.
func TestAJobThatHadAContainerHereIsNoOrphan(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 1, time.Minute)
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(30 * time.Second)
	w.Orphan("a", fleet.Job{ID: 1, URL: w.JobURL(1), StartedAt: w.Now().Add(-30 * time.Second)}) // GitLab never hears of its end
	w.Run(time.Hour)
	if op := w.Op(id); op.Phase != fleet.PhaseSucceeded || w.Meter.Orphaned != 0 || !strings.Contains(w.Story(), "its runner on f/a has ended: it was cut") {
		t.Errorf("%s, %d orphans\n%s", op.Phase, w.Meter.Orphaned, w.Story())
	}
}

// Promise 5: an answer that GitLab gave before the process was gone decides
// nothing, not even who else asked for it.
func TestGitLabIsAskedForItsWordAfterTheExit(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 1, 3*time.Minute)
	id := w.Ask(fleet.KindDrain, "a")
	for !w.Op(id).Phase.Finished() {
		w.Run(time.Second)
	}
	exit := w.Op(id).Drain.ExitSeenAt
	if last := w.Asked[len(w.Asked)-1]; exit.IsZero() || last.Before(exit) {
		t.Errorf("the process was gone at %s, and GitLab was asked for its word after %s\n%s", exit, last, w.Story())
	}
}

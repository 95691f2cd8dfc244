package engine_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// replaced fails unless a recreate ended as promised: one VM of the name, a
// new one, serving, and no job cut.
func replaced(t *testing.T, w *enginetest.World, id, vm, old string) {
	t.Helper()
	op := w.Op(id)
	if op.Phase != fleet.PhaseSucceeded {
		t.Fatalf("operation is %s: %s %s\n%s", op.Phase, op.Waiting, op.ErrMessage, w.Story())
	}
	live := w.Living(vm)
	if len(live) != 1 || live[0].ID == old {
		t.Fatalf("%d VMs of the name, want exactly the new one\n%s", len(live), w.Story())
	}
	if !live[0].Serving() {
		t.Fatalf("the new VM does not serve\n%s", w.Story())
	}
	if len(w.Cut) != 0 {
		t.Fatalf("jobs %v were cut\n%s", w.Cut, w.Story())
	}
}

// cases.md T58: the old VM's manager is ours to remove.
func TestARecreateWaitsForTheJobAndReplacesTheVM(t *testing.T) {
	w := enginetest.New("a", "b")
	old := w.VM("a").ID
	w.Job("a", 42, 3*time.Minute)
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
	if w.VM("b").Unit.MainPID != 1001 {
		t.Error("the other VM was touched")
	}
	if got := strings.Join(w.Meter.Moves, " "); got != "preflight draining deleting creating verifying succeeded" {
		t.Errorf("moves: %s", got)
	}
	if len(w.Removed) != 1 || w.Removed[0] != "s_"+old {
		t.Errorf("removed managers: %v, want the old VM's only", w.Removed)
	}
}

func TestTheDeleteComesRightAfterTheExit(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 1, 3*time.Minute)
	end := w.VM("a").BusyUntil
	w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	if gap := w.VMs[0].Gone.Add(-w.DeleteDelay).Sub(end); gap > time.Second {
		t.Errorf("%s from the exit to the delete", gap)
	}
}

// cases.md T35: stopping intake is part of the drain.
func TestADrainStopsIntakeAndAnUndrainOpensIt(t *testing.T) {
	w := enginetest.New("a")
	id := w.Ask(fleet.KindDrain, "a")
	w.Run(10 * time.Minute)
	if op := w.Op(id); op.Phase != fleet.PhaseSucceeded || w.VM("a").Unit.MainPID != 0 {
		t.Fatalf("%s\n%s", op.Phase, w.Story())
	}
	id = w.Ask(fleet.KindUndrain, "a")
	w.Run(10 * time.Minute)
	if op := w.Op(id); op.Phase != fleet.PhaseSucceeded || !w.VM("a").Serving() {
		t.Fatalf("%s\n%s", op.Phase, w.Story())
	}
}

func TestAnUndrainInMidJobKeepsTheDropInUntilTheRunnerIsAnew(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 1, 5*time.Minute)
	drain := w.Ask(fleet.KindDrain, "a")
	w.Run(time.Minute)
	op := w.Op(drain)
	op.Canceled = true
	if err := w.Store.UpdateOperation(t.Context(), op, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	w.Run(time.Minute)
	if !w.VM("a").DropIn.Present || w.Op(drain).Phase != fleet.PhaseRestoring {
		t.Fatalf("the drop-in was removed while the job ran\n%s", w.Story())
	}
	w.Run(time.Hour)
	if w.Op(drain).Phase != fleet.PhaseCanceled || !w.VM("a").Serving() || len(w.Cut) > 0 {
		t.Fatalf("%s, cut %v\n%s", w.Op(drain).Phase, w.Cut, w.Story())
	}
}

// cases.md T33: what follows the cap has a name.
func TestAnOverrunGoesByThePolicy(t *testing.T) {
	for _, tc := range []struct {
		policy fleet.Overrun
		phase  fleet.Phase
		cut    int
	}{
		{fleet.OverrunProceed, fleet.PhaseSucceeded, 1},
		{fleet.OverrunAbort, fleet.PhaseFailed, 0},
		{fleet.OverrunWait, fleet.PhaseSucceeded, 0},
	} {
		t.Run(string(tc.policy), func(t *testing.T) {
			w := enginetest.New("a")
			w.Job("a", 42, 30*time.Minute)
			id := w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy.OnOverrun = tc.policy })
			w.Run(2 * time.Hour)
			op := w.Op(id)
			if op.Phase != tc.phase || len(w.Cut) != tc.cut || len(op.CutJobs) != tc.cut {
				t.Fatalf("%s, cut %v, recorded %v\n%s", op.Phase, w.Cut, op.CutJobs, w.Story())
			}
			if !op.Drain.Overran {
				t.Error("the overrun was not noted")
			}
			if tc.policy == fleet.OverrunAbort && !w.VM("a").Serving() {
				t.Error("intake was not restored")
			}
		})
	}
}

// cases.md T107: re-verify immediately before destroy.
func TestARebootBetweenProofAndDeleteStartsTheDrainAgain(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a").ID
	w.Fences["check"] = func() {
		w.Advance(4 * time.Second) // a boot takes its time
		w.Reboot("a")
		w.Job("a", 43, time.Minute) // the runner came back and took a job
	}
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
	if !strings.Contains(w.Story(), "the delete did not happen") {
		t.Errorf("the proof was not lost\n%s", w.Story())
	}
}

// cases.md T26: what is stopped stays stopped until the delete.
func TestAStartByAPersonInMidDrainIsStoppedAgain(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a").ID
	w.Job("a", 1, 2*time.Minute)
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Minute)
	w.VM("a").StartQueued = true // systemctl start by a person: a new process after the job
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
}

// cases.md T21: 429, 5xx and timeouts freeze destruction.
func TestWithoutGitLabsWordNothingIsDeletedInsideTheCap(t *testing.T) {
	w := enginetest.New("a")
	id := w.Ask(fleet.KindRecreate, "a")
	w.Fences["stop"] = func() { w.GitLabDown = true }
	w.Run(9 * time.Minute)
	if len(w.Living("a")) != 1 || w.Calls["delete"] != 0 {
		t.Fatalf("deleted without GitLab's word\n%s", w.Story())
	}
	w.Run(5 * time.Minute)
	if op := w.Op(id); op.Phase != fleet.PhaseFailed || !w.VM("a").Serving() {
		t.Fatalf("%s: at the cap the default is to abort and restore\n%s", op.Phase, w.Story())
	}
}

func TestWithoutAGitLabTokenHostEvidenceDecides(t *testing.T) {
	w := enginetest.New("a")
	w.NoGitLab = true
	old := w.VM("a").ID
	w.Job("a", 1, time.Minute)
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
}

// cases.md T30, T31: a machine that is off or absent has nothing to drain.
func TestAMachineThatIsOffIsReplacedWithoutADrain(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a").ID
	w.VM("a").Off = true
	w.VM("a").Unit.MainPID = 0
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
	if w.Calls["stop"] != 0 {
		t.Error("a stop was sent to a machine that is off")
	}
}

func TestAHostOutOfReachFromTheStartFailsUntouchedAtTheReachDeadline(t *testing.T) {
	w := enginetest.New("a")
	w.VM("a").Cutoff = true
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	op := w.Op(id)
	if op.Phase != fleet.PhaseFailed || w.Calls["stop"]+w.Calls["delete"] != 0 {
		t.Fatalf("%s\n%s", op.Phase, w.Story())
	}
	if !strings.Contains(op.ErrMessage, "could not be reached") || op.ErrHint == "" {
		t.Errorf("message %q, hint %q", op.ErrMessage, op.ErrHint)
	}
}

func TestADrainedVMStaysDrainedOverAReboot(t *testing.T) {
	w := enginetest.New("a")
	w.Ask(fleet.KindDrain, "a")
	w.Run(10 * time.Minute)
	w.Reboot("a")
	if err := w.Engine().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Advance(time.Second)
	if vm := w.VM("a"); vm.Unit.MainPID != 0 || !vm.DropIn.Effective {
		t.Fatalf("the VM serves again\n%s", w.Story())
	}
	if w.Meter.Swept == 0 {
		t.Error("the sweep did not report")
	}
}

// cases.md T94: what cannot come back uses the budget up.
func TestTheBudgetHoldsWhoeverAsked(t *testing.T) {
	w := enginetest.New("a", "b", "c")
	for _, vm := range []string{"a", "b", "c"} {
		w.Job(vm, 1, time.Minute)
		w.Ask(fleet.KindRecreate, vm)
	}
	for range 3000 {
		w.Run(time.Second)
		out := 0
		for _, vm := range []string{"a", "b", "c"} {
			if live := w.VM(vm); live == nil || !live.Serving() {
				out++
			}
		}
		if out > 1 {
			t.Fatalf("%d VMs out of service at once\n%s", out, w.Story())
		}
	}
	if got := strings.Count(strings.Join(w.Meter.Moves, " "), "succeeded"); got != 3 {
		t.Errorf("%d of 3 succeeded\n%s", got, w.Story())
	}
}

// A budget that no operation will free needs a person; only the first in the
// queue says so, because the others wait for that one.
func TestTheFirstInTheQueueSaysWhoMustFreeTheBudget(t *testing.T) {
	w := enginetest.New("a", "b", "c")
	w.Ask(fleet.KindDrain, "a")
	w.Run(time.Hour)
	first, second := w.Ask(fleet.KindRecreate, "b"), w.Ask(fleet.KindRecreate, "c")
	w.Run(time.Minute)
	const hint = "undrain or recreate them"
	if op := w.Op(first); op.Phase != fleet.PhaseQueued || !strings.Contains(op.Waiting, hint) {
		t.Errorf("the first is %s and waits for %q, want %q in it", op.Phase, op.Waiting, hint)
	}
	if op := w.Op(second); op.Phase != fleet.PhaseQueued || strings.Contains(op.Waiting, hint) {
		t.Errorf("the second is %s and waits for %q, want no advice that is the first's", op.Phase, op.Waiting)
	}
}

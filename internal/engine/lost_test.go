package engine_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Lost in mid-drain: by default the VM is given back, however long it takes
// until it can be reached, and its job ends by itself. cases.md T30.
func TestAHostLostInMidDrainIsGivenBackOnceItCanBeReached(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a").ID
	w.Job("a", 42, 8*time.Minute)
	id := w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy.Cap = time.Hour })
	w.Run(time.Minute)
	w.VM("a").Cutoff = true
	w.Run(9 * time.Minute)
	if op := w.Op(id); op.Phase != fleet.PhaseDraining {
		t.Fatalf("%s before the reach deadline\n%s", op.Phase, w.Story())
	}
	w.Run(2 * time.Hour)
	if op := w.Op(id); op.Phase != fleet.PhaseRestoring || w.Calls["delete"] > 0 {
		t.Fatalf("%s, %d deletes\n%s", op.Phase, w.Calls["delete"], w.Story())
	}
	w.VM("a").Cutoff = false
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "out of reach")
	if live := w.Living("a"); len(live) != 1 || live[0].ID != old || !live[0].Serving() || len(w.Cut) > 0 {
		t.Errorf("the VM does not serve as before, or %v were cut\n%s", w.Cut, w.Story())
	}
}

// With unreachable=proceed it is deleted at the reach deadline, under a waiver,
// and the job that GitLab still shows is told of. cases.md T30.
func TestAHostLostInMidDrainIsReplacedIfThePolicySaysSo(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 42, 3*time.Hour)
	id := w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) {
		r.Policy.Cap, r.Policy.HardCap, r.Policy.Unreachable = 2*time.Hour, 2*time.Hour, fleet.UnreachableProceed
	})
	w.Run(time.Minute)
	w.VM("a").Cutoff = true
	w.Run(9 * time.Minute)
	if w.Calls["delete"] > 0 {
		t.Fatalf("deleted before the reach deadline\n%s", w.Story())
	}
	w.Run(time.Hour)
	op := w.Op(id)
	if op.Phase != fleet.PhaseSucceeded || op.Drain.Waiver == nil || op.Drain.Waiver.Verdict != fleet.VerdictUnreachable || op.Drain.Waiver.Row != 2 {
		t.Fatalf("%s under %+v\n%s", op.Phase, op.Drain.Waiver, w.Story())
	}
	if len(op.CutJobs) != 1 || op.CutJobs[0].ID != 42 {
		t.Errorf("the jobs said to be cut: %v\n%s", op.CutJobs, w.Story())
	}
}

// Deleted behind our back in mid-drain: there is nothing to drain any more, and
// one VM comes in for it. What ran was cut by others.
func TestAVMDeletedBehindOurBackInMidDrainIsMadeAnewOnce(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a")
	w.Job("a", 42, time.Hour)
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Minute)
	old.Gone = w.Now()
	w.Run(time.Hour)
	op := w.Op(id)
	if live := w.Living("a"); op.Phase != fleet.PhaseSucceeded || len(live) != 1 || live[0].ID == old.ID || w.Calls["create"] != 1 {
		t.Fatalf("%s, %d VMs, %d creates\n%s", op.Phase, len(w.Living("a")), w.Calls["create"], w.Story())
	}
	if op.Drain.Verdict != fleet.VerdictAbsent || !strings.Contains(w.Story(), "nothing to drain") {
		t.Errorf("verdict %s\n%s", op.Drain.Verdict, w.Story())
	}
}

// The same of one that is only to be drained: it is drained of everything, and
// said to be gone.
func TestAVMDeletedBehindOurBackInMidDrainEndsItsDrain(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 42, time.Hour)
	id := w.Ask(fleet.KindDrain, "a")
	w.Run(time.Minute)
	w.VM("a").Gone = w.Now()
	w.Run(time.Hour)
	if op := w.Op(id); !op.Phase.Finished() || op.Drain.Verdict != fleet.VerdictAbsent || w.Calls["create"]+w.Calls["delete"] > 0 {
		t.Errorf("%s (%s)\n%s", op.Phase, op.Drain.Verdict, w.Story())
	}
}

package engine_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// tracedWorld is a world in which whatever GitLab shows running has a trace: a
// runner has worked on it.
func tracedWorld() *enginetest.World {
	w := enginetest.New("a")
	w.With = func(f *engine.Fleet) { f.GitLab = traced{f.GitLab} }
	return w
}

// lose makes GitLab show the job as begun just now under vm's system_id.
func lose(w *enginetest.World, vm *enginetest.VM) {
	w.OrphanOn(vm, fleet.Job{ID: lostJob, URL: w.JobURL(lostJob), StartedAt: w.Now()})
}

const toldAsCut = "is still shown running though its runner on f/a has ended: it was cut"

// Intake could not be stopped: what the VM took between the last look and the
// delete went with it. Seed 352709 of the worlds.
func TestAJobThatAVMTookBeforeItsDeleteWithIntakeOpenIsToldAsCut(t *testing.T) {
	for name, open := range map[string]func(*enginetest.World){
		"sudo refuses":             withoutSudo,
		"the host does not answer": func(w *enginetest.World) { w.VM("a").Cutoff = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := tracedWorld()
			w.Ask(fleet.KindDrain, "a") // since then its row knows the system_id
			w.Run(time.Hour)
			w.Ask(fleet.KindUndrain, "a")
			w.Run(time.Hour)
			open(w)
			w.DeleteDelay = time.Minute
			vm := w.VM("a")
			w.Fences["delete"] = func() { lose(w, vm) }
			id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.NoDrain = true })
			w.Run(2 * time.Hour)
			op := ended(t, w, id, fleet.PhaseSucceeded, "")
			if !op.Drain.StoppedAt.IsZero() || strings.Count(w.Story(), toldAsCut) != 1 || w.Meter.CutJobs != 1 {
				t.Errorf("stopped at %s; counted %d\n%s", op.Drain.StoppedAt, w.Meter.CutJobs, w.Story())
			}
			recorded(t, w, id)
			closed(t, w)
		})
	}
}

// exitToAbsence lets a job begin on a's system_id so long after the drain of a
// delete has ended, whose VM is gone after another while.
func exitToAbsence(t *testing.T, absence, begins time.Duration) *enginetest.World {
	t.Helper()
	w := tracedWorld()
	w.DeleteDelay = absence
	vm := w.VM("a")
	id := w.Ask(fleet.KindDelete, "a")
	for w.Op(id).Drain.ExitSeenAt.IsZero() {
		w.Run(100 * time.Millisecond)
	}
	for w.Now().Before(w.Op(id).Drain.ExitSeenAt.Add(begins)) {
		w.Run(100 * time.Millisecond)
	}
	lose(w, vm)
	w.Run(2 * time.Hour)
	ended(t, w, id, fleet.PhaseSucceeded, "")
	closed(t, w)
	return w
}

// Somebody has started the runner again just before the delete: the job went with
// the VM, however long that took. Seed 450621 of the worlds.
func TestAJobThatBeganBetweenTheExitAndTheEndOfTheVMIsToldAsCut(t *testing.T) {
	w := exitToAbsence(t, 3*time.Minute, 2*time.Minute)
	if strings.Count(w.Story(), toldAsCut) != 1 || w.Meter.CutJobs != 1 {
		t.Errorf("it is not told as cut\n%s", w.Story())
	}
}

// The runner had ended, and its VM was gone: another has the system_id. Seed
// 378925 of the worlds.
func TestAJobThatBeganAfterTheVMWasGoneIsNotToldAsCut(t *testing.T) {
	w := exitToAbsence(t, time.Second, 20*time.Second)
	if strings.Contains(w.Story(), toldAsCut) || w.Meter.CutJobs != 0 {
		t.Errorf("a job of another runner is told as cut\n%s", w.Story())
	}
	says(t, w, "[note] job 99 (https://gitlab.example/acme/app/-/jobs/99) goes on on f/a")
}

// The same where nobody has seen the exit: the VM's absence is confirmed, and that
// is as good. Seed 378925 of the worlds.
func TestAJobThatBeganAfterAVMWhoseExitNobodySawWasGoneIsNotToldAsCut(t *testing.T) {
	w := tracedWorld()
	w.DeleteDelay = time.Second
	w.Job("a", 42, 3*time.Hour)
	vm := w.VM("a")
	id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.Policy.Cap, r.Policy.Unreachable = time.Hour, fleet.UnreachableProceed })
	w.Run(time.Minute)
	vm.Cutoff = true
	for !w.Op(id).Phase.Finished() {
		w.Run(time.Second)
	}
	w.Run(fleet.RequestOutlives + 5*time.Second)
	lose(w, vm)
	w.Run(2 * time.Hour)
	op := ended(t, w, id, fleet.PhaseSucceeded, "")
	if !op.Drain.ExitSeenAt.IsZero() || op.Drain.Verdict != fleet.VerdictUnreachable {
		t.Fatalf("exit seen at %s, %s", op.Drain.ExitSeenAt, op.Drain.Verdict)
	}
	if strings.Contains(w.Story(), toldAsCut) {
		t.Errorf("a job of another runner is told as cut\n%s", w.Story())
	}
	says(t, w, "[note] job 99 (https://gitlab.example/acme/app/-/jobs/99) goes on on f/a")
	recorded(t, w, id, 42)
}

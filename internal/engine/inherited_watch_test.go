package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// handedOn is a world in which a recreate of a, whose stop has lost a job, is on
// its way back when another one takes it over, as control stores it: the stop is
// that one's to watch. If queued, it waits in the queue for a job on b.
func handedOn(t *testing.T, queued bool) (w *enginetest.World, id string) {
	t.Helper()
	w = enginetest.New("a", "b")
	w.Job("a", 42, time.Minute)
	w.Fences["stop"] = func() { w.Orphan("a", fleet.Job{ID: lostJob, URL: w.JobURL(lostJob), StartedAt: w.Now()}) }
	first := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Second)
	if queued {
		w.Job("b", 43, 20*time.Minute)
		w.Ask(fleet.KindRecreate, "b", func(r *fleet.Request) { r.Parallel, r.Policy.Cap = 2, time.Hour })
		w.Run(time.Second)
	}
	cancel(t, w, first)
	for w.Op(first).Phase != fleet.PhaseRestoring {
		w.Run(time.Second)
	}
	old := w.Op(first)
	id = succeed(t, w, first, fleet.KindRecreate)
	err := change(t, w, id, func(op *fleet.Operation) error {
		op.Drain.OrderedAt, op.Drain.InheritedStop = old.Drain.OrderedAt, old.Drain.StoppedAt
		return nil
	})
	if err != nil || old.Drain.Watches != 0 || old.Drain.StoppedAt.IsZero() {
		t.Fatalf("%+v, %v\n%s", old.Drain, err, w.Story())
	}
	return w, id
}

// A watch that begins only after the queue finds nothing: GitLab fails a stuck
// job after an hour. Seeds 266866 and 507929 of the worlds.
func TestAnInheritedStopIsWatchedWhileItsSuccessorWaitsInTheQueue(t *testing.T) {
	w, id := handedOn(t, true)
	w.Run(5 * time.Minute)
	if op := w.Op(id); op.Phase != fleet.PhaseQueued || told(w, fleet.FactOrphan) != 1 || op.Drain.Watches != 1 {
		t.Fatalf("%s, told %d times by %d watches\n%s", op.Phase, told(w, fleet.FactOrphan), op.Drain.Watches, w.Story())
	}
	w.Run(3 * time.Hour)
	ended(t, w, id, fleet.PhaseSucceeded, "")
	if n := w.Op(id).Drain.Watches; told(w, fleet.FactOrphan) != 1 || n != 2 {
		t.Errorf("told %d times; %d watches, want one of each stop\n%s", told(w, fleet.FactOrphan), n, w.Story())
	}
	closed(t, w)
}

// Another VM has the name by then: the stop was not given to that one, whose own
// drain watches nothing of the old one.
func TestAnInheritedStopIsWatchedWhereAnotherInstanceIsFound(t *testing.T) {
	for name, queued := range map[string]bool{"at once": false, "watched in the queue already": true} {
		t.Run(name, func(t *testing.T) {
			w, id := handedOn(t, queued)
			if queued {
				w.Run(time.Minute)
			}
			w.Replace("a")
			other := w.VM("a").ID
			w.Run(3 * time.Hour)
			replaced(t, w, id, "a", other)
			if n := w.Op(id).Drain.Watches; told(w, fleet.FactOrphan) != 1 || n != 2 {
				t.Errorf("told %d times; %d watches, want one of each VM's stop\n%s", told(w, fleet.FactOrphan), n, w.Story())
			}
			closed(t, w)
		})
	}
}

// What the old one was ordered says nothing of another: that one was down before,
// and is left so.
func TestAnotherInstanceThatWasDownIsLeftDownThoughTheOldOneWasStopped(t *testing.T) {
	w, id := handedOn(t, false)
	w.Replace("a")
	vm := w.VM("a")
	vm.Unit = fleet.UnitState{ActiveState: "inactive", SubState: "dead", Result: "success"}
	w.Refuse["check"] = []error{fleet.Errorf(fleet.CodeImageMissing, "image x was deleted").WithHint("build it")}
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "image x was deleted")
	if vm.Unit.MainPID != 0 || vm.DropIn.Present || w.VM("a") != vm {
		t.Errorf("the unit is %s, drop-in %t\n%s", vm.Unit.ActiveState, vm.DropIn.Present, w.Story())
	}
}

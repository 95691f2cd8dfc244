package engine_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// A delete takes over a stop of long ago, which got its watch. Intake is open
// again, and the host out of reach: what the VM takes until it goes is watched, too.
func TestAVMThatIsDeletedWithItsIntakeOpenIsWatchedThoughAnEarlierStopWas(t *testing.T) {
	for name, queued := range map[string]bool{"at once": false, "the stop was watched in the queue": true} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a", "b")
			w.With = func(f *engine.Fleet) { f.GitLab = traced{f.GitLab} }
			if queued {
				w.Ask(fleet.KindDrain, "b") // the budget is used up
				w.Run(10 * time.Minute)
			}
			vm := w.VM("a")
			id := w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy.Unreachable = fleet.UnreachableProceed })
			tookOver(t, w, id, fleet.OrderStart)
			row, err := w.Store.VM(t.Context(), w.Op(id).Ref())
			if err != nil {
				t.Fatal(err)
			}
			row.Incarnation = w.Op(id).Old
			if err := w.Store.SaveVM(t.Context(), row); err != nil {
				t.Fatal(err)
			}
			if queued {
				w.Run(2 * time.Hour) // the watch has ended
				w.Ask(fleet.KindUndrain, "b")
			}
			vm.Cutoff = true
			w.Fences["delete"] = func() { lose(w, vm) }
			w.Run(3 * time.Hour)
			op := ended(t, w, id, fleet.PhaseSucceeded, "")
			if op.Drain.Verdict != fleet.VerdictUnreachable || strings.Count(w.Story(), toldAsCut) != 1 {
				t.Errorf("%s by %d watches\n%s", op.Drain.Verdict, op.Drain.Watches, w.Story())
			}
			closed(t, w)
		})
	}
}

// The stop was ordered, and got its watch, but sudo refuses it each time: intake is
// open until the provider takes the delete, when that watch has ended.
func TestAVMThatIsDeletedWithItsIntakeOpenIsWatchedThoughAFailedStopWas(t *testing.T) {
	w := tracedWorld()
	vm, began := w.VM("a"), w.Now()
	withoutSudo(w)
	w.Points.At = func(point string) {
		switch {
		case point != "delete:before":
		case w.Now().Sub(began) < 90*time.Minute:
			w.Refuse["delete"] = []error{fleet.Errorf(fleet.CodeUnavailable, "503 Service Unavailable")}
		case w.Lost[lostJob] == nil:
			lose(w, vm)
		}
	}
	id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.NoDrain = true })
	w.Run(5 * time.Hour)
	op := ended(t, w, id, fleet.PhaseSucceeded, "")
	if !op.Drain.StoppedAt.IsZero() || told(w, fleet.FactCut) != 1 {
		t.Errorf("told %d times by %d watches\n%s", told(w, fleet.FactCut), op.Drain.Watches, w.Story())
	}
	closed(t, w)
}

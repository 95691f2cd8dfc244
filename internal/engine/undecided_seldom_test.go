package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// tookOver lets an operation of a begin with what an earlier one has ordered,
// as control stores it (internal/control, inherit).
func tookOver(t *testing.T, w *enginetest.World, id string, verb fleet.OrderVerb) {
	t.Helper()
	vm := w.VM("a")
	err := change(t, w, id, func(op *fleet.Operation) error {
		op.Old, op.OldAddr = fleet.Incarnation{Instance: vm.ID, SystemID: vm.SystemID, BootID: vm.Boot}, "a:22"
		op.Order = fleet.Order{Verb: verb, Owner: enginetest.Owner, Operation: "op-0", Number: 1}
		op.Drain.OrderedAt, op.Drain.InheritedStop = w.Now(), w.Now()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// An operation waits in the queue on a VM that was stopped before, and nobody can
// tell whether the job that GitLab shows there goes on. That costs GitLab a
// request each few seconds at first, and not for all the time.
func TestAJobThatStaysUndecidedIsLookedAtLessAndLessOften(t *testing.T) {
	w := enginetest.New("a", "b")
	var looks []time.Time
	w.With = func(f *engine.Fleet) {
		f.GitLab = bentReading{traced{f.GitLab}, func(r *fleet.GitLabReading) { looks = append(looks, r.TakenAt) }}
	}
	w.Ask(fleet.KindDrain, "b") // the budget is used up
	w.Run(10 * time.Minute)
	lose(w, w.VM("a"))
	began := w.Now()
	id := w.Ask(fleet.KindRecreate, "a")
	tookOver(t, w, id, fleet.OrderStop)
	looks = nil
	w.Run(time.Hour)
	if op := w.Op(id); op.Phase != fleet.PhaseQueued || op.Drain.Watches != 1 || told(w, fleet.FactCut) != 0 {
		t.Fatalf("%s with %d watches\n%s", op.Phase, op.Drain.Watches, w.Story())
	}
	soon, late := 0, 0
	for _, at := range looks {
		switch age := at.Sub(began); {
		case age < 2*time.Minute:
			soon++
		case age >= 30*time.Minute:
			late++
		}
	}
	if soon < 10 || late < 10 || late > 16 {
		t.Errorf("%d looks in the first two minutes, %d in the last thirty: %v", soon, late, looks)
	}
}

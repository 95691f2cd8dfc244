package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// givenUp yields a world in which a was made anew by the operation id, one of
// whose attempts may be carried out yet.
func givenUp(t *testing.T) (w *enginetest.World, id string) {
	t.Helper()
	w = enginetest.New("a", "b")
	w.Refuse["create"] = []error{fleet.Errorf(fleet.CodeUnavailable, "504 gateway timeout")}
	id = w.Ask(fleet.KindRecreate, "a")
	for w.Op(id).Phase != fleet.PhaseSucceeded {
		w.Run(time.Second)
	}
	return w, id
}

// left fails unless the one instance that was kept is left of a.
func left(t *testing.T, w *enginetest.World, kept string) {
	t.Helper()
	if live := w.Living("a"); len(live) != 1 || live[0].ID != kept || len(w.Cut) > 0 {
		t.Errorf("%d VMs are left, cut %v\n%s", len(live), w.Cut, w.Story())
	}
}

// An operation may stand in the queue for hours, and has not looked for anything
// yet. Seed 36765 of the worlds.
func TestALateCreateIsRemovedThoughAnOperationIsQueued(t *testing.T) {
	w, id := givenUp(t)
	kept := w.VM("a").ID
	w.Ask(fleet.KindDrain, "b")
	w.Run(time.Minute)
	queued := w.Ask(fleet.KindRecreate, "a") // b is out: the budget is used up
	w.Twin("a", id)
	w.Run(3 * time.Hour)
	if op := w.Op(queued); op.Phase != fleet.PhaseQueued {
		t.Errorf("%s: it was to stay in the queue", op.Phase)
	}
	left(t, w, kept)
}

// Seed 36765 of the worlds: the watch ends with a look, however long another
// operation works on the VM.
func TestTheLastLookForALateCreateIsMadeAfterTheOperationInItsWay(t *testing.T) {
	w, id := givenUp(t)
	kept, succeeded := w.VM("a").ID, w.Now()
	w.Run(30 * time.Minute)
	w.Job("a", 1, time.Hour)
	busy := w.Ask(fleet.KindDrain, "a", func(r *fleet.Request) { r.Policy.Cap = 2 * time.Hour })
	w.Run(5 * time.Minute)
	w.Twin("a", id)
	for !w.Op(busy).Phase.Finished() {
		w.Run(time.Minute)
	}
	if past := w.Now().Sub(succeeded); past < 70*time.Minute {
		t.Fatalf("the drain ended %s after the create: before the last look", past)
	}
	w.Run(time.Hour)
	left(t, w, kept)
	closed(t, w)
}

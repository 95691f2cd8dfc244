package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// cameLate is a world without a VM of the name a, but for an instance that a
// canceled create of it has left behind.
func cameLate(t *testing.T) *enginetest.World {
	t.Helper()
	w := enginetest.New("a", "b")
	w.Ask(fleet.KindDelete, "a")
	w.Run(time.Hour)
	refuse(w, "create", fleet.CodeUnavailable)
	id := w.Ask(fleet.KindCreate, "a")
	w.Run(3 * time.Second)
	cancel(t, w, id)
	for !w.Op(id).Phase.Finished() {
		w.Run(time.Second)
	}
	w.Refuse["create"] = nil
	w.Twin("a", id)
	return w
}

// adoptedMeanwhile lets a create of a be asked for as the watch over late creates
// looks, and be worked before that has stored what it saw. Its preflight does not
// see the instance yet; its create finds it.
func adoptedMeanwhile(t *testing.T, w *enginetest.World) (next *string) {
	t.Helper()
	next = new(string)
	w.Fences["describe"] = func() { *next = w.Ask(fleet.KindCreate, "a") }
	once(w, "commit:before", func() bool { return *next != "" }, func() {
		w.Overlook(w.Calls["describe"]+1, 1)
		for range 50 {
			wait, done, err := w.Engine().Look(t.Context(), *next)
			if done || err != nil {
				return
			}
			w.Advance(wait)
		}
	})
	return next
}

// Promise 3: a watch takes the only instance of a name for a second one, and a
// create adopts it in that instant. It is the VM by then, and is left alone.
func TestASecondVMThatAnOperationHasAdoptedSinceIsNotDeleted(t *testing.T) {
	w := cameLate(t)
	next := adoptedMeanwhile(t, w)
	w.Run(3 * time.Hour)
	if *next == "" {
		t.Fatal("nobody looked for a late create")
	}
	op := ended(t, w, *next, fleet.PhaseSucceeded, "")
	left(t, w, op.Create.New.Instance)
	says(t, w, "a second instance "+op.Create.New.Instance+" of f/a came late")
	closed(t, w)
}

package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
)

// cases.md T8: another image in the configuration makes the next VM another
// one. It touches none that runs.
func TestAnotherImageInTheConfigurationTouchesNoVM(t *testing.T) {
	w := enginetest.New("a", "b")
	w.Job("a", 42, time.Hour)
	w.Spec.Image = "image-3"
	for range 20 {
		if err := w.Engine().Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.Run(time.Minute)
		w.Advance(time.Minute)
	}
	if ops, _ := w.Store.Unfinished(t.Context()); len(ops) > 0 || w.Calls["stop"]+w.Calls["delete"]+w.Calls["create"] > 0 || len(w.Cut) > 0 {
		t.Errorf("%d operations, calls %v, cut %v", len(ops), w.Calls, w.Cut)
	}
	if !w.VM("a").Serving() || !w.VM("b").Serving() {
		t.Error("a VM does not serve any more")
	}
}

package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// dieAt makes the engine die at the first point of a name, the nth after it, and
// lets others act in that moment.
func dieAt(w *enginetest.World, point string, then func()) {
	w.Points.At = func(name string) {
		if name == point {
			w.Points.At, w.Points.Die = nil, len(w.Points.Passed)
			then()
		}
	}
}

// The controller dies when the runner was just told to end its jobs: whatever
// comes next, nobody says that they go on. That it is about to be told was written
// before.
func TestACrashAfterTheOrderToEndJobsTakesNoJobBack(t *testing.T) {
	for name, c := range map[string]struct {
		kind  fleet.Kind
		skip  bool
		then  func(*testing.T, *enginetest.World, string)
		phase fleet.Phase
	}{
		"a drain goes on":     {fleet.KindDrain, false, func(*testing.T, *enginetest.World, string) {}, fleet.PhaseSucceeded},
		"a drain is canceled": {fleet.KindDrain, false, cancel, fleet.PhaseCanceled},
		"a delete goes on":    {fleet.KindDelete, false, func(*testing.T, *enginetest.World, string) {}, fleet.PhaseSucceeded},
		"a delete is refused": {fleet.KindDelete, true, func(_ *testing.T, w *enginetest.World, _ string) {
			w.Refuse["delete"] = []error{fleet.Errorf(fleet.CodeForbidden, "delete is not granted").WithHint("grant it")}
		}, fleet.PhaseFailed},
		"a skipped delete is canceled": {fleet.KindDelete, true, cancel, fleet.PhaseCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a")
			w.Job("a", 42, time.Hour)
			id := w.Ask(c.kind, "a", func(r *fleet.Request) { r.NoDrain = c.skip })
			dieAt(w, "end:after", func() { c.then(t, w, id) })
			w.Run(3 * time.Hour)
			op := ended(t, w, id, c.phase, "")
			if !slices.Equal(w.Cut, []int64{42}) || strings.Contains(w.Story(), "after all") {
				t.Errorf("cut %v, ordered at %s\n%s", w.Cut, op.Drain.EndOrderedAt, w.Story())
			}
			recorded(t, w, id, 42)
		})
	}
}

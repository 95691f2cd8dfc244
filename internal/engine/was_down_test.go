package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Preflight finds the runner stopped. If it runs by the time of the drain's stop,
// then a drain that is given up starts it again. Seed 187111 of the worlds.
func TestADrainThatIsGivenUpStartsAgainWhatItHasStopped(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*enginetest.World)
		serves    bool
	}{
		"a reboot has started it":          {func(w *enginetest.World) { w.Reboot("a") }, true},
		"somebody has started it":          {func(w *enginetest.World) { w.VM("a").StartQueued = true; w.Advance(0) }, true},
		"it has stayed as it was, stopped": {func(*enginetest.World) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a")
			vm := w.VM("a")
			vm.Unit = fleet.UnitState{ActiveState: "inactive", SubState: "dead", Result: "success"}
			id := w.Ask(fleet.KindDrain, "a")
			once(w, "commit:after", func() bool { return w.Op(id).Phase == fleet.PhaseDraining }, func() {
				c.meanwhile(w)
				w.GitLabDown = true // no drain is proven, and at the cap this one is given up
			})
			w.Run(time.Minute)
			if vm.Unit.MainPID != 0 || !vm.DropIn.Present {
				t.Fatalf("it is not stopped\n%s", w.Story())
			}
			w.Run(time.Hour)
			ended(t, w, id, fleet.PhaseFailed, "was not drained")
			if vm.Serving() != c.serves || vm.DropIn.Present {
				t.Errorf("it serves: %t\n%s", vm.Serving(), w.Story())
			}
		})
	}
}

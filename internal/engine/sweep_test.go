package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// The sweep works on what it read a while ago. An undrain that came in between
// has opened intake for good.
func TestASweepThatComesLateLeavesAnUndrainedVMServing(t *testing.T) {
	for _, call := range []string{"describe", "glance", "stop"} {
		t.Run(call, func(t *testing.T) {
			w := enginetest.New("a")
			w.Bubble = time.Now
			w.Ask(fleet.KindDrain, "a")
			w.Run(10 * time.Minute)
			w.Reboot("a")
			w.Fences[call] = func() {
				id := w.Ask(fleet.KindUndrain, "a")
				w.Run(time.Minute)
				ended(t, w, id, fleet.PhaseSucceeded, "")
			}
			err := w.Engine().Sweep(t.Context())
			if !w.VM("a").Serving() {
				t.Errorf("stopped for good, sweep: %v\n%s", err, w.Story())
			}
		})
	}
}

// One host that hangs must not keep the sweep from the others.
func TestASweepGoesOnBesideAHostThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := enginetest.New("a", "b")
		w.Bubble = time.Now
		w.Spec.MaxUnavailable = 2
		w.Ask(fleet.KindDrain, "a")
		w.Ask(fleet.KindDrain, "b")
		w.Run(10 * time.Minute)
		w.Reboot("b")
		w.Hang = map[string]bool{"glance": true}
		w.Fences["glance"] = func() { w.Fences["glance"] = func() { w.Hang = nil } }
		if err := w.Engine().Sweep(t.Context()); err == nil {
			t.Error("the host that hangs is not told of")
		}
		if w.VM("b").Serving() {
			t.Errorf("b was not looked at\n%s", w.Story())
		}
	})
}

package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// A reading from the future is none: the clock was set back since, and nobody
// knows how long ago it was taken.
func TestAProofFromBeforeTheClockWasSetBackIsNoProof(t *testing.T) {
	w := enginetest.New("a")
	old := w.VM("a").ID
	w.Job("a", 1, time.Minute)
	id := w.Ask(fleet.KindRecreate, "a")
	w.Fences["check"] = func() {
		w.Advance(-time.Hour)
		w.VM("a").Ready = w.Now()
		w.Reboot("a")
		w.Job("a", 2, 3*time.Minute)
	}
	w.Run(2 * time.Hour)
	replaced(t, w, id, "a", old)
}

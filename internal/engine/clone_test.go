package engine_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// cases.md T53, T100: an image that brings a system_id of its own makes every VM
// one manager. Its first VM must not pass the gate by its sibling's contacts.
func TestANewVMWithASiblingsSystemIDFailsAtTheGate(t *testing.T) {
	w := enginetest.New("a", "b")
	id := w.Ask(fleet.KindRecreate, "a")
	for w.Op(id).Phase != fleet.PhaseVerifying {
		w.Run(time.Second)
	}
	w.VM("a").SystemID = w.VM("b").SystemID
	w.Run(time.Hour)
	op := ended(t, w, id, fleet.PhaseFailed, "f/b")
	if !strings.Contains(op.ErrMessage, w.VM("b").SystemID) {
		t.Errorf("%q does not name the system_id", op.ErrMessage)
	}
	next := w.Ask(fleet.KindRecreate, "b")
	w.Run(time.Minute)
	if got := w.Op(next).Phase; got != fleet.PhaseQueued {
		t.Errorf("the next VM is %s: a bad image costs one", got)
	}
}

package engine_test

import (
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// The VM was off, so that its delete was committed unseen; the call fails, the VM
// boots, and its host must not be stopped. There is no way back: the operation says
// why it waits, and goes on once the host is mended.
func TestAHostThatIsRefusedAfterTheIntentLeavesItsDeleteWaitingWithTheReason(t *testing.T) {
	w, mended := enginetest.New("a"), false
	vm := w.VM("a")
	w.With = func(f *engine.Fleet) {
		f.Hosts = faulty{f.Hosts, vm.ID, func(f *fleet.HostFacts) {
			if !mended {
				f.SystemIDs = append(f.SystemIDs, "s_other")
			}
		}}
	}
	vm.Off = true
	w.Refuse["delete"] = []error{fleet.Errorf(fleet.CodeUnavailable, "503 Service Unavailable")}
	w.Fences["delete"] = func() {
		vm.Off = false
		w.Reboot("a")
	}
	id := w.Ask(fleet.KindDelete, "a")
	w.Run(time.Hour)
	if op := w.Op(id); op.Phase != fleet.PhaseDraining || op.Delete.IntentAt.IsZero() || !strings.Contains(op.Waiting, "the host has 2 system_ids") {
		t.Fatalf("%s, waits for %q\n%s", op.Phase, op.Waiting, w.Story())
	}
	untouched(t, w, vm, 0)
	mended = true
	w.Run(10 * time.Minute)
	ended(t, w, id, fleet.PhaseSucceeded, "")
}

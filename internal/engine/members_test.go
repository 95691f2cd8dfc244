package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func TestAVMThatLeftTheConfigurationHoldsNobodyUp(t *testing.T) {
	w := enginetest.New("a", "b")
	w.Ask(fleet.KindDelete, "a")
	w.Run(time.Hour)
	w.Spec.VMs = []string{"b"}
	old := w.VM("b").ID
	id := w.Ask(fleet.KindRecreate, "b")
	w.Run(time.Hour)
	replaced(t, w, id, "b", old)
}

// A VM may be given another name in the configuration: its former row is no
// clone of it.
func TestAVMThatWasRenamedIsNoCloneOfItself(t *testing.T) {
	w := enginetest.New("a", "b")
	w.Ask(fleet.KindRecreate, "b") // which looks at a, too
	w.Run(time.Hour)
	vm := w.VM("a")
	vm.Name, w.Spec.VMs = "a2", []string{"a2", "b"}
	id := w.Ask(fleet.KindRecreate, "a2")
	w.Run(time.Hour)
	replaced(t, w, id, "a2", vm.ID)
}

func TestTheSweepLeavesAVMAloneThatLeftTheConfiguration(t *testing.T) {
	w := enginetest.New("a", "b")
	w.Ask(fleet.KindDrain, "a")
	w.Run(10 * time.Minute)
	w.Spec.VMs = []string{"b"}
	w.Reboot("a")
	if err := w.Engine().Sweep(t.Context()); err != nil || !w.VM("a").Serving() {
		t.Errorf("it was stopped though it is nobody's business any more: %v", err)
	}
}

// What an undrain opens may be another incarnation than the one that was
// drained: nothing of the former one is kept for it.
func TestAnUndrainOfAnotherIncarnationForgetsTheFormerOne(t *testing.T) {
	w := enginetest.New("a")
	w.Ask(fleet.KindDrain, "a")
	w.Run(10 * time.Minute)
	w.Replace("a")
	id := w.Ask(fleet.KindUndrain, "a")
	w.Run(time.Minute)
	ended(t, w, id, fleet.PhaseSucceeded, "")
	now := w.VM("a")
	vm, err := w.Store.VM(t.Context(), fleet.Ref{Fleet: enginetest.Fleet, VM: "a"})
	if err != nil || vm.Instance != now.ID || vm.SystemID != now.SystemID || vm.BootID != now.Boot || vm.Manager != 0 {
		t.Errorf("%+v, %v; the VM is %s %s", vm.Incarnation, err, now.ID, now.SystemID)
	}
}

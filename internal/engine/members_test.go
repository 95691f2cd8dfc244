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

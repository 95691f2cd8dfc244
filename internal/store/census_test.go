package store_test

import (
	"path/filepath"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func TestTheCensusTellsTheStateOfEveryVMAsItsRowDoes(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "sluice.db"), nil)
	rows := []fleet.VM{
		{Ref: fleet.Ref{Fleet: "f", VM: "serves"}, Intake: fleet.IntakeServing},
		{Ref: fleet.Ref{Fleet: "f", VM: "drained"}, Intake: fleet.IntakeDrained},
		{Ref: fleet.Ref{Fleet: "g", VM: "missing"}, Intake: fleet.IntakeServing, Missing: true},
		{Ref: fleet.Ref{Fleet: "g", VM: "failed"}, Intake: fleet.IntakeServing, Failed: true},
	}
	for i := range rows {
		if err := s.SaveVM(t.Context(), &rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.Census(t.Context())
	if err != nil || len(list) != len(rows) {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, vm := range list {
		whole, err := s.VM(t.Context(), vm.Ref)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fleet.StateOf(vm, nil), fleet.StateOf(*whole, nil); got != want || vm.Intake != whole.Intake {
			t.Errorf("%s is %s, and by its row %s", vm.Ref, got, want)
		}
	}
}

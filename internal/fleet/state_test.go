package fleet

import (
	"slices"
	"testing"
	"time"
)

func TestStateIsOneWordOutOfRowAndOperation(t *testing.T) {
	byPhase := map[Phase]State{
		PhaseDraining: StateDraining, PhaseDeleting: StateDraining, PhaseCreating: StateCreating,
		PhaseVerifying: StateCreating, PhaseRestoring: StateRestoring,
	}
	for row, vm := range map[State]VM{
		StateServing: {Intake: IntakeServing},
		StateDrained: {Intake: IntakeDrained},
		StateFailed:  {Intake: IntakeDrained, Failed: true},
		StateMissing: {Intake: IntakeDrained, Failed: true, Missing: true},
	} {
		if got := StateOf(vm, nil); got != row {
			t.Errorf("%+v without an operation: %s, want %s", vm, got, row)
		}
		for _, phase := range Phases() {
			for _, held := range bools {
				want := row
				if s, working := byPhase[phase]; working {
					want = s
				}
				if held && !phase.Finished() {
					want = StateHeld
				}
				got := StateOf(vm, &Operation{Phase: phase, Held: held})
				if got != want || !slices.Contains(States(), got) {
					t.Errorf("%s in %s, held %t: %s, want %s", row, phase, held, got, want)
				}
			}
		}
	}
}

func TestAVMIsMissingOnceItsDeleteIsCommitted(t *testing.T) {
	op := &Operation{Phase: PhaseDeleting, Delete: DeleteState{IntentAt: time.Unix(1, 0)}}
	if got := StateOf(VM{}, op); got != StateMissing {
		t.Errorf("%s, want missing", got)
	}
}

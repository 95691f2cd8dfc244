package fleet

// State is what a VM looks like from outside: one word for people and for
// metrics, out of its row and its unfinished operation.
type State string

// The states.
const (
	StateServing   State = "serving"
	StateDraining  State = "draining"
	StateDrained   State = "drained"
	StateRestoring State = "restoring"
	StateMissing   State = "missing" // deleted, being deleted, or never created
	StateCreating  State = "creating"
	StateHeld      State = "held" // an operation waits for a person
	StateFailed    State = "failed"
)

// States lists every state.
func States() []State {
	return []State{
		StateServing, StateDraining, StateDrained, StateRestoring,
		StateMissing, StateCreating, StateHeld, StateFailed,
	}
}

// StateOf yields a VM's state. op is its unfinished operation, nil if there is
// none.
func StateOf(vm VM, op *Operation) State {
	if op != nil && !op.Phase.Finished() {
		if op.Held {
			return StateHeld
		}
		switch op.Phase {
		case PhaseDraining:
			return StateDraining
		case PhaseDeleting:
			if op.Delete.IntentAt.IsZero() {
				return StateDraining // it is still there, and may be given back
			}
			return StateMissing
		case PhaseCreating, PhaseVerifying:
			return StateCreating
		case PhaseRestoring:
			return StateRestoring
		default: // queued and preflight touch nothing
		}
	}
	switch {
	case vm.Missing:
		return StateMissing
	case vm.Failed:
		return StateFailed
	case vm.Intake == IntakeDrained:
		return StateDrained
	default:
		return StateServing
	}
}

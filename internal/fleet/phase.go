package fleet

import "maps"

//go:generate go test -run PageIsInStep -update .

// Phase is where an operation stands.
type Phase string

// The phases.
const (
	PhaseQueued    Phase = "queued"
	PhasePreflight Phase = "preflight"
	PhaseDraining  Phase = "draining"
	PhaseDeleting  Phase = "deleting"
	PhaseCreating  Phase = "creating"
	PhaseVerifying Phase = "verifying"
	PhaseRestoring Phase = "restoring"
	PhaseSucceeded Phase = "succeeded"
	PhaseFailed    Phase = "failed"
	PhaseCanceled  Phase = "canceled"
)

// Phases lists every phase, in the order of a life.
func Phases() []Phase {
	return []Phase{
		PhaseQueued, PhasePreflight, PhaseDraining, PhaseDeleting, PhaseCreating, PhaseVerifying,
		PhaseRestoring, PhaseSucceeded, PhaseFailed, PhaseCanceled,
	}
}

// Finished says whether an operation in this phase has ended.
func (p Phase) Finished() bool {
	return p == PhaseSucceeded || p == PhaseFailed || p == PhaseCanceled
}

// Event is what moves an operation from one phase to the next.
type Event string

// The events.
const (
	EventAdmitted  Event = "admitted"   // the fleet's budget has room
	EventChecked   Event = "checked"    // preflight found nothing against it
	EventDrained   Event = "drained"    // the drain ended, by proof or by waiver
	EventProofLost Event = "proof_lost" // just before the delete the proof did not hold
	EventDeleted   Event = "deleted"    // instance and dependents were seen absent
	EventCreated   Event = "created"    // the new instance was seen
	EventVerified  Event = "verified"   // the new VM serves
	EventRestore   Event = "restore"    // give intake back before ending
	EventRestored  Event = "restored"   // an undrain's intake was seen open
	EventFail      Event = "fail"       // ends without success
	EventCancel    Event = "cancel"     // ends because somebody asked
	EventReplaced  Event = "replaced"   // another incarnation has the name: nothing of ours is left to restore
)

// Events lists every event.
func Events() []Event {
	return []Event{
		EventAdmitted, EventChecked, EventDrained, EventProofLost, EventDeleted, EventCreated,
		EventVerified, EventRestore, EventRestored, EventFail, EventCancel, EventReplaced,
	}
}

// Position is where an operation stands, as far as a transition asks.
type Position struct {
	Kind     Kind
	Phase    Phase
	Intent   bool // the intent to delete is committed: no way back
	Stopping bool // intake may have been stopped by us: no end without restoring
}

// Guard limits an arrow of the phase table to operations that have not yet
// stopped intake, or not yet committed the delete.
type Guard string

// The guards.
const (
	GuardNone         Guard = ""
	GuardBeforeIntent Guard = "before the delete intent"
	GuardUntouched    Guard = "before intake was stopped"
)

// Arrow is one line of the phase table: where each kind of operation goes
// from a phase at an event. A kind that is not in To never makes that move.
type Arrow struct {
	From  Phase
	Event Event
	To    map[Kind]Phase
	Guard Guard
}

// PhaseTable yields the life of one VM (design.md section 5) as data. The
// page docs/reference/phases.md is generated from it.
func PhaseTable() []Arrow {
	table := make([]Arrow, len(phaseTable))
	for i, a := range phaseTable {
		a.To = maps.Clone(a.To)
		table[i] = a
	}
	return table
}

func all(to Phase, kinds ...Kind) map[Kind]Phase {
	targets := make(map[Kind]Phase, len(kinds))
	for _, kind := range kinds {
		targets[kind] = to
	}
	return targets
}

var phaseTable = []Arrow{
	{PhaseQueued, EventAdmitted, map[Kind]Phase{
		KindRecreate: PhasePreflight, KindDelete: PhasePreflight, KindCreate: PhasePreflight,
		KindDrain: PhasePreflight, KindUndrain: PhaseRestoring,
	}, GuardNone},
	// What took over from a restore answers for the intake from the beginning.
	{PhaseQueued, EventRestore, all(PhaseRestoring, KindRecreate, KindDelete, KindDrain, KindUndrain), GuardBeforeIntent},
	{PhaseQueued, EventFail, all(PhaseFailed, Kinds()...), GuardUntouched},
	{PhaseQueued, EventCancel, all(PhaseCanceled, Kinds()...), GuardUntouched},

	{PhasePreflight, EventChecked, map[Kind]Phase{
		KindRecreate: PhaseDraining, KindDelete: PhaseDraining, KindDrain: PhaseDraining, KindCreate: PhaseCreating,
	}, GuardNone},
	{PhasePreflight, EventRestore, all(PhaseRestoring, KindRecreate, KindDelete, KindDrain), GuardBeforeIntent},
	{PhasePreflight, EventFail, all(PhaseFailed, KindRecreate, KindDelete, KindCreate, KindDrain), GuardUntouched},
	{PhasePreflight, EventCancel, all(PhaseCanceled, KindRecreate, KindDelete, KindCreate, KindDrain), GuardUntouched},

	{PhaseDraining, EventDrained, map[Kind]Phase{
		KindRecreate: PhaseDeleting, KindDelete: PhaseDeleting, KindDrain: PhaseSucceeded,
	}, GuardNone},
	{PhaseDraining, EventRestore, all(PhaseRestoring, KindRecreate, KindDelete, KindDrain), GuardBeforeIntent},
	{PhaseDraining, EventFail, all(PhaseFailed, KindRecreate, KindDelete, KindDrain), GuardUntouched},
	{PhaseDraining, EventCancel, all(PhaseCanceled, KindRecreate, KindDelete, KindDrain), GuardUntouched},
	{PhaseDraining, EventReplaced, all(PhaseFailed, KindRecreate, KindDelete, KindDrain), GuardBeforeIntent},

	{PhaseDeleting, EventProofLost, all(PhaseDraining, KindRecreate, KindDelete), GuardNone},
	{PhaseDeleting, EventDeleted, map[Kind]Phase{
		KindRecreate: PhaseCreating, KindDelete: PhaseSucceeded,
	}, GuardNone},
	{PhaseDeleting, EventRestore, all(PhaseRestoring, KindRecreate, KindDelete), GuardBeforeIntent},
	{PhaseDeleting, EventFail, all(PhaseFailed, KindRecreate, KindDelete), GuardUntouched},
	{PhaseDeleting, EventCancel, all(PhaseCanceled, KindRecreate, KindDelete), GuardUntouched},
	{PhaseDeleting, EventReplaced, all(PhaseFailed, KindRecreate, KindDelete), GuardBeforeIntent},

	{PhaseCreating, EventCreated, all(PhaseVerifying, KindRecreate, KindCreate), GuardNone},
	{PhaseCreating, EventFail, all(PhaseFailed, KindCreate), GuardNone},
	{PhaseCreating, EventCancel, all(PhaseCanceled, KindCreate), GuardNone},

	{PhaseVerifying, EventVerified, all(PhaseSucceeded, KindRecreate, KindCreate), GuardNone},
	{PhaseVerifying, EventFail, all(PhaseFailed, KindRecreate, KindCreate), GuardNone},

	{PhaseRestoring, EventRestored, all(PhaseSucceeded, KindUndrain), GuardNone},
	{PhaseRestoring, EventFail, all(PhaseFailed, KindRecreate, KindDelete, KindDrain, KindUndrain), GuardNone},
	{PhaseRestoring, EventCancel, all(PhaseCanceled, KindRecreate, KindDelete, KindDrain, KindUndrain), GuardNone},
	{PhaseRestoring, EventReplaced, all(PhaseFailed, KindRecreate, KindDelete, KindDrain, KindUndrain), GuardNone},
}

// Transition is the only place that says where an operation goes: no other
// code sets a phase. Errors: CodeConflict for a move that the table forbids.
func Transition(at Position, event Event) (Phase, error) {
	for _, a := range phaseTable {
		next, ok := a.To[at.Kind]
		if a.From != at.Phase || a.Event != event || !ok {
			continue
		}
		if a.Guard == GuardBeforeIntent && at.Intent {
			return "", Errorf(CodeConflict, "the delete is committed: there is no way back from %s", at.Phase)
		}
		if a.Guard == GuardUntouched && (at.Intent || at.Stopping) {
			return "", Errorf(CodeConflict, "intake was stopped: %s cannot end without restoring it", at.Phase)
		}
		return next, nil
	}
	return "", Errorf(CodeConflict, "an operation of kind %s in %s knows no %s", at.Kind, at.Phase, event)
}

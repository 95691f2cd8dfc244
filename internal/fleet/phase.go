package fleet

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

// arrow is one line of the phase table.
type arrow struct {
	from  Phase
	event Event
	to    func(Kind) Phase // "" = not for this kind
	guard guard
}

// guard limits an arrow to operations that have, or have not yet, stopped
// intake or committed the delete.
type guard string

const (
	anyTime      guard = ""
	beforeIntent guard = "before the delete intent"
	untouched    guard = "before intake was stopped"
)

func to(p Phase) func(Kind) Phase { return func(Kind) Phase { return p } }

func only(p Phase, kinds ...Kind) func(Kind) Phase {
	return func(k Kind) Phase {
		for _, kind := range kinds {
			if k == kind {
				return p
			}
		}
		return ""
	}
}

// phaseTable is the life of one VM (design.md section 5). The table in
// docs/reference/phases.md is generated from it.
var phaseTable = []arrow{
	{PhaseQueued, EventAdmitted, func(k Kind) Phase {
		if k == KindUndrain {
			return PhaseRestoring
		}
		return PhasePreflight
	}, anyTime},
	{PhaseQueued, EventFail, to(PhaseFailed), untouched},
	{PhaseQueued, EventCancel, to(PhaseCanceled), untouched},

	{PhasePreflight, EventChecked, func(k Kind) Phase {
		if k == KindCreate {
			return PhaseCreating
		}
		return PhaseDraining
	}, anyTime},
	{PhasePreflight, EventFail, to(PhaseFailed), untouched},
	{PhasePreflight, EventCancel, to(PhaseCanceled), untouched},

	{PhaseDraining, EventDrained, func(k Kind) Phase {
		if k == KindDrain {
			return PhaseSucceeded
		}
		return PhaseDeleting
	}, anyTime},
	{PhaseDraining, EventRestore, to(PhaseRestoring), beforeIntent},
	{PhaseDraining, EventFail, to(PhaseFailed), untouched},
	{PhaseDraining, EventCancel, to(PhaseCanceled), untouched},
	{PhaseDraining, EventReplaced, to(PhaseFailed), beforeIntent},

	{PhaseDeleting, EventProofLost, only(PhaseDraining, KindRecreate, KindDelete), anyTime},
	{PhaseDeleting, EventDeleted, func(k Kind) Phase {
		if k == KindRecreate {
			return PhaseCreating
		}
		return PhaseSucceeded
	}, anyTime},
	{PhaseDeleting, EventRestore, to(PhaseRestoring), beforeIntent},
	{PhaseDeleting, EventFail, to(PhaseFailed), untouched},
	{PhaseDeleting, EventCancel, to(PhaseCanceled), untouched},
	{PhaseDeleting, EventReplaced, to(PhaseFailed), beforeIntent},

	{PhaseCreating, EventCreated, to(PhaseVerifying), anyTime},
	{PhaseCreating, EventFail, only(PhaseFailed, KindCreate), anyTime},
	{PhaseCreating, EventCancel, only(PhaseCanceled, KindCreate), anyTime},

	{PhaseVerifying, EventVerified, to(PhaseSucceeded), anyTime},
	{PhaseVerifying, EventFail, to(PhaseFailed), anyTime},

	{PhaseRestoring, EventRestored, only(PhaseSucceeded, KindUndrain), anyTime},
	{PhaseRestoring, EventFail, to(PhaseFailed), anyTime},
	{PhaseRestoring, EventCancel, to(PhaseCanceled), anyTime},
	{PhaseRestoring, EventReplaced, to(PhaseFailed), anyTime},
}

// Transition is the only place that says where an operation goes: no other
// code sets a phase. Errors: CodeConflict for a move that the table forbids.
func Transition(at Position, event Event) (Phase, error) {
	for _, a := range phaseTable {
		if a.from != at.Phase || a.event != event {
			continue
		}
		next := a.to(at.Kind)
		if next == "" {
			break
		}
		if a.guard == beforeIntent && at.Intent {
			return "", Errorf(CodeConflict, "the delete is committed: there is no way back from %s", at.Phase)
		}
		if a.guard == untouched && (at.Intent || at.Stopping) {
			return "", Errorf(CodeConflict, "intake was stopped: %s cannot end without restoring it", at.Phase)
		}
		return next, nil
	}
	return "", Errorf(CodeConflict, "a %s in %s knows no %s", at.Kind, at.Phase, event)
}

package fleet

import (
	"slices"
	"testing"
)

// life is design.md section 5, one line per kind: where the work leads if
// nothing goes wrong.
var life = map[Kind][]Phase{
	KindRecreate: {PhaseQueued, PhasePreflight, PhaseDraining, PhaseDeleting, PhaseCreating, PhaseVerifying, PhaseSucceeded},
	KindDelete:   {PhaseQueued, PhasePreflight, PhaseDraining, PhaseDeleting, PhaseSucceeded},
	KindCreate:   {PhaseQueued, PhasePreflight, PhaseCreating, PhaseVerifying, PhaseSucceeded},
	KindDrain:    {PhaseQueued, PhasePreflight, PhaseDraining, PhaseSucceeded},
	KindUndrain:  {PhaseQueued, PhaseRestoring, PhaseSucceeded},
}

// done is the event that says that a phase's work is done.
var done = map[Phase]Event{
	PhaseQueued: EventAdmitted, PhasePreflight: EventChecked, PhaseDraining: EventDrained, PhaseDeleting: EventDeleted,
	PhaseCreating: EventCreated, PhaseVerifying: EventVerified, PhaseRestoring: EventRestored,
}

// lawful says where a position may go at an event; "" = nowhere.
func lawful(at Position, event Event) Phase {
	path := life[at.Kind]
	i := slices.Index(path, at.Phase)
	restoring := at.Phase == PhaseRestoring && at.Kind.restores()
	if at.Phase.Finished() || (i < 0 && !restoring) {
		return ""
	}
	if i >= 0 && event == done[at.Phase] {
		return path[i+1]
	}
	oldVM := at.Phase == PhaseDraining || at.Phase == PhaseDeleting
	start := at.Phase == PhaseQueued || at.Phase == PhasePreflight
	untouched := !at.Intent && !at.Stopping
	ends := restoring || ((start || oldVM) && untouched) || (at.Phase == PhaseCreating && at.Kind == KindCreate)
	switch {
	case event == EventProofLost && at.Phase == PhaseDeleting:
		return PhaseDraining
	case event == EventRestore && (oldVM || (start && at.Kind.restores())) && !at.Intent:
		return PhaseRestoring
	case event == EventReplaced && (restoring || (oldVM && !at.Intent)):
		return PhaseFailed
	case event == EventFail && (ends || at.Phase == PhaseVerifying):
		return PhaseFailed
	case event == EventCancel && ends:
		return PhaseCanceled
	default:
		return ""
	}
}

func (k Kind) restores() bool { return k.Drains() || k == KindUndrain }

func positions() []Position {
	var list []Position
	for _, kind := range Kinds() {
		for _, phase := range Phases() {
			for _, intent := range bools {
				for _, stopping := range bools {
					list = append(list, Position{kind, phase, intent, stopping})
				}
			}
		}
	}
	return list
}

// Case T25: only a drain that has ended leads to the delete.
func TestTransitionIsTheLifeOfOneVMOverTheWholeProduct(t *testing.T) {
	combinations := 0
	for _, at := range positions() {
		for _, event := range Events() {
			combinations++
			got, err := Transition(at, event)
			if want := lawful(at, event); got != want {
				t.Errorf("%+v at %s: got %q (%v), want %q", at, event, got, err, want)
			}
			if (err == nil) != (got != "") || (err != nil && CodeOf(err) != CodeConflict) {
				t.Errorf("%+v at %s: phase %q with error %v", at, event, got, err)
			}
		}
	}
	t.Logf("Transition: %d combinations", combinations)
}

// Case T47: a forced write moved a record backwards from deleting.
func TestNoWayBackAfterTheIntent(t *testing.T) {
	for _, at := range positions() {
		if !at.Intent || at.Phase == PhaseRestoring || !slices.Contains(life[at.Kind], at.Phase) || !at.Kind.Deletes() {
			continue
		}
		for _, event := range Events() {
			next, err := Transition(at, event)
			if err != nil {
				continue
			}
			if next == PhaseRestoring || next == PhaseCanceled {
				t.Errorf("%+v at %s: went to %s", at, event, next)
			}
			if next == PhaseFailed && at.Phase != PhaseVerifying {
				t.Errorf("%+v at %s: failed with the old VM perhaps gone and no new one", at, event)
			}
		}
	}
}

func TestPhasesOnlyRise(t *testing.T) {
	rank := func(p Phase) int { return slices.Index(Phases(), p) }
	for _, at := range positions() {
		for _, event := range Events() {
			next, err := Transition(at, event)
			if err != nil || event == EventProofLost {
				continue
			}
			if rank(next) <= rank(at.Phase) {
				t.Errorf("%+v at %s: went back to %s", at, event, next)
			}
		}
	}
}

func TestStoppedIntakeIsNeverLeftBehind(t *testing.T) {
	for _, at := range positions() {
		if !at.Stopping || (at.Phase != PhaseDraining && at.Phase != PhaseDeleting) {
			continue
		}
		for _, event := range []Event{EventFail, EventCancel} {
			if next, err := Transition(at, event); err == nil {
				t.Errorf("%+v at %s: ended in %s without restoring", at, event, next)
			}
		}
	}
}

func TestEveryUnfinishedPhaseHasAWayToAnEnd(t *testing.T) {
	for _, at := range positions() {
		if at.Phase.Finished() || !slices.Contains(append(life[at.Kind], PhaseRestoring), at.Phase) || (at.Phase == PhaseRestoring && !at.Kind.restores()) {
			continue
		}
		if !reaches(at, map[Position]bool{}) {
			t.Errorf("%+v: no way to an end", at)
		}
	}
}

func reaches(at Position, seen map[Position]bool) bool {
	if at.Phase.Finished() {
		return true
	}
	if seen[at] {
		return false
	}
	seen[at] = true
	for _, event := range Events() {
		next, err := Transition(at, event)
		if err != nil {
			continue
		}
		to := at
		to.Phase = next
		if reaches(to, seen) {
			return true
		}
	}
	return false
}

func TestRefusedMoveSaysWhy(t *testing.T) {
	for _, test := range []struct {
		at    Position
		event Event
		want  string
	}{
		{Position{KindRecreate, PhaseDeleting, true, true}, EventRestore, "the delete is committed: there is no way back from deleting"},
		{Position{KindDrain, PhaseDraining, false, true}, EventFail, "intake was stopped: draining cannot end without restoring it"},
		{Position{KindDrain, PhaseSucceeded, false, false}, EventCancel, "an operation of kind drain in succeeded knows no cancel"},
		{Position{KindUndrain, PhaseDraining, false, false}, EventDrained, "an operation of kind undrain in draining knows no drained"},
	} {
		if _, err := Transition(test.at, test.event); err == nil || err.Error() != test.want {
			t.Errorf("%+v at %s: got %v, want %q", test.at, test.event, err, test.want)
		}
	}
}

func TestPhaseTableIsACopy(t *testing.T) {
	PhaseTable()[0].To[KindDrain] = PhaseSucceeded
	if next, err := Transition(Position{Kind: KindDrain, Phase: PhaseQueued}, EventAdmitted); next != PhasePreflight {
		t.Errorf("the table was changed from outside: %s, %v", next, err)
	}
}

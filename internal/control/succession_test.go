package control_test

import (
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Whoever takes over a VM answers for its intake from the first moment: ended
// before its own preflight, it has to give it back.
func TestARecreateThatTakesOverARestoreAnswersForTheIntake(t *testing.T) {
	w := newWorld(t)
	id := w.asked("runner-01")
	w.set(id, func(op *fleet.Operation) {
		op.Phase, op.Order.Verb, op.Restore.Event = fleet.PhaseRestoring, fleet.OrderStop, fleet.EventFail
		op.Old.Instance, op.WasDown, op.Drain.StoppedAt = "i-1", true, w.now
	})
	answers, err := w.Ask(t.Context(), recreate("runner-01"))
	if err != nil || answers[0].Attached {
		t.Fatalf("%+v, %v", answers, err)
	}
	op := answers[0].Operation
	if op.Order.Verb != fleet.OrderStop || op.Old.Instance != "i-1" || !op.WasDown {
		t.Errorf("%+v", op)
	}
	if !op.Drain.StoppedAt.IsZero() {
		t.Error("its own drain's cap must count from its own stop")
	}
	if next, err := fleet.Transition(op.Position(), fleet.EventRestore); next != fleet.PhaseRestoring {
		t.Errorf("from queued there is no way back: %v", err)
	}
}

// An undrain that its host refuses goes on for hours, and cannot be canceled:
// the one that may take over takes its place.
func TestAnUndrainThatTakesOverReplacesOneThatMayNot(t *testing.T) {
	w := newWorld(t)
	undrain := recreate("runner-01")
	undrain.Kind = fleet.KindUndrain
	first, err := w.Ask(t.Context(), undrain)
	if err != nil {
		t.Fatal(err)
	}
	id := first[0].Operation.ID
	w.set(id, func(op *fleet.Operation) { op.Phase = fleet.PhaseRestoring })
	if again, err := w.Ask(t.Context(), undrain); err != nil || !again[0].Attached {
		t.Fatalf("the same once more: %+v, %v", again, err)
	}
	undrain.TakeOver = true
	second, err := w.Ask(t.Context(), undrain)
	if err != nil || second[0].Attached || second[0].Operation.ID == id {
		t.Fatalf("with take-over: %+v, %v", second, err)
	}
	if third, err := w.Ask(t.Context(), undrain); err != nil || !third[0].Attached {
		t.Errorf("with take-over once more: %+v, %v", third, err)
	}
}

// Seed 28556 of the worlds: the successor's preflight sees a runner that is
// stopped already, and must not call it never joined.
func TestThatARunnerWasSeenIsHandedOnToTheSuccessor(t *testing.T) {
	w := newWorld(t)
	id := w.asked("runner-01")
	w.set(id, func(op *fleet.Operation) {
		op.Phase, op.Order.Verb, op.Restore.Event = fleet.PhaseRestoring, fleet.OrderStop, fleet.EventFail
		op.Old.Instance, op.SeenRun = "i-1", true
	})
	next := w.asked("runner-01")
	op, err := w.store.Operation(t.Context(), next)
	if err != nil || next == id || !op.SeenRun || op.Old.Instance != "i-1" {
		t.Errorf("%+v, %v", op, err)
	}
}

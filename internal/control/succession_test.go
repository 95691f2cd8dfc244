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

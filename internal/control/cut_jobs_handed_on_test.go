package control_test

import (
	"slices"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Seed 486997 of the worlds: a job that was recorded as cut may go on, and only
// who gives intake back sees it.
func TestAnUndrainIsToldWhichJobsWereToBeCut(t *testing.T) {
	w := newWorld(t)
	doomed, ordered := []fleet.Job{{ID: 42}}, w.now.Add(-time.Minute)
	w.set(w.asked("runner-01"), func(op *fleet.Operation) {
		op.Phase, op.Order.Verb, op.Old.Instance, op.CutJobs = fleet.PhaseDraining, fleet.OrderEnd, "i-1", doomed
		op.Drain.StoppedAt, op.Drain.EndOrderedAt = ordered, ordered
	})
	undrain := recreate("runner-01")
	undrain.Kind = fleet.KindUndrain
	answers, err := w.Ask(t.Context(), undrain)
	if err != nil {
		t.Fatal(err)
	}
	op := answers[0].Operation
	same := func(a, b fleet.Job) bool { return a.ID == b.ID }
	if !slices.EqualFunc(op.CutJobs, doomed, same) || !op.Drain.EndOrderedAt.Equal(ordered) || !op.Drain.StoppedAt.Equal(ordered) {
		t.Errorf("cut %v, ordered at %s, stopped at %s", op.CutJobs, op.Drain.EndOrderedAt, op.Drain.StoppedAt)
	}
}

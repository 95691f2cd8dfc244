package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// cutOffAtTheCap is a world in which a drain's host goes out of reach just when
// its job, which runs for three hours, is to be ended.
func cutOffAtTheCap(policy fleet.Unreachable) (w *enginetest.World, id string) {
	w = enginetest.New("a")
	w.Spec.Drain.Unreachable = policy
	w.Job("a", 42, 3*time.Hour)
	id = w.Ask(fleet.KindDrain, "a")
	once(w, "commit:after", func() bool { return w.Op(id).Drain.Waiver != nil }, func() { w.VM("a").Cutoff = true })
	return w, id
}

// untilTheCap runs the world until the jobs are to be ended.
func untilTheCap(w *enginetest.World, id string) {
	for w.Op(id).Drain.Waiver == nil {
		w.Run(time.Second)
	}
}

// Seed 431331 of the worlds: nobody knows whether the runner has ended.
func TestADrainWhoseHostIsOutOfReachAtTheCapIsNotDone(t *testing.T) {
	w, id := cutOffAtTheCap(fleet.UnreachableFail)
	untilTheCap(w, id)
	w.Run(9 * time.Minute)
	op := w.Op(id)
	if op.Phase != fleet.PhaseDraining || !strings.Contains(op.Waiting, "could not be told to end its jobs") || op.Then != "the drain fails" {
		t.Fatalf("%s, waits for %q, then %q\n%s", op.Phase, op.Waiting, op.Then, w.Story())
	}
	if until := op.Until.Sub(op.Drain.Waiver.At); until < 10*time.Minute || until > 10*time.Minute+5*time.Second {
		t.Errorf("it waits until %s after the cap", until)
	}
	w.Run(2 * time.Minute)
	if op = w.Op(id); op.Phase != fleet.PhaseRestoring {
		t.Fatalf("%s past the reach deadline\n%s", op.Phase, w.Story())
	}
	recorded(t, w, id, 42)
	w.VM("a").Cutoff = false
	w.Run(time.Minute) // its runner goes on, and so does the job
	recorded(t, w, id)
	w.Run(3 * time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "could not be told to end its jobs")
	if !w.VM("a").Serving() || len(w.Cut) != 0 {
		t.Errorf("cut %v\n%s", w.Cut, w.Story())
	}
	says(t, w, "[note] job 42 (https://gitlab.example/acme/app/-/jobs/42) on f/a was not cut after all")
}

func TestADrainWhoseHostIsOutOfReachAtTheCapIsDoneIfThePolicySaysSo(t *testing.T) {
	w, id := cutOffAtTheCap(fleet.UnreachableProceed)
	untilTheCap(w, id)
	w.Run(9 * time.Minute)
	if op := w.Op(id); op.Phase != fleet.PhaseDraining || !strings.HasPrefix(op.Then, "the drain is done without knowing") {
		t.Fatalf("%s, then %q\n%s", op.Phase, op.Then, w.Story())
	}
	w.Run(2 * time.Minute)
	ended(t, w, id, fleet.PhaseSucceeded, "")
	says(t, w, "[warning] the runner could not be told to end its jobs: connection refused")
}

// A host that answers in time is told.
func TestADrainWhoseHostAnswersInTimeEndsItsJobs(t *testing.T) {
	w, id := cutOffAtTheCap(fleet.UnreachableFail)
	untilTheCap(w, id)
	w.Run(9 * time.Minute)
	w.VM("a").Cutoff = false
	w.Run(time.Minute)
	ended(t, w, id, fleet.PhaseSucceeded, "")
	if !slices.Equal(w.Cut, []int64{42}) || strings.Contains(w.Story(), "after all") {
		t.Errorf("cut %v\n%s", w.Cut, w.Story())
	}
	recorded(t, w, id, 42)
}

// endsSlowly is a host whose runner hears the order to end its jobs, or does not,
// and then needs a while. What it has heard, nobody is told.
type endsSlowly struct {
	engine.Hosts
	w     *enginetest.World
	hears func() bool
}

func (e endsSlowly) EndJobs(context.Context, engine.Target, fleet.Order) error {
	if vm := e.w.VM("a"); e.hears() {
		vm.BusyUntil = e.w.Now().Add(10 * time.Second)
		e.w.Cut = append(e.w.Cut, vm.Busy)
	}
	return fleet.Errorf(fleet.CodeUnavailable, "the answer was lost")
}

// The answer to the order is lost, and the drain is canceled in that moment: only
// when the grace is over can it be told what the runner has heard. Seed 431331 of
// the worlds.
func TestOnTheWayBackAJobIsTakenBackOnlyIfItOutlivesTheGrace(t *testing.T) {
	for name, heard := range map[string]bool{"heard": true, "not heard": false} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a")
			w.With = func(f *engine.Fleet) { f.Hosts = endsSlowly{f.Hosts, w, func() bool { return heard }} }
			w.Job("a", 42, 30*time.Minute)
			id := w.Ask(fleet.KindDrain, "a")
			once(w, "commit:after", func() bool { return !w.Op(id).Drain.EndedAt.IsZero() }, func() { cancel(t, w, id) })
			for w.Op(id).Phase != fleet.PhaseRestoring {
				w.Run(time.Second)
			}
			w.Run(time.Hour)
			ended(t, w, id, fleet.PhaseCanceled, "")
			back := slices.IndexFunc(w.Store.Facts, func(f fleet.Fact) bool { return strings.HasSuffix(f.Text, "was not cut after all") })
			if heard {
				recorded(t, w, id, 42)
			} else {
				recorded(t, w, id)
			}
			if (back < 0) != heard || !w.VM("a").Serving() {
				t.Fatalf("taken back: %t\n%s", back >= 0, w.Story())
			}
			if op := w.Op(id); !heard && w.Store.Facts[back].At.Sub(op.Drain.EndOrderedAt) <= fleet.EndGrace {
				t.Errorf("taken back within the grace\n%s", w.Story())
			}
		})
	}
}

// Seed 414265 of the worlds: the runner does not end, whatever it was told.
func TestADrainWhoseRunnerDoesNotEndIsToldAgain(t *testing.T) {
	w, orders := enginetest.New("a"), 0
	hears := func() bool { orders++; return orders == 3 }
	w.With = func(f *engine.Fleet) { f.Hosts = endsSlowly{f.Hosts, w, hears} }
	w.Job("a", 42, 3*time.Hour)
	id := w.Ask(fleet.KindDrain, "a")
	for !w.Op(id).Phase.Finished() {
		w.Run(time.Second)
	}
	op := ended(t, w, id, fleet.PhaseSucceeded, "")
	if took := op.FinishedAt.Sub(op.Drain.Waiver.At); orders != 3 || w.VM("a").Unit.MainPID != 0 || took < 2*fleet.EndGrace {
		t.Errorf("told %d times in %s\n%s", orders, took, w.Story())
	}
	recorded(t, w, id, 42)
}

// Each time that it is lost it has the whole deadline.
func TestADrainWhoseHostComesAndGoesAtTheCapGoesOn(t *testing.T) {
	w, id := cutOffAtTheCap(fleet.UnreachableFail)
	refuse(w, "end", fleet.CodeForbidden)
	untilTheCap(w, id)
	for range 2 {
		w.VM("a").Cutoff = true
		w.Run(9 * time.Minute)
		w.VM("a").Cutoff = false
		w.Run(time.Minute)
	}
	if op := w.Op(id); op.Phase != fleet.PhaseDraining || w.Calls["end"] < 2 {
		t.Errorf("%s, told %d times\n%s", op.Phase, w.Calls["end"], w.Story())
	}
}

package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// What the simulation (test/worlds) found first, each by hand.

// Promise 3: an attempt that was called failed may be carried out all the same,
// when the operation has long ended.
func TestACreateThatSucceedsAfterItsOperationHasEndedIsRemoved(t *testing.T) {
	w := enginetest.New("a")
	w.Refuse["create"] = []error{fleet.Errorf(fleet.CodeUnavailable, "504 gateway timeout")}
	id := w.Ask(fleet.KindRecreate, "a")
	for w.Op(id).Phase != fleet.PhaseSucceeded {
		w.Run(time.Second)
	}
	kept, late := w.Op(id).Create.New.Instance, w.Twin("a", id)
	w.JobOn(late, 7, 2*time.Minute)
	w.Run(3 * time.Hour)
	live := w.Living("a")
	if len(live) != 1 || live[0].ID != kept || len(w.Cut) > 0 {
		t.Fatalf("%d VMs are left, cut %v\n%s", len(live), w.Cut, w.Story())
	}
}

// What a later operation has adopted is that operation's.
func TestALateCreateThatWasAdoptedStays(t *testing.T) {
	w := enginetest.New("a")
	w.Refuse["create"] = []error{fleet.Errorf(fleet.CodeUnavailable, "504 gateway timeout")}
	id := w.Ask(fleet.KindRecreate, "a")
	for w.Op(id).Phase != fleet.PhaseSucceeded {
		w.Run(time.Second)
	}
	again := w.Ask(fleet.KindRecreate, "a")
	late := ""
	w.Fences["create"] = func() { late = w.Twin("a", id) }
	w.Run(3 * time.Hour)
	if live := w.Living("a"); len(live) != 1 || live[0].ID != late || w.Op(again).Phase != fleet.PhaseSucceeded {
		t.Fatalf("%d VMs are left, %s\n%s", len(live), w.Op(again).Phase, w.Story())
	}
}

// Promise 2: nobody's request lets a VM go whose shutdown ends the fleet's token.
func TestASkippedDrainRefusesAHostThatUnregistersTheToken(t *testing.T) {
	w := enginetest.New("a")
	w.VM("a").Unregisters = true
	id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.NoDrain = true })
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "unregister")
	if len(w.Living("a")) != 1 {
		t.Error("it was deleted")
	}
}

func TestARunnerThatEndsDuringTheReleaseIsStartedAgain(t *testing.T) {
	w := enginetest.New("a")
	drain := w.Ask(fleet.KindDrain, "a")
	w.Run(10 * time.Minute)
	w.Fences["release"] = func() {
		vm := w.VM("a")
		vm.Unit.ActiveState, vm.Unit.Result, vm.Unit.MainPID = "failed", "signal", 0
	}
	id := w.Ask(fleet.KindUndrain, "a")
	w.Run(10 * time.Minute)
	if w.Op(drain).Phase != fleet.PhaseSucceeded || w.Op(id).Phase != fleet.PhaseSucceeded || !w.VM("a").Serving() {
		t.Fatalf("%s\n%s", w.Op(id).Phase, w.Story())
	}
}

// A start that an earlier operation has queued would bring the runner back as
// soon as its jobs were ended.
func TestAQueuedStartIsCalledOffBeforeJobsAreEnded(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 1, time.Hour)
	id := w.Ask(fleet.KindDrain, "a", func(r *fleet.Request) { r.Policy.OnOverrun = fleet.OverrunAbort })
	for !slices.ContainsFunc(w.Journal, func(line string) bool { return strings.Contains(line, "start a") }) {
		w.Run(time.Second)
	}
	op := w.Op(id)
	op.Phase, op.FinishedAt = fleet.PhaseFailed, w.Now() // as control ends it for the delete
	if err := w.Store.UpdateOperation(t.Context(), op, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.NoDrain = true })
	w.Run(10 * time.Minute)
	story := w.Story()
	end := strings.LastIndex(story, " end a ")
	start := strings.LastIndex(story, " start a ")
	stop := strings.LastIndex(story, " stop a ")
	if end < 0 || stop < start || end < stop || len(w.Living("a")) != 0 {
		t.Fatalf("start at %d, stop at %d, end at %d\n%s", start, stop, end, story)
	}
}

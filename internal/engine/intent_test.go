package engine_test

import (
	"slices"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// What an act needs is written before the act: seen in the store at the moment
// of each call, where a crash afterwards would have to find it.

// atCalls lets look see the stored operation just before each call of a name.
func atCalls(w *enginetest.World, id string, look map[string]func(*fleet.Operation)) {
	w.Points.At = func(point string) {
		if see := look[point]; see != nil {
			see(w.Op(id))
		}
	}
}

func TestTheOrderAndTheIntentAndTheTokenAreStoredBeforeTheirCalls(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 1, time.Minute)
	w.Refuse["create"] = []error{fleet.Errorf(fleet.CodeStockout, "none left")}
	old := w.VM("a").ID
	id, seen := w.Ask(fleet.KindRecreate, "a"), map[string]int{}
	atCalls(w, id, map[string]func(*fleet.Operation){
		"stop:before": func(op *fleet.Operation) {
			seen["stop"]++
			if op.Order.Verb != fleet.OrderStop || op.Order.Number <= w.VM("a").Number || op.Drain.OrderedAt.IsZero() {
				t.Errorf("stop: the row has %+v, ordered at %s", op.Order, op.Drain.OrderedAt)
			}
		},
		"delete:before": func(op *fleet.Operation) {
			seen["delete"]++
			if op.Delete.IntentAt.IsZero() || op.Delete.Attempt != 1 || op.Delete.ProofAt.IsZero() {
				t.Errorf("delete: the row has %+v", op.Delete)
			}
		},
		"create:before": func(op *fleet.Operation) {
			seen["create"]++
			if op.Create.Token == "" || op.Create.Token != fleet.RequestToken(id, "create", op.Create.Attempt) || len(op.Create.Prepared.Spec) == 0 {
				t.Errorf("create: the row has %+v", op.Create)
			}
		},
	})
	w.Run(time.Hour)
	replaced(t, w, id, "a", old)
	if len(seen) != 3 {
		t.Errorf("only these were called: %v", seen)
	}
}

// A provider answers a repeated token with what became of the first attempt.
func TestEachAttemptAtACreateHasATokenOfItsOwn(t *testing.T) {
	w := enginetest.New("a")
	for range 5 {
		w.Refuse["create"] = append(w.Refuse["create"], fleet.Errorf(fleet.CodeStockout, "none left"))
	}
	var tokens []string
	id := w.Ask(fleet.KindRecreate, "a")
	failed := 0
	atCalls(w, id, map[string]func(*fleet.Operation){"create:before": func(op *fleet.Operation) {
		if failed++; failed <= 6 {
			tokens = append(tokens, op.Create.Token)
		}
	}})
	w.Run(time.Hour)
	slices.Sort(tokens)
	if got := len(slices.Compact(tokens)); got != 6 {
		t.Errorf("six attempts had %d tokens", got)
	}
}

// Promise 8: a stop that arrives late is known by its number.
func TestEachOrderToAHostHasAHigherNumberThanTheLast(t *testing.T) {
	w := enginetest.New("a")
	var numbers []int64
	note := func(*fleet.Operation) { numbers = append(numbers, w.VM("a").Number) }
	for _, kind := range []fleet.Kind{fleet.KindDrain, fleet.KindUndrain, fleet.KindDrain} {
		id := w.Ask(kind, "a")
		atCalls(w, id, map[string]func(*fleet.Operation){"stop:after": note, "start:after": note, "release:after": note})
		w.Run(time.Minute)
		ended(t, w, id, fleet.PhaseSucceeded, "")
	}
	if len(numbers) < 4 || !slices.IsSorted(numbers) || len(slices.Compact(slices.Clone(numbers))) != len(numbers) {
		t.Errorf("the host was given the numbers %v", numbers)
	}
}

// Earlier the reload would put the unit's own stop timeout back, and end the job.
func TestTheDropInsRemovalIsNotAskedForWhileTheOldProcessRuns(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 1, 5*time.Minute)
	id := w.Ask(fleet.KindDrain, "a")
	w.Run(time.Minute)
	cancel(t, w, id)
	w.Run(2 * time.Minute)
	if w.Calls["start"] == 0 || w.Calls["release"] != 0 {
		t.Errorf("%d starts, %d releases\n%s", w.Calls["start"], w.Calls["release"], w.Story())
	}
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseCanceled, "")
}

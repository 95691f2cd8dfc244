package storetest

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func insertedReadsBack(_ *testing.T, w *world) {
	op := w.operation("a", fleet.KindRecreate)
	op.Create.Prepared = fleet.Prepared{Image: "img", Spec: []byte(`{"zone":"b"}`)}
	w.same(*w.store(op), op)

	facts := w.facts(op.ID)
	if len(facts) != 1 || facts[0].Kind != fleet.FactAsked || facts[0].VM != "a" || !facts[0].At.Equal(op.CreatedAt) {
		w.Fatalf("the fact of asking: %+v", facts)
	}
	for _, word := range []string{"recreate", "ann", "cli", "new image"} {
		if !strings.Contains(facts[0].Text, word) {
			w.Errorf("%q does not say %q", facts[0].Text, word)
		}
	}
}

func oneUnfinishedPerVM(_ *testing.T, w *world) {
	first := w.ask("a", fleet.KindRecreate)
	got := w.insert(control.Key{}, w.operation("a", fleet.KindDelete), w.operation("b", fleet.KindDelete))
	if got[0].New || got[0].Operation.ID != first.ID {
		w.Fatalf("a second operation on the VM: %+v", got[0])
	}
	if !got[1].New {
		w.Fatalf("the other VM has none, but: %+v", got[1])
	}
	if n := len(w.facts(first.ID)); n != 1 {
		w.Fatalf("%d facts of the first", n)
	}
}

func finishedMakesRoom(_ *testing.T, w *world) {
	w.finish(w.ask("a", fleet.KindRecreate))
	w.ask("a", fleet.KindRecreate)
}

func refusedIsNotStored(_ *testing.T, w *world) {
	first := w.ask("a", fleet.KindRecreate)
	refusal := fleet.Errorf(fleet.CodeConflict, "no")
	ops := []fleet.Operation{w.operation("b", fleet.KindDelete), w.operation("a", fleet.KindDelete)}
	var seen []control.Inserted
	_, err := w.Insert(w.ctx(), ops, control.Key{Value: "k", Digest: "d"}, func(list []control.Inserted) error {
		seen = list
		return refusal
	})
	if !errors.Is(err, refusal) {
		w.Fatalf("got %v, want the refusal", err)
	}
	if len(seen) != 2 || !seen[0].New || seen[1].Operation.ID != first.ID {
		w.Fatalf("accept was shown %+v", seen)
	}
	_, err = w.Operation(w.ctx(), ops[0].ID)
	w.mustFail(err, fleet.CodeNotFound)
	if all := w.facts(""); len(all) != 1 {
		w.Fatalf("facts of what was refused: %+v", all)
	}
}

func repeatedKey(_ *testing.T, w *world) {
	attached := w.ask("b", fleet.KindRecreate)
	key := control.Key{Value: "k", Digest: "d"}
	first := w.insert(key, w.operation("a", fleet.KindRecreate), w.operation("b", fleet.KindRecreate))
	op := first[0].Operation
	w.finish(&op)

	again := w.insert(key, w.operation("a", fleet.KindRecreate), w.operation("b", fleet.KindRecreate))
	if len(again) != 2 || again[0].Operation.ID != op.ID || !again[0].New || again[1].Operation.ID != attached.ID || again[1].New {
		w.Fatalf("the key yields %+v", again)
	}
	if again[0].Operation.Phase != fleet.PhaseSucceeded {
		w.Fatalf("the operation is shown as it was then: %s", again[0].Operation.Phase)
	}
	if ops, err := w.Operations(w.ctx(), control.Filter{}); err != nil || len(ops) != 2 {
		w.Fatalf("%d operations, %v", len(ops), err)
	}
}

func keyForAnotherRequest(_ *testing.T, w *world) {
	w.insert(control.Key{Value: "k", Digest: "d"}, w.operation("a", fleet.KindRecreate))
	_, err := w.Insert(w.ctx(), []fleet.Operation{w.operation("b", fleet.KindRecreate)}, control.Key{Value: "k", Digest: "e"}, nil)
	w.mustFail(err, fleet.CodeConflict)
	if !strings.Contains(err.Error(), `"k"`) {
		w.Errorf("%q does not name the key", err)
	}
}

func keyForgotten(_ *testing.T, w *world) {
	key := control.Key{Value: "k", Digest: "d"}
	old := w.insert(key, w.operation("a", fleet.KindRecreate))[0].Operation
	w.finish(&old)
	w.clock.Advance(7*24*time.Hour - time.Second)
	if got := w.insert(key, w.operation("a", fleet.KindRecreate)); got[0].Operation.ID != old.ID {
		w.Fatalf("forgotten too early: %+v", got)
	}
	w.clock.Advance(2 * time.Second)
	if got := w.insert(key, w.operation("a", fleet.KindRecreate)); got[0].Operation.ID == old.ID || !got[0].New {
		w.Fatalf("kept too long: %+v", got)
	}
}

// Case T82: the key is stored with the work, in one transaction.
func refusedKeyIsFree(_ *testing.T, w *world) {
	key := control.Key{Value: "k", Digest: "d"}
	_, err := w.Insert(w.ctx(), []fleet.Operation{w.operation("a", fleet.KindRecreate)}, key,
		func([]control.Inserted) error { return fleet.Errorf(fleet.CodeForbidden, "no") })
	w.mustFail(err, fleet.CodeForbidden)
	if got := w.insert(key, w.operation("a", fleet.KindRecreate)); !got[0].New {
		w.Fatalf("the key was used up: %+v", got)
	}
}

// Case T81: the same event twice within milliseconds.
func concurrentAsks(_ *testing.T, w *world) {
	const askers = 16
	ops := make([]fleet.Operation, askers)
	for i := range ops {
		ops[i] = w.operation("a", fleet.KindRecreate)
	}
	results := make([]control.Inserted, askers)
	var group sync.WaitGroup
	for i := range askers {
		group.Go(func() {
			got, err := w.Insert(w.ctx(), ops[i:i+1], control.Key{}, nil)
			if err != nil {
				w.Error(err)
				return
			}
			results[i] = got[0]
		})
	}
	group.Wait()
	fresh := 0
	for _, r := range results {
		if r.New {
			fresh++
		}
		if r.Operation.ID != results[0].Operation.ID {
			w.Errorf("askers were given %s and %s", r.Operation.ID, results[0].Operation.ID)
		}
	}
	if fresh != 1 {
		w.Fatalf("%d operations are new", fresh)
	}
}

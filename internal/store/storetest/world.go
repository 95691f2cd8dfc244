package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// world is one store with words for what the tests do to it.
type world struct {
	*testing.T
	Store
	clock *Clock
	asked int
}

func (w *world) ctx() context.Context { return w.Context() }

// operation makes one that nobody has begun.
func (w *world) operation(vm string, kind fleet.Kind) fleet.Operation {
	w.asked++
	now := w.clock.Now()
	return fleet.Operation{
		ID: fmt.Sprintf("op-%03d%s", w.asked, vm), Fleet: "f", VM: vm, Kind: kind, Phase: fleet.PhaseQueued,
		CreatedAt: now, UpdatedAt: now, PhaseSince: now,
		Request: fleet.Request{
			Image: "image-2", Policy: fleet.DefaultDrainPolicy(),
			By: fleet.Actor{Name: "ann", From: "cli", Why: "new image"},
		},
	}
}

// insert stores operations and yields what became of them.
func (w *world) insert(key control.Key, ops ...fleet.Operation) []control.Inserted {
	w.Helper()
	got, err := w.Insert(w.ctx(), ops, key, func([]control.Inserted) error { return nil })
	w.must(err)
	return got
}

// ask stores one new operation and yields it as the store has it.
func (w *world) ask(vm string, kind fleet.Kind) *fleet.Operation {
	w.Helper()
	return w.store(w.operation(vm, kind))
}

func (w *world) store(op fleet.Operation) *fleet.Operation {
	w.Helper()
	got := w.insert(control.Key{}, op)
	if len(got) != 1 || !got[0].New {
		w.Fatalf("%s is not new: %+v", op.ID, got)
	}
	return w.load(op.ID)
}

func (w *world) load(id string) *fleet.Operation {
	w.Helper()
	op, err := w.Operation(w.ctx(), id)
	w.must(err)
	return op
}

func (w *world) update(op *fleet.Operation) {
	w.Helper()
	w.must(w.UpdateOperation(w.ctx(), op, nil, nil, nil))
}

func (w *world) finish(op *fleet.Operation) {
	w.Helper()
	op.Phase, op.FinishedAt = fleet.PhaseSucceeded, w.clock.Now()
	w.update(op)
}

// admit asks for room and says whether there was, and why not.
func (w *world) admit(op *fleet.Operation, budget int) (bool, string) {
	w.Helper()
	ok, why, err := w.Admit(w.ctx(), op, fleet.PhasePreflight, fleet.Budget{Room: budget}, w.clock.Now())
	w.must(err)
	if ok == (why != "") {
		w.Fatalf("admitted %t, but why is %q", ok, why)
	}
	return ok, why
}

func (w *world) mustAdmit(op *fleet.Operation, budget int) {
	w.Helper()
	if ok, why := w.admit(op, budget); !ok {
		w.Fatalf("%s has to wait: %s", op.ID, why)
	}
}

func (w *world) mustWait(op *fleet.Operation, budget int) string {
	w.Helper()
	ok, why := w.admit(op, budget)
	if ok {
		w.Fatalf("%s was admitted", op.ID)
	}
	return why
}

func (w *world) facts(operation string) []fleet.Fact {
	w.Helper()
	facts, err := w.Facts(w.ctx(), 0, operation, 0)
	w.must(err)
	return facts
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) mustFail(err error, code fleet.Code) {
	w.Helper()
	if got := fleet.CodeOf(err); got != code {
		w.Fatalf("got %v (code %q), want code %q", err, got, code)
	}
}

// same compares values that went through a store: empty and nil are one.
func (w *world) same(got, want any) {
	w.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		w.Fatalf("differs (-want +got):\n%s", diff)
	}
}

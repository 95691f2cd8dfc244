package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Case T49: the cap is an absolute deadline in the row.
func updateStoresAll(_ *testing.T, w *world) {
	op := w.ask("a", fleet.KindRecreate)
	op.Phase = fleet.PhaseDraining
	op.Old = fleet.Incarnation{Instance: "i-1", BootID: "boot", SystemID: "s_1", Manager: 7}
	op.Drain.Deadline = w.clock.Now().Add(10 * time.Minute)
	vm := &fleet.VM{Ref: op.Ref(), Incarnation: op.Old, Intake: fleet.IntakeDrained, Address: "h:22", UpdatedAt: w.clock.Now()}
	chore := fleet.Chore{
		ID: "c-1", Operation: op.ID, Fleet: "f", VM: "a", Kind: fleet.ChoreOrphanWatch,
		State: []byte(`{"n":1}`), CreatedAt: w.clock.Now(), NextAt: w.clock.Now().Add(10 * time.Second),
	}
	fact := fleet.Fact{At: w.clock.Now(), Operation: op.ID, Fleet: "f", VM: "a", Kind: fleet.FactPhase, Phase: op.Phase, Text: "moved"}
	was := op.Revision
	w.must(w.UpdateOperation(w.ctx(), op, []fleet.Fact{fact}, vm, []fleet.Chore{chore}))

	if op.Revision != was+1 {
		w.Fatalf("the revision went from %d to %d", was, op.Revision)
	}
	w.same(w.load(op.ID), op)
	stored, err := w.VM(w.ctx(), op.Ref())
	w.must(err)
	w.same(stored, vm)
	chores, err := w.Chores(w.ctx(), op.ID)
	w.must(err)
	w.same(chores, []fleet.Chore{chore})
	facts := w.facts(op.ID)
	fact.ID = facts[len(facts)-1].ID
	w.same(facts[len(facts)-1], fact)
}

func staleUpdate(_ *testing.T, w *world) {
	mine := w.ask("a", fleet.KindRecreate)
	theirs := w.load(mine.ID)
	theirs.Waiting = "theirs"
	w.update(theirs)

	mine.Waiting = "mine"
	was := mine.Revision
	err := w.UpdateOperation(w.ctx(), mine,
		[]fleet.Fact{{Operation: mine.ID, Text: "never"}}, &fleet.VM{Ref: mine.Ref(), Intake: fleet.IntakeDrained},
		[]fleet.Chore{{ID: "never", Operation: mine.ID}})
	w.mustFail(err, fleet.CodeConflict)
	if mine.Revision != was {
		w.Errorf("the revision was raised to %d", mine.Revision)
	}
	w.same(w.load(mine.ID), theirs)
	if n := len(w.facts(mine.ID)); n != 1 {
		w.Errorf("%d facts", n)
	}
	if vm, err := w.VM(w.ctx(), mine.Ref()); err != nil || vm.Intake != fleet.IntakeServing {
		w.Errorf("the VM was stored: %+v, %v", vm, err)
	}
	if chores, err := w.UnfinishedChores(w.ctx()); err != nil || len(chores) != 0 {
		w.Errorf("chores were stored: %+v, %v", chores, err)
	}
}

func endedWrites(_ *testing.T, w *world) {
	op := w.ask("a", fleet.KindRecreate)
	ctx, cancel := context.WithCancel(w.ctx())
	cancel()
	mine := *op
	mine.Waiting = "never"
	w.mustFail(w.UpdateOperation(ctx, &mine, nil, nil, nil), fleet.CodeCanceled)
	if mine.Revision != op.Revision {
		w.Errorf("the revision was raised to %d", mine.Revision)
	}
	_, _, err := w.Admit(ctx, &mine, fleet.PhasePreflight, fleet.Budget{Room: 1}, w.clock.Now())
	w.mustFail(err, fleet.CodeCanceled)
	w.mustFail(w.SaveVM(ctx, &fleet.VM{Ref: op.Ref(), Intake: fleet.IntakeDrained}), fleet.CodeCanceled)
	w.same(w.load(op.ID), op)
	if vm, err := w.VM(w.ctx(), op.Ref()); err != nil || vm.Intake != fleet.IntakeServing {
		w.Errorf("the VM was stored: %+v, %v", vm, err)
	}
}

func concurrentUpdates(_ *testing.T, w *world) {
	op := w.ask("a", fleet.KindRecreate)
	var won, lost atomic.Int32
	var group sync.WaitGroup
	for range 16 {
		mine := *op
		group.Go(func() {
			switch err := w.UpdateOperation(w.ctx(), &mine, nil, nil, nil); fleet.CodeOf(err) {
			case "":
				won.Add(1)
			case fleet.CodeConflict:
				lost.Add(1)
			default:
				w.Error(err)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 || lost.Load() != 15 {
		w.Fatalf("%d won, %d lost", won.Load(), lost.Load())
	}
}

func listed(_ *testing.T, w *world) {
	a := w.ask("a", fleet.KindRecreate)
	w.finish(a)
	b := w.ask("b", fleet.KindDelete)
	other := w.operation("a", fleet.KindDrain)
	other.Fleet = "g"
	w.store(other)

	for _, test := range []struct {
		filter control.Filter
		want   []string
	}{
		{control.Filter{}, []string{other.ID, b.ID, a.ID}},
		{control.Filter{Fleet: "f"}, []string{b.ID, a.ID}},
		{control.Filter{VM: "a"}, []string{other.ID, a.ID}},
		{control.Filter{Fleet: "f", VM: "a"}, []string{a.ID}},
		{control.Filter{Fleet: "f", Unfinished: true}, []string{b.ID}},
		{control.Filter{Limit: 2}, []string{other.ID, b.ID}},
		{control.Filter{Fleet: "none"}, nil},
	} {
		ops, err := w.Operations(w.ctx(), test.filter)
		w.must(err)
		w.same(ids(ops), test.want)
	}
}

func unfinishedOldestFirst(_ *testing.T, w *world) {
	a, b, c := w.ask("a", fleet.KindDrain), w.ask("b", fleet.KindDrain), w.ask("c", fleet.KindDrain)
	w.finish(b)
	ops, err := w.Unfinished(w.ctx())
	w.must(err)
	w.same(ids(ops), []string{a.ID, c.ID})
}

func ids(ops []fleet.Operation) []string {
	list := make([]string, len(ops))
	for i := range ops {
		list[i] = ops[i].ID
	}
	return list
}

func foundByPrefix(_ *testing.T, w *world) {
	for i, id := range []string{"op-ab12", "op-ab34", "op-ab3", "op-cd56"} {
		op := w.operation(fmt.Sprintf("vm%d", i), fleet.KindDrain)
		op.ID = id
		w.store(op)
	}
	for prefix, want := range map[string]string{
		"op-cd56": "op-cd56", "op-c": "op-cd56", "cd": "op-cd56", "ab1": "op-ab12",
		"op-ab3": "op-ab3", // whole, though another begins with it
	} {
		op, err := w.FindOperation(w.ctx(), prefix)
		w.must(err)
		if op.ID != want {
			w.Errorf("%s finds %s, want %s", prefix, op.ID, want)
		}
	}
	_, err := w.FindOperation(w.ctx(), "op-ab")
	w.mustFail(err, fleet.CodeConflict)
	if text := err.Error(); !strings.Contains(text, "op-ab12") || !strings.Contains(text, "op-ab34") {
		w.Errorf("%q does not name them", text)
	}
	for _, none := range []string{"op-x", "%", "op_cd", "p-cd56"} {
		_, err = w.FindOperation(w.ctx(), none)
		w.mustFail(err, fleet.CodeNotFound)
	}
	for _, empty := range []string{"", "op-"} {
		_, err = w.FindOperation(w.ctx(), empty)
		w.mustFail(err, fleet.CodeInvalid)
	}
}

func notFound(_ *testing.T, w *world) {
	_, err := w.Operation(w.ctx(), "op-none")
	w.mustFail(err, fleet.CodeNotFound)
	w.mustFail(w.UpdateOperation(w.ctx(), &fleet.Operation{ID: "op-none"}, nil, nil, nil), fleet.CodeNotFound)
	_, err = w.Chore(w.ctx(), "c-none")
	w.mustFail(err, fleet.CodeNotFound)
}

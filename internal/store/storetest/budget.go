package storetest

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func budgetOfOne(_ *testing.T, w *world) {
	a, b := w.ask("a", fleet.KindRecreate), w.ask("b", fleet.KindRecreate)
	was, at := a.Revision, w.clock.Now()
	w.mustAdmit(a, 1)
	if a.Phase != fleet.PhasePreflight || !a.PhaseSince.Equal(at) || a.Revision != was+1 {
		w.Fatalf("admitted as %+v", a)
	}
	w.same(w.load(a.ID), a)
	before := *b
	if why := w.mustWait(b, 1); !strings.Contains(why, "a") || !strings.Contains(why, "1 of") {
		w.Errorf("%q does not say for whom it waits", why)
	}
	w.same(*b, before)
	w.same(*w.load(b.ID), before)
	w.finish(a)
	w.mustAdmit(b, 1)
}

func firstComeFirstServed(_ *testing.T, w *world) {
	a, b, c := w.ask("a", fleet.KindRecreate), w.ask("b", fleet.KindRecreate), w.ask("c", fleet.KindRecreate)
	if why := w.mustWait(c, 1); !strings.Contains(why, a.ID) {
		w.Errorf("%q does not name %s", why, a.ID)
	}
	w.mustWait(b, 1)
	w.mustAdmit(a, 1)
	w.finish(a)
	w.mustWait(c, 1)
	w.mustAdmit(b, 1)
}

func (w *world) save(vm fleet.VM) {
	w.Helper()
	if vm.Intake == "" {
		vm.Intake = fleet.IntakeServing
	}
	w.must(w.SaveVM(w.ctx(), &vm))
}

func notServingGoesAtOnce(_ *testing.T, w *world) {
	first := w.ask("a", fleet.KindRecreate)
	w.save(fleet.VM{Ref: fleet.Ref{Fleet: "f", VM: "b"}, Failed: true})
	w.save(fleet.VM{Ref: fleet.Ref{Fleet: "f", VM: "c"}, Intake: fleet.IntakeDrained})
	b, c, d := w.ask("b", fleet.KindRecreate), w.ask("c", fleet.KindDelete), w.ask("d", fleet.KindDrain)
	w.mustWait(d, 3)  // b and c are not serving, first goes first
	w.mustAdmit(d, 4) // though b and c asked earlier
	w.finish(d)
	d = w.ask("d", fleet.KindDrain)
	w.mustAdmit(c, 1)
	w.mustAdmit(b, 1)
	w.mustWait(first, 2)
	w.mustAdmit(first, 3)
	w.mustWait(d, 3)
	w.mustAdmit(d, 4)
}

func notServingCountsOnce(_ *testing.T, w *world) {
	w.save(fleet.VM{Ref: fleet.Ref{Fleet: "f", VM: "a"}, Intake: fleet.IntakeDrained})
	w.save(fleet.VM{Ref: fleet.Ref{Fleet: "f", VM: "b"}, Missing: true})
	w.save(fleet.VM{Ref: fleet.Ref{Fleet: "f", VM: "c"}, Failed: true})
	w.save(fleet.VM{Ref: fleet.Ref{Fleet: "f", VM: "d"}})
	w.mustAdmit(w.ask("a", fleet.KindRecreate), 1) // a: its row and its operation
	op := w.ask("z", fleet.KindRecreate)
	if why := w.mustWait(op, 3); !strings.Contains(why, "a, b, c") {
		w.Errorf("%q does not name them", why)
	}
	w.mustAdmit(op, 4)
}

// A budget that no operation will free needs a person. Only the first in line
// says so: the others wait for that one.
func stuckBudget(_ *testing.T, w *world) {
	w.save(fleet.VM{Ref: fleet.Ref{Fleet: "f", VM: "a"}, Intake: fleet.IntakeDrained})
	first, second := w.ask("b", fleet.KindRecreate), w.ask("c", fleet.KindRecreate)
	const advice = "no operation will change that"
	if why := w.mustWait(first, 1); !strings.Contains(why, advice) {
		w.Errorf("the first waits for %q, want %q in it", why, advice)
	}
	if why := w.mustWait(second, 1); strings.Contains(why, advice) {
		w.Errorf("the second waits for %q, want no advice that is the first's", why)
	}
	w.mustAdmit(w.ask("a", fleet.KindRecreate), 1)
	if why := w.mustWait(first, 1); strings.Contains(why, advice) {
		w.Errorf("while somebody works it waits for %q", why)
	}
}

// A VM that was deleted and then taken out of the configuration holds nobody up.
func othersThanMembers(_ *testing.T, w *world) {
	w.save(fleet.VM{Ref: fleet.Ref{Fleet: "f", VM: "former"}, Missing: true})
	op := w.ask("a", fleet.KindRecreate)
	w.mustWait(op, 1)
	ok, why, err := w.Admit(w.ctx(), op, fleet.PhasePreflight, fleet.Budget{Room: 1, Members: []string{"a", "b"}}, w.clock.Now())
	if !ok || err != nil {
		w.Errorf("it waits: %s, %v", why, err)
	}
	next := w.ask("b", fleet.KindRecreate)
	ok, _, err = w.Admit(w.ctx(), next, fleet.PhasePreflight, fleet.Budget{Room: 1, Members: []string{"b"}}, w.clock.Now())
	if ok || err != nil {
		w.Errorf("an operation under way counts, whosever it is: %t, %v", ok, err)
	}
}

func severalAtOnce(_ *testing.T, w *world) {
	ops := make([]*fleet.Operation, 5)
	for i := range ops {
		ops[i] = w.ask(fmt.Sprint("vm", i), fleet.KindRecreate)
	}
	w.mustAdmit(ops[2], 3) // room is kept for the two before it
	w.mustWait(ops[3], 3)
	w.mustWait(ops[4], 3)
	w.mustAdmit(ops[1], 3)
	w.mustWait(ops[3], 3)
	w.mustAdmit(ops[0], 3)
	w.mustWait(ops[3], 3)
}

func noOvertaking(_ *testing.T, w *world) {
	running := w.ask("a", fleet.KindRecreate)
	w.mustAdmit(running, 1)
	small := w.ask("b", fleet.KindRecreate)
	large := w.operation("c", fleet.KindRecreate)
	large.Request.Parallel = 3
	third := w.store(large)
	w.mustWait(small, 1)
	if why := w.mustWait(third, 3); !strings.Contains(why, small.ID) {
		w.Errorf("%q does not name %s", why, small.ID)
	}
	w.finish(running)
	w.mustAdmit(small, 1)
	w.mustAdmit(third, 3)
}

func undrainWaitsForNobody(_ *testing.T, w *world) {
	w.mustAdmit(w.ask("a", fleet.KindRecreate), 1)
	w.ask("e", fleet.KindUndrain) // queued: holds no place
	w.ask("g", fleet.KindCreate)
	waiting := w.ask("b", fleet.KindRecreate)
	w.mustAdmit(w.ask("c", fleet.KindUndrain), math.MaxInt32)
	w.mustAdmit(w.ask("d", fleet.KindCreate), math.MaxInt32)
	w.mustWait(waiting, 3)
	w.mustAdmit(waiting, 4)
}

func otherFleets(_ *testing.T, w *world) {
	w.mustAdmit(w.ask("a", fleet.KindRecreate), 1)
	other := w.operation("a", fleet.KindRecreate)
	other.Fleet = "g"
	w.mustAdmit(w.store(other), 1)
}

func staleAdmit(_ *testing.T, w *world) {
	op := w.ask("a", fleet.KindRecreate)
	stale := *op
	op.Canceled = true
	w.update(op)
	_, _, err := w.Admit(w.ctx(), &stale, fleet.PhasePreflight, fleet.Budget{Room: 1}, w.clock.Now())
	w.mustFail(err, fleet.CodeConflict)
	if stale.Phase != fleet.PhaseQueued {
		w.Errorf("the stale copy is in %s", stale.Phase)
	}
	w.mustAdmit(op, 1)
	_, _, err = w.Admit(w.ctx(), op, fleet.PhasePreflight, fleet.Budget{Room: 1}, w.clock.Now())
	w.mustFail(err, fleet.CodeConflict)
}

func concurrentAdmissions(_ *testing.T, w *world) {
	const vms, budget = 24, 3
	var admitted atomic.Int32
	var group sync.WaitGroup
	for i := range vms {
		op := w.ask(fmt.Sprint("vm", i), fleet.KindRecreate)
		group.Go(func() {
			ok, _, err := w.Admit(w.ctx(), op, fleet.PhasePreflight, fleet.Budget{Room: budget}, w.clock.Now().Add(time.Second))
			if err != nil {
				w.Error(err)
			}
			if ok {
				admitted.Add(1)
			}
		})
	}
	group.Wait()
	if n := admitted.Load(); n != budget {
		w.Fatalf("%d admitted with a budget of %d", n, budget)
	}
}

package storetest

import (
	"fmt"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

var vmA = fleet.Ref{Fleet: "f", VM: "a"}

func freshVM(_ *testing.T, w *world) {
	vm, err := w.VM(w.ctx(), vmA)
	w.must(err)
	w.same(vm, &fleet.VM{Ref: vmA, Intake: fleet.IntakeServing})
	if !vm.Serving() {
		w.Error("a fresh VM is not serving")
	}
	vms, err := w.VMs(w.ctx(), "f")
	w.must(err)
	w.same(vms, []fleet.VM(nil))
}

func orderNumbersRise(_ *testing.T, w *world) {
	before, err := w.VM(w.ctx(), vmA)
	w.must(err)
	for want := int64(1); want <= 3; want++ {
		got, err := w.NextOrder(w.ctx(), vmA)
		w.must(err)
		if got != want {
			w.Fatalf("order %d, want %d", got, want)
		}
	}
	before.Intake = fleet.IntakeDrained // loaded before the orders: its number is stale
	w.must(w.SaveVM(w.ctx(), before))
	vm, err := w.VM(w.ctx(), vmA)
	w.must(err)
	if vm.OrderNumber != 3 || vm.Intake != fleet.IntakeDrained {
		w.Fatalf("stored: %+v", vm)
	}
	if next, err := w.NextOrder(w.ctx(), vmA); err != nil || next != 4 {
		w.Fatalf("the next order is %d, %v", next, err)
	}
	if other, err := w.NextOrder(w.ctx(), fleet.Ref{Fleet: "f", VM: "b"}); err != nil || other != 1 {
		w.Fatalf("another VM's first order is %d, %v", other, err)
	}
	vms, err := w.VMs(w.ctx(), "f")
	w.must(err)
	if len(vms) != 2 || vms[0].VM != "a" || vms[0].OrderNumber != 4 || vms[1].VM != "b" {
		w.Fatalf("the fleet's VMs: %+v", vms)
	}
}

func identityNoted(_ *testing.T, w *world) {
	is := fleet.Incarnation{Instance: "i-1", BootID: "boot", SystemID: "s_1"}
	for _, intake := range []fleet.Intake{fleet.IntakeServing, fleet.IntakeDrained} {
		if intake == fleet.IntakeDrained {
			w.must(w.SaveVM(w.ctx(), &fleet.VM{Ref: vmA, Intake: intake, Failed: true}))
		}
		w.must(w.NoteIdentity(w.ctx(), vmA, is, "a:22", w.clock.Now()))
		vm, err := w.VM(w.ctx(), vmA)
		w.must(err)
		if vm.Intake != intake || vm.Failed != (intake == fleet.IntakeDrained) || vm.Incarnation != is || vm.Address != "a:22" {
			w.Errorf("%+v", vm)
		}
	}
	w.must(w.NoteIdentity(w.ctx(), vmA, fleet.Incarnation{Instance: "another"}, "b:22", w.clock.Now()))
	if vm, err := w.VM(w.ctx(), vmA); err != nil || vm.Incarnation != is || vm.Address != "a:22" {
		w.Errorf("a look at another instance has overwritten what the row knows: %+v, %v", vm, err)
	}
}

func hostKeysOfAnInstance(_ *testing.T, w *world) {
	vm := &fleet.VM{Ref: vmA, Incarnation: fleet.Incarnation{Instance: "i-1"}, Intake: fleet.IntakeServing}
	w.must(w.SaveVM(w.ctx(), vm))
	w.must(w.Trust(w.ctx(), vmA, "i-1", []string{"ssh-ed25519 AAA"}))
	vm, err := w.VM(w.ctx(), vmA)
	w.must(err)
	w.same(vm.Trust, []string{"ssh-ed25519 AAA"})

	vm.Instance = "i-2" // recreated; whoever saves still holds the old keys
	w.must(w.SaveVM(w.ctx(), vm))
	known, err := w.Known(w.ctx(), vmA, "i-2")
	w.must(err)
	w.same(known, []string(nil))
	vm, err = w.VM(w.ctx(), vmA)
	w.must(err)
	w.same(vm.Trust, []string(nil))

	w.must(w.Trust(w.ctx(), vmA, "i-2", []string{"ssh-ed25519 BBB"}))
	known, err = w.Known(w.ctx(), vmA, "i-1")
	w.must(err)
	w.same(known, []string{"ssh-ed25519 AAA"})
	known, err = w.Known(w.ctx(), fleet.Ref{Fleet: "f", VM: "b"}, "i-2")
	w.must(err)
	w.same(known, []string(nil))
}

func otherHostKeys(_ *testing.T, w *world) {
	w.must(w.Trust(w.ctx(), vmA, "i-1", []string{"ssh-ed25519 AAA"}))
	w.must(w.Trust(w.ctx(), vmA, "i-1", []string{"ssh-ed25519 AAA"})) // repeated
	w.mustFail(w.Trust(w.ctx(), vmA, "i-1", []string{"ssh-ed25519 EVIL"}), fleet.CodeConflict)
	w.mustFail(w.Trust(w.ctx(), vmA, "", []string{"ssh-ed25519 AAA"}), fleet.CodeInvalid)
	w.mustFail(w.Trust(w.ctx(), vmA, "i-2", nil), fleet.CodeInvalid)
	known, err := w.Known(w.ctx(), vmA, "i-1")
	w.must(err)
	w.same(known, []string{"ssh-ed25519 AAA"})
	for i := range 20 { // the table does not grow with recreations, and the newest stay
		w.must(w.Trust(w.ctx(), vmA, fmt.Sprint("j-", i), []string{"k"}))
	}
	if known, err = w.Known(w.ctx(), vmA, "j-19"); err != nil || len(known) != 1 {
		w.Fatalf("the newest keys: %v, %v", known, err)
	}
}

func choresEnd(_ *testing.T, w *world) {
	op := w.ask("a", fleet.KindDelete)
	w.must(w.UpdateOperation(w.ctx(), op, nil, nil, []fleet.Chore{
		{ID: "c-1", Operation: op.ID, Kind: fleet.ChoreOrphanWatch, State: []byte(`{}`), CreatedAt: w.clock.Now()},
		{ID: "c-2", Operation: op.ID, Kind: fleet.ChoreDeregister, State: []byte(`{}`), CreatedAt: w.clock.Now()},
	}))
	mine, err := w.Chore(w.ctx(), "c-1")
	w.must(err)
	stale := *mine
	mine.FinishedAt, mine.Outcome = w.clock.Now(), "no orphan"
	w.must(w.UpdateChore(w.ctx(), mine, []fleet.Fact{{Operation: op.ID, Kind: fleet.FactNote, Text: "no orphan"}}))
	w.mustFail(w.UpdateChore(w.ctx(), &stale, []fleet.Fact{{Operation: op.ID, Text: "never"}}), fleet.CodeConflict)

	stored, err := w.Chore(w.ctx(), "c-1")
	w.must(err)
	w.same(stored, mine)
	if facts := w.facts(op.ID); facts[len(facts)-1].Text != "no orphan" {
		w.Errorf("facts: %+v", facts)
	}
	unfinished, err := w.UnfinishedChores(w.ctx())
	w.must(err)
	if len(unfinished) != 1 || unfinished[0].ID != "c-2" {
		w.Fatalf("unfinished: %+v", unfinished)
	}
	if all, err := w.Chores(w.ctx(), op.ID); err != nil || len(all) != 2 || all[0].ID != "c-1" {
		w.Fatalf("all: %+v, %v", all, err)
	}
}

func unfinishedChoresOldestFirst(_ *testing.T, w *world) {
	op := w.ask("a", fleet.KindDelete)
	for _, id := range []string{"z", "m", "a"} {
		w.must(w.UpdateOperation(w.ctx(), op, nil, nil, []fleet.Chore{
			{ID: id, Operation: op.ID, Kind: fleet.ChoreStray, State: []byte(`{}`), CreatedAt: w.clock.Now()},
		}))
	}
	done, err := w.Chore(w.ctx(), "m")
	w.must(err)
	done.FinishedAt = w.clock.Now()
	w.must(w.UpdateChore(w.ctx(), done, nil))
	list, err := w.UnfinishedChores(w.ctx())
	w.must(err)
	if len(list) != 2 || list[0].ID != "z" || list[1].ID != "a" {
		w.Fatalf("unfinished: %+v", list)
	}
}

func choreAddedTwice(_ *testing.T, w *world) {
	op := w.ask("a", fleet.KindRecreate)
	chore := fleet.Chore{ID: "c-1", Operation: op.ID, Kind: fleet.ChoreOrphanWatch, State: []byte(`{"n":1}`), CreatedAt: w.clock.Now()}
	w.must(w.UpdateOperation(w.ctx(), op, nil, nil, []fleet.Chore{chore}))
	first, err := w.Chore(w.ctx(), "c-1")
	w.must(err)
	first.State = []byte(`{"n":2}`)
	w.must(w.UpdateChore(w.ctx(), first, nil))

	chore.State = []byte(`{"n":9}`)
	w.must(w.UpdateOperation(w.ctx(), op, nil, nil, []fleet.Chore{chore})) // the drain was repeated
	chores, err := w.Chores(w.ctx(), op.ID)
	w.must(err)
	w.same(chores, []fleet.Chore{*first})
}

func factsInOrder(_ *testing.T, w *world) {
	for i := range 5 {
		w.must(w.AppendFacts(w.ctx(), []fleet.Fact{
			{At: w.clock.Now(), Operation: "op-1", Text: fmt.Sprint("one ", i), Data: []byte(`{"n":1}`)},
			{At: w.clock.Now(), Operation: "op-2", Text: fmt.Sprint("two ", i)},
		}))
	}
	w.must(w.AppendFacts(w.ctx(), nil))
	all := w.facts("")
	if len(all) != 10 {
		w.Fatalf("%d facts", len(all))
	}
	for i := 1; i < len(all); i++ {
		if all[i].ID <= all[i-1].ID {
			w.Fatalf("fact %d comes after %d", all[i].ID, all[i-1].ID)
		}
	}
	rest, err := w.Facts(w.ctx(), all[6].ID, "", 2)
	w.must(err)
	w.same(rest, all[7:9])
	ones, err := w.Facts(w.ctx(), all[1].ID, "op-1", 0)
	w.must(err)
	if len(ones) != 4 || ones[0].Text != "one 1" {
		w.Fatalf("facts of op-1 after its first: %+v", ones)
	}
}

package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Registration individual (design.md section 6): each VM has a runner entry of
// its own, and the deleted VM's goes with it.

// gone fails unless the entries were removed, each once, and no manager was.
func gone(t *testing.T, w *enginetest.World, want ...int64) {
	t.Helper()
	if !slices.Equal(w.RemovedEntries, want) || len(w.Removed) != 0 {
		t.Errorf("removed entries %v (want %v), managers %v\n%s", w.RemovedEntries, want, w.Removed, w.Story())
	}
	if open, _ := w.Store.UnfinishedChores(t.Context()); len(open) > 0 {
		t.Errorf("%s is open: %s\n%s", open[0].ID, open[0].State, w.Story())
	}
}

func says(t *testing.T, w *enginetest.World, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(w.Story(), part) {
			t.Errorf("nothing says %q\n%s", part, w.Story())
		}
	}
}

func TestARecreatedVMsOwnEntryIsRemovedAndTheNewOneIsReadOnItsHost(t *testing.T) {
	w := enginetest.New("a", "b").OwnEntries()
	w.Job("a", 42, 90*time.Second)
	old := w.VM("a")
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(2 * time.Hour)
	replaced(t, w, id, "a", old.ID)
	op, vm := w.Op(id), w.VM("a")
	if op.Old.Entry != old.Entry || op.Old.EntryName != "f/a" || op.Create.New.Entry != vm.Entry || vm.Entry == old.Entry {
		t.Errorf("stored %+v and %+v, but the VMs have %d and %d", op.Old, op.Create.New, old.Entry, vm.Entry)
	}
	row, err := w.Store.VM(t.Context(), op.Ref())
	if err != nil || row.Entry != vm.Entry || row.EntryName != "f/a" {
		t.Errorf("row %+v, %v", row, err)
	}
	gone(t, w, old.Entry)
	if left := w.LeftEntries(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	says(t, w, fmt.Sprintf("runner entry %d removed; the new VM's entry %d lives", old.Entry, vm.Entry))
}

func TestADeletedVMsOwnEntryGoesWithIt(t *testing.T) {
	for _, skip := range []bool{false, true} {
		w := enginetest.New("a").OwnEntries()
		old := w.VM("a")
		w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.NoDrain = skip })
		w.Run(2 * time.Hour)
		gone(t, w, old.Entry)
	}
}

func TestADrainLeavesTheEntryAlone(t *testing.T) {
	w := enginetest.New("a").OwnEntries()
	w.Ask(fleet.KindDrain, "a")
	w.Run(time.Hour)
	w.Ask(fleet.KindUndrain, "a")
	w.Run(time.Hour)
	gone(t, w)
	if !w.VM("a").Serving() {
		t.Error("it does not serve")
	}
}

// Promise 3: killed at any instant, and with any answer lost, the entry is
// removed once, and only the old one.
func TestACrashAtAnyInstantRemovesTheEntryOnce(t *testing.T) {
	world := func() (*enginetest.World, string, *enginetest.VM) {
		w := enginetest.New("a", "b").OwnEntries()
		w.Job("a", 42, 90*time.Second)
		return w, w.Ask(fleet.KindRecreate, "a"), w.VM("a")
	}
	check := func(t *testing.T, w *enginetest.World, id string, old *enginetest.VM) {
		t.Helper()
		w.Run(2 * time.Hour)
		replaced(t, w, id, "a", old.ID)
		gone(t, w, old.Entry)
		if left := w.LeftEntries(); len(left) != 0 {
			t.Errorf("left behind: %v\n%s", left, w.Story())
		}
	}
	whole, id, old := world()
	check(t, whole, id, old)
	for die := 1; die <= len(whole.Points.Passed); die += stride(31) {
		w, id, old := world()
		w.Points.Die = die
		if !t.Run(fmt.Sprintf("%d %s", die, whole.Points.Passed[die-1]), func(t *testing.T) { check(t, w, id, old) }) {
			return
		}
	}
	for _, call := range []string{"stop", "delete", "create", "remove-entry"} {
		for _, times := range []int{1, 3} {
			w, id, old := world()
			w.Lose[call] = times
			t.Run(fmt.Sprintf("%s lost %d", call, times), func(t *testing.T) { check(t, w, id, old) })
		}
	}
	for _, call := range []string{"inspect", "managers", "read", "runner", "remove-entry", "describe"} {
		w, id, old := world()
		for range 3 {
			w.Refuse[call] = append(w.Refuse[call], fleet.Errorf(fleet.CodeUnavailable, "503 for now"))
		}
		t.Run(call+" fails for a while", func(t *testing.T) { check(t, w, id, old) })
	}
}

// Any doubt: it is left, and the event log says why.
func TestAnEntryInDoubtIsLeftAndItIsSaidWhy(t *testing.T) {
	for name, c := range map[string]struct {
		setup func(*enginetest.World)
		why   string
	}{
		"renamed meanwhile":               {func(w *enginetest.World) { w.Fences["remove-entry"] = func() { w.Entries[100].Name = "by hand" } }, `its description is "by hand", and was "f/a"`},
		"another VM joined under it":      {func(w *enginetest.World) { w.Fences["remove-entry"] = func() { w.VMs[1].Entry = 100 } }, "it has 2 managers"},
		"the new VM uses the same":        {func(w *enginetest.World) { w.SameEntry = true }, "VM f/a has the same runner entry 100"},
		"the new VM has its system_id":    {func(w *enginetest.World) { w.SameSystemID = true }, "VM f/a has the same system_id"},
		"nobody may remove it":            {func(w *enginetest.World) { refuse(w, "remove-entry", fleet.CodeForbidden) }, "runner entry 100 of f/a stays"},
		"it keeps being changed":          {func(w *enginetest.World) { refuse(w, "remove-entry", fleet.CodeConflict) }, "runner entry 100 stays: it keeps being changed"},
		"a person had removed it already": {func(w *enginetest.World) { w.Fences["delete"] = func() { w.Entries[100].Gone = true } }, "runner entry 100 removed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a", "b").OwnEntries()
			c.setup(w)
			w.Ask(fleet.KindRecreate, "a")
			w.Run(2 * time.Hour)
			gone(t, w)
			says(t, w, c.why)
		})
	}
}

func refuse(w *enginetest.World, call string, code fleet.Code) {
	for range 1000 {
		w.Refuse[call] = append(w.Refuse[call], fleet.Errorf(code, "refused"))
	}
}

// The intent is written before the effect, and what is not there after it is done.
func TestTheIntentToRemoveAnEntryIsCommittedBeforeTheCall(t *testing.T) {
	w := enginetest.New("a").OwnEntries()
	w.Fences["remove-entry"] = func() {
		open, _ := w.Store.UnfinishedChores(t.Context())
		if len(open) != 1 || !strings.Contains(string(open[0].State), `"intent"`) || !strings.Contains(w.Story(), "the removal of runner entry 100") {
			t.Errorf("called without an intent: %+v", open)
		}
	}
	w.Ask(fleet.KindDelete, "a")
	w.Run(time.Hour)
	gone(t, w, 100)
}

func TestAHostWhoseEntryIsNotPlainIsRefusedBeforeAnythingIsStopped(t *testing.T) {
	w := enginetest.New("a").OwnEntries()
	w.VM("a").Entry = 0
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "has no id")
	if w.Calls["stop"] != 0 || !w.VM("a").Serving() {
		t.Errorf("something was touched\n%s", w.Story())
	}
}

// A VM out of reach is known by the last look at the same instance.
func TestTheEntryOfAnUnreachableVMIsTheStoredOne(t *testing.T) {
	w := enginetest.New("a").OwnEntries()
	first := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	vm := w.VM("a")
	vm.Cutoff = true
	w.Fences["create"] = func() { vm.Cutoff = false }
	w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy.Unreachable = fleet.UnreachableProceed })
	w.Run(3 * time.Hour)
	gone(t, w, w.Op(first).Old.Entry, vm.Entry)
}

func TestTheEntryOfAVMThatWasNeverReachedStaysAndItIsSaid(t *testing.T) {
	w := enginetest.New("a").OwnEntries()
	w.VM("a").Cutoff = true
	w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.NoDrain = true })
	w.Run(3 * time.Hour)
	gone(t, w)
	says(t, w, "the runner entry of instance i-001 was never read: if it has one, it stays in GitLab")
}

// cases.md T43: a second machine has an entry of its own, too.
func TestTheEntryOfAStrayGoesWithIt(t *testing.T) {
	w := enginetest.New("a").OwnEntries()
	old := w.VM("a").Entry
	id := w.Ask(fleet.KindRecreate, "a")
	for w.Op(id).Phase != fleet.PhaseVerifying {
		w.Run(time.Second)
	}
	w.Twin("a", id)
	w.Run(3 * time.Hour)
	if left := w.LeftEntries(); len(left) != 0 || len(w.RemovedEntries) != 2 || !slices.Contains(w.RemovedEntries, old) {
		t.Errorf("removed %v, left %v\n%s", w.RemovedEntries, left, w.Story())
	}
}

// What came while a worker stalled between its look and its call is not touched:
// the look allows the call for ten seconds, and what it rests on is read anew.
func TestARemovalHeldBetweenLookAndCallTouchesNothingThatCameMeanwhile(t *testing.T) {
	for name, own := range map[string]bool{"the manager": false, "the entry": true} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a")
			call := "deregister"
			if own {
				w.OwnEntries()
				call = "remove-entry"
				w.SameEntry = true
			}
			w.OwnTime, w.SameSystemID = true, true
			old := w.VM("a").ID
			w.Ask(fleet.KindDelete, "a")
			var id string
			w.Fences[call] = func() { // the worker stalls here, others do not
				id = w.Ask(fleet.KindCreate, "a")
				w.Run(5 * time.Minute)
				if w.Op(id).Phase != fleet.PhaseSucceeded {
					t.Fatalf("the new VM has not come: %s\n%s", w.Op(id).Phase, w.Story())
				}
			}
			w.Run(3 * time.Hour)
			replaced(t, w, id, "a", old)
			gone(t, w)
			says(t, w, "VM f/a has the same system_id")
		})
	}
}

// The same for a chore that had not even looked when the new VM joined.
func TestARemovalDelayedUntilTheNewVMJoinedLeavesItsManager(t *testing.T) {
	w := enginetest.New("a")
	w.SameSystemID = true
	old := w.VM("a").ID
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(3 * time.Hour)
	replaced(t, w, id, "a", old)
	gone(t, w)
	says(t, w, "has the same system_id")
}

// A look that took too long allows nothing: it is made again before the call.
func TestALookThatTookTooLongIsMadeAgainBeforeTheRemoval(t *testing.T) {
	w := enginetest.New("a")
	w.Ask(fleet.KindDrain, "a") // so that its row is known
	w.Run(time.Hour)
	old := w.VM("a")
	old.Gone = w.Now() // behind our back
	id := w.Ask(fleet.KindCreate, "a")
	looks := 0
	w.Points.At = func(name string) {
		if name == "describe:before" && w.Op(id).Phase.Finished() {
			if looks++; looks <= 2 {
				w.Advance(20 * time.Second)
			}
		}
	}
	w.Run(3 * time.Hour)
	replaced(t, w, id, "a", old.ID)
	if looks != 3 || w.Calls["deregister"] != 1 || !slices.Equal(w.Removed, []string{old.SystemID}) {
		t.Errorf("%d looks, %d calls, removed %v\n%s", looks, w.Calls["deregister"], w.Removed, w.Story())
	}
}

func TestUnderRegistrationNoneNothingIsRemoved(t *testing.T) {
	w := enginetest.New("a")
	w.Spec.Registration = fleet.RegistrationNone
	old := w.VM("a").ID
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(3 * time.Hour)
	replaced(t, w, id, "a", old)
	gone(t, w)
	if w.Calls["deregister"] != 0 {
		t.Error("GitLab was asked to")
	}
}

// Who is removed from GitLab takes its jobs off the lists: the orphan watch of
// the stop has its last look before.
func TestADeregistrationWaitsForTheOrphanWatch(t *testing.T) {
	for name, world := range map[string]*enginetest.World{"the manager": enginetest.New("a"), "the entry": enginetest.New("a").OwnEntries()} {
		t.Run(name, func(t *testing.T) {
			watched := false
			for _, call := range []string{"deregister", "remove-entry"} {
				world.Fences[call] = func() { watched = strings.Contains(world.Story(), "orphan_watch: clean") }
			}
			world.Ask(fleet.KindDelete, "a")
			world.Run(time.Hour)
			if len(world.Removed)+len(world.RemovedEntries) != 1 || !watched {
				t.Errorf("removed %v %v, watched before: %v\n%s", world.Removed, world.RemovedEntries, watched, world.Story())
			}
		})
	}
}

package engine_test

import (
	"slices"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// deletedWatched is a world in which a was deleted a moment ago, so that its orphan
// watch and the removal of its manager are under way.
func deletedWatched() (w *enginetest.World, id, systemID string) {
	w = enginetest.New("a")
	systemID = w.VM("a").SystemID
	id = w.Ask(fleet.KindDelete, "a")
	for !w.Op(id).Phase.Finished() {
		w.Run(time.Second)
	}
	return w, id, systemID
}

// Somebody makes the deleted VM anew, with the same system_id, and nobody tells
// Sluice: its jobs hang on the manager. Seed 179058 of the worlds.
func TestAManagerThatHasContactedGitLabSinceItsVMIsGoneStays(t *testing.T) {
	w, _, _ := deletedWatched()
	w.SameSystemID = true
	w.Twin("a", "")
	w.Run(time.Hour)
	if w.Calls["deregister"] != 0 {
		t.Errorf("removed %v\n%s", w.Removed, w.Story())
	}
	says(t, w, "deregister: skipped: its manager has contacted GitLab since its VM is gone, at 2026-11-30T12:0")
	closed(t, w)
}

// Seed 179058 of the worlds: no answer is none.
func TestAManagerIsNotRemovedWhileGitLabDoesNotSayWhenItWasContacted(t *testing.T) {
	w, id, systemID := deletedWatched()
	once(w, "managers:before", func() bool { return !openWatch(t, w, id) }, func() {
		refuse(w, "managers", fleet.CodeUnavailable)
	})
	w.Run(time.Hour)
	if w.Calls["deregister"] != 0 {
		t.Fatalf("removed %v\n%s", w.Removed, w.Story())
	}
	w.Refuse["managers"] = nil
	w.Run(time.Hour)
	if !slices.Equal(w.Removed, []string{systemID}) {
		t.Errorf("removed %v\n%s", w.Removed, w.Story())
	}
	closed(t, w)
}

// The last contact of the deleted VM itself is from before it was gone.
func TestAManagerThatWasLastContactedBeforeItsVMWasGoneIsRemoved(t *testing.T) {
	w, _, systemID := deletedWatched()
	contact := w.VMs[0].Contact
	w.Run(time.Hour)
	if contact.IsZero() || !slices.Equal(w.Removed, []string{systemID}) {
		t.Errorf("last contact %s, removed %v\n%s", contact, w.Removed, w.Story())
	}
}

// A drain's orphan watch is under way when its VM vanishes and is deleted: that
// delete gives no stop, and has no watch of its own. GitLab links the lost job to
// the manager. Seed 305486 of the worlds.
func TestTheManagerStaysUntilAnEarlierOperationsWatchOfItHasEnded(t *testing.T) {
	w := losing(false)
	id := w.Ask(fleet.KindDrain, "a")
	for !w.Op(id).Phase.Finished() {
		w.Run(time.Second)
	}
	w.GitLabDown = true
	w.VM("a").Gone = w.Now()
	next, watched := w.Ask(fleet.KindDelete, "a"), false
	w.Fences["deregister"] = func() { watched = !openWatch(t, w, id) }
	for !w.Op(next).Phase.Finished() {
		w.Run(time.Second)
	}
	w.Run(10 * time.Minute)
	w.GitLabDown = false
	w.Run(time.Hour)
	if w.Op(next).Drain.Watches != 0 {
		t.Errorf("the delete has a watch of its own\n%s", w.Story())
	}
	if l := w.Lost[lostJob]; l.Retries != 1 || len(w.Removed) != 1 || !watched {
		t.Errorf("%d retries; removed %v, watched before: %t\n%s", l.Retries, w.Removed, watched, w.Story())
	}
	closed(t, w)
}

// A watch of another system_id of the VM's holds nothing up.
func TestTheManagerDoesNotWaitForTheWatchOfAnotherSystemID(t *testing.T) {
	w := enginetest.New("a")
	w.BootDelay = 0
	id := w.Ask(fleet.KindRecreate, "a")
	for !w.Op(id).Phase.Finished() {
		w.Run(time.Second)
	}
	second := w.VM("a")
	second.Gone = w.Now()
	w.Ask(fleet.KindDelete, "a")
	w.Run(90 * time.Second)
	if !openWatch(t, w, id) || !slices.Contains(w.Removed, second.SystemID) {
		t.Errorf("the first VM's watch is under way: %t; removed %v\n%s", openWatch(t, w, id), w.Removed, w.Story())
	}
}

// openWatch says whether an orphan watch of the operation has not ended.
func openWatch(t *testing.T, w *enginetest.World, id string) bool {
	t.Helper()
	open, err := w.Store.UnfinishedChores(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(open, func(c fleet.Chore) bool { return c.Operation == id && c.Kind == fleet.ChoreOrphanWatch })
}

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

// stays fails unless no manager was removed, and the chore has ended.
func stays(t *testing.T, w *enginetest.World) {
	t.Helper()
	if w.Calls["deregister"] != 0 {
		t.Errorf("removed %v\n%s", w.Removed, w.Story())
	}
	closed(t, w)
}

// copyOf makes a machine of another name under the same system_id, as a clone of
// the disk has it.
func copyOf(w *enginetest.World, vm *enginetest.VM) *enginetest.VM {
	w.Twin("x", "")
	made := w.VMs[len(w.VMs)-1]
	made.SystemID = vm.SystemID
	return made
}

// Who may not see the managers will not see them tomorrow either: the manager
// stays, and that is said once.
func TestAManagerStaysWhereGitLabRefusesTheListOfThemForGood(t *testing.T) {
	w, id, systemID := deletedWatched()
	once(w, "managers:before", func() bool { return !openWatch(t, w, id) }, func() {
		refuse(w, "managers", fleet.CodeForbidden)
	})
	w.Run(48 * time.Hour)
	stays(t, w)
	warning := "[warning] the manager of " + systemID + " stays: whether another VM lives under it cannot be told: refused"
	if n := strings.Count(w.Story(), warning); n != 1 {
		t.Errorf("warned %d times\n%s", n, w.Story())
	}
}

// undated is a GitLab whose answers have no Date once the operation has ended.
type undated struct {
	engine.GitLab
	now func() bool
}

func (u undated) Managers(ctx context.Context) ([]fleet.Manager, time.Time, error) {
	list, at, err := u.GitLab.Managers(ctx)
	if u.now() {
		at = time.Time{}
	}
	return list, at, err
}

// Without GitLab's clock nobody knows whether the last contact was before or
// after the VM was gone.
func TestAManagerStaysWhereGitLabDoesNotSayWhatTimeItHas(t *testing.T) {
	w, id, _ := deletedWatched()
	w.With = func(f *engine.Fleet) { f.GitLab = undated{f.GitLab, func() bool { return w.Op(id).Phase.Finished() }} }
	w.Run(time.Hour)
	stays(t, w)
	says(t, w, "deregister: skipped: GitLab does not say what time it has")
}

// A VM that is off has no watch that would hold its manager's removal up. Its copy
// talks to GitLab now and then: it must have the time to.
func TestAManagerWithoutAWatchIsRemovedOnlyAfterACopyCouldShowItself(t *testing.T) {
	for name, lives := range map[string]bool{"a copy lives": true, "none does": false} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a")
			w.Ask(fleet.KindDrain, "a") // since then its row knows the system_id
			w.Run(time.Hour)
			w.Ask(fleet.KindUndrain, "a")
			w.Run(time.Hour)
			old := w.VM("a")
			old.Off, old.Contact = true, w.Now()
			if lives {
				copyOf(w, old)
			}
			id := w.Ask(fleet.KindDelete, "a")
			w.Run(2 * time.Hour)
			if op := ended(t, w, id, fleet.PhaseSucceeded, ""); op.Drain.Watches != 0 {
				t.Fatalf("%d watches", op.Drain.Watches)
			}
			if lives {
				stays(t, w)
				says(t, w, "its manager has contacted GitLab since its VM is gone")
			} else if !slices.Equal(w.Removed, []string{old.SystemID}) {
				t.Errorf("removed %v\n%s", w.Removed, w.Story())
			}
		})
	}
}

// Of what had vanished before a create nobody knows since when it is gone: it was
// when the create was asked for. A copy that lived then, and has been lost since,
// keeps its manager, too.
func TestTheManagerOfAVanishedVMStaysIfItHadContactSinceTheCreateWasAskedFor(t *testing.T) {
	w := enginetest.New("a")
	w.BootDelay = 5 * time.Minute // so that the copy is long gone when the create is done
	w.Ask(fleet.KindRecreate, "a")
	w.Run(2 * time.Hour)
	old := w.VM("a")
	other := copyOf(w, old)
	old.Gone = w.Now()
	w.Advance(10 * time.Minute)
	id := w.Ask(fleet.KindCreate, "a")
	w.Run(time.Minute)
	other.Gone = w.Now()
	w.Run(2 * time.Hour)
	ended(t, w, id, fleet.PhaseSucceeded, "")
	if slices.Contains(w.Removed, old.SystemID) {
		t.Errorf("removed %v\n%s", w.Removed, w.Story())
	}
	says(t, w, "deregister: skipped: its manager has contacted GitLab since its VM is gone")
	closed(t, w)
}

// A create's own stray came after that: its contacts are its own.
func TestTheManagerOfACreatesStrayIsRemovedThoughItHadContactSinceTheCreateWasAskedFor(t *testing.T) {
	w := enginetest.New("a")
	w.Ask(fleet.KindDelete, "a")
	w.Run(3 * time.Hour)
	id := w.Ask(fleet.KindCreate, "a")
	for w.Op(id).Phase != fleet.PhaseVerifying {
		w.Run(time.Second)
	}
	w.Twin("a", id)
	twin := w.VMs[len(w.VMs)-1]
	w.JobOn(twin.ID, 77, 5*time.Minute)
	w.Run(4 * time.Hour)
	ended(t, w, id, fleet.PhaseSucceeded, "")
	if twin.Gone.IsZero() || !slices.Contains(w.Removed, twin.SystemID) {
		t.Errorf("removed %v, not %s\n%s", w.Removed, twin.SystemID, w.Story())
	}
	closed(t, w)
}

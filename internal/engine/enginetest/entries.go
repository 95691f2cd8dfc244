package enginetest

import (
	"context"
	"fmt"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Entry is one VM's own runner entry.
type Entry struct {
	Name string
	Born time.Time
	Gone bool
}

// OwnEntries makes the fleet one with registration individual: each VM has an
// entry of its own, and each new one registers another.
func (w *World) OwnEntries() *World {
	w.Spec.Registration, w.Spec.RunnerID, w.Spec.HasRunnerToken = fleet.RegistrationIndividual, 0, false
	w.Entries = map[int64]*Entry{}
	for _, vm := range w.VMs {
		w.register(vm)
		if own := w.Entries[vm.Entry]; own != nil {
			own.Born = w.now.Add(-time.Hour)
		}
	}
	return w
}

// register is what the create script does.
func (w *World) register(vm *VM) {
	if w.Entries == nil {
		return
	}
	for _, before := range w.VMs {
		if w.SameEntry && before != vm && before.Name == vm.Name {
			vm.Entry = before.Entry
			return
		}
	}
	vm.Entry = int64(100 + len(w.Entries))
	w.Entries[vm.Entry] = &Entry{Name: Fleet + "/" + vm.Name, Born: w.now}
	if w.Registered != nil {
		w.Registered(vm)
	}
}

// LeftEntries lists the entries that there are and that no living VM has.
func (w *World) LeftEntries() []int64 {
	var left []int64
	for id := int64(100); id < int64(100+len(w.Entries)); id++ {
		used := w.Entries[id].Gone
		for _, vm := range w.VMs {
			used = used || vm.Entry == id && !vm.absent(w.now)
		}
		if !used {
			left = append(left, id)
		}
	}
	return left
}

// entries is a GitLab of entries.
type entries struct{ gitlab }

func (e entries) Entry(id int64) engine.GitLab { return gitlab{w: e.w, entry: id} }

// there says whether GitLab shows an entry.
func (w *World) there(id int64) error {
	if own := w.Entries[id]; own != nil && !own.Gone {
		return nil
	}
	return fleet.Errorf(fleet.CodeNotFound, "404 Runner Not Found")
}

func (e entries) RemoveEntry(ctx context.Context, claim fleet.EntryClaim) (string, error) {
	w := e.w
	if err := w.before("remove-entry"); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", fleet.Errorf(fleet.CodeUnavailable, "nothing was sent: %w", err)
	}
	if err := w.there(claim.Entry); err != nil {
		return "", err
	}
	own := w.Entries[claim.Entry]
	state := fleet.EntryState{
		Description: own.Name, CreatedAt: own.Born, At: w.now, Managers: gitlab{w: w, entry: claim.Entry}.managers(),
	}
	if doubt := claim.Doubt(state, w.now); doubt != "" {
		return doubt, nil
	}
	if fence := w.Fences["remove-entry:effect"]; fence != nil {
		delete(w.Fences, "remove-entry:effect")
		fence()
	}
	own.Gone = true
	w.RemovedEntries = append(w.RemovedEntries, claim.Entry)
	w.journal("remove entry %d", claim.Entry)
	return "", w.answer("remove-entry")
}

// String helps a failing test.
func (e *Entry) String() string { return fmt.Sprintf("%s of %s, gone %v", e.Name, e.Born, e.Gone) }

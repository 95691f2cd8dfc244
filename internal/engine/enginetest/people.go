package enginetest

import (
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Twin makes a second machine of a name, labelled as an operation's: a create
// that succeeds late, after its attempt was given up. It yields its id.
func (w *World) Twin(name, operation string) string {
	vm := w.birth(name, operation)
	vm.Ready = w.now
	vm.start(w.now)
	return vm.ID
}

// JobOn lets a job run on a machine by id.
func (w *World) JobOn(id string, job int64, length time.Duration) {
	for _, vm := range w.VMs {
		if vm.ID == id {
			vm.Busy, vm.BusyUntil = job, w.now.Add(length)
		}
	}
}

// Replace deletes a VM and makes another of its name, as a person would.
func (w *World) Replace(name string) {
	old := w.VM(name)
	old.Busy = 0
	old.Gone = w.now
	vm := w.birth(name, "")
	vm.Ready = w.now
	vm.start(w.now)
}

// Orphan makes GitLab show a job as running on a VM that never received it.
func (w *World) Orphan(name string, job fleet.Job) { w.OrphanOn(w.VM(name), job) }

// OrphanOn is Orphan of one machine among several of its name.
func (w *World) OrphanOn(vm *VM, job fleet.Job) {
	job.Status = "running"
	vm.Orphans = append(vm.Orphans, job)
	if w.Lost == nil {
		w.Lost = map[int64]*Lost{}
	}
	w.Lost[job.ID] = &Lost{vm: vm, Job: job}
}

// ClearOrphans ends them, as a person's cancel would.
func (w *World) ClearOrphans(name string) { w.VM(name).Orphans = nil }

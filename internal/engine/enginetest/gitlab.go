package enginetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// gitlab is GitLab seen through the fleet's entry, or through a VM's own.
type gitlab struct {
	w     *World
	entry int64
}

func (g gitlab) managers() []fleet.Manager {
	var list []fleet.Manager
	for i, vm := range g.w.VMs {
		if vm.Pids == 0 || vm.Never || vm.Entry != g.entry || g.w.removed(vm.SystemID) {
			continue
		}
		m := fleet.Manager{ID: g.w.manager(i), SystemID: vm.SystemID, Status: "online", Execution: fleet.ExecutionIdle, CreatedAt: vm.Born, ContactedAt: vm.Contact}
		if vm.Busy != 0 || len(vm.Orphans) > 0 {
			m.Execution = fleet.ExecutionActive
		}
		list = append(without(list, m.SystemID), m)
	}
	return list
}

// manager is GitLab's id of the nth machine's manager: the one that the first
// machine with its system_id got.
func (w *World) manager(n int) int64 {
	return 1 + int64(slices.IndexFunc(w.VMs, func(vm *VM) bool { return vm.SystemID == w.VMs[n].SystemID }))
}

// without leaves out a system_id: machines that share one are one manager, and
// the last to speak wins.
func without(list []fleet.Manager, systemID string) []fleet.Manager {
	return slices.DeleteFunc(list, func(m fleet.Manager) bool { return m.SystemID == systemID })
}

func (w *World) removed(systemID string) bool {
	for _, id := range w.Removed {
		if id == systemID {
			return true
		}
	}
	return false
}

func (g gitlab) Read(_ context.Context, about fleet.Subject, after time.Time) *fleet.GitLabReading {
	g.w.Asked = append(g.w.Asked, after)
	r := &fleet.GitLabReading{Subject: about, TakenAt: g.w.now, ServerTime: g.w.now}
	if err := g.w.before("read"); err != nil || g.w.GitLabDown {
		r.Unknown = "500 Internal Server Error"
		return r
	}
	if g.w.Entries != nil {
		if g.entry = about.Entry; g.w.there(g.entry) != nil {
			r.Unknown = "the VM's runner entry is not known, or gone"
			return r
		}
	}
	for _, m := range g.managers() {
		if m.SystemID == about.SystemID {
			r.Present, r.Manager = true, m
		}
	}
	for _, vm := range g.w.VMs {
		if vm.SystemID != about.SystemID {
			continue
		}
		r.Running = append(r.Running, vm.Orphans...)
		if vm.Busy != 0 {
			r.Running = append(r.Running, fleet.Job{ID: vm.Busy, Status: "running", StartedAt: vm.Born, URL: g.w.JobURL(vm.Busy)})
		}
	}
	if !r.Present {
		r.Unknown = "the manager is not listed"
	}
	return r
}

// JobURL is where people see a job.
func (w *World) JobURL(id int64) string {
	return fmt.Sprintf("%s/acme/app/-/jobs/%d", w.Spec.GitLabURL, id)
}

func (g gitlab) Managers(context.Context) ([]fleet.Manager, time.Time, error) {
	if err := g.w.before("managers"); err != nil {
		return nil, time.Time{}, err
	}
	if g.w.GitLabDown {
		return nil, time.Time{}, fleet.Errorf(fleet.CodeUnavailable, "500 Internal Server Error")
	}
	if g.w.Entries != nil {
		if err := g.w.there(g.entry); err != nil {
			return nil, time.Time{}, err
		}
	}
	return g.managers(), g.w.now, nil
}

func (g gitlab) Runner(context.Context) (engine.RunnerInfo, error) {
	if g.w.Entries == nil {
		return engine.RunnerInfo{ID: g.w.Spec.RunnerID}, nil
	}
	if err := g.w.before("runner"); err != nil {
		return engine.RunnerInfo{}, err
	}
	if err := g.w.there(g.entry); err != nil {
		return engine.RunnerInfo{}, err
	}
	return engine.RunnerInfo{ID: g.entry, Description: g.w.Entries[g.entry].Name, CreatedAt: g.w.Entries[g.entry].Born}, nil
}

func (g gitlab) TraceEmpty(context.Context, fleet.Job) (bool, error) {
	return true, g.w.before("trace")
}

type registrar struct{ w *World }

func (r registrar) RemoveManager(ctx context.Context, systemID string) error {
	if err := r.w.before("deregister"); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "nothing was sent: %w", err)
	}
	r.w.Removed = append(r.w.Removed, systemID)
	r.w.journal("deregister %s", systemID)
	return r.w.answer("deregister")
}

func (r registrar) TokenAlive(context.Context) error {
	if r.w.TokenDead {
		return fleet.Errorf(fleet.CodeForbidden, "403 Forbidden")
	}
	return nil
}

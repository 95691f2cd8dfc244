package enginetest

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

type hosts struct{ w *World }

// find yields the machine behind a target, if it answers.
func (h hosts) find(t engine.Target) (*VM, error) {
	for _, vm := range h.w.VMs {
		if vm.ID != t.Instance || vm.absent(h.w.now) {
			continue
		}
		if vm.Off || vm.Cutoff || vm.Ready.After(h.w.now) {
			break
		}
		h.w.settle(vm)
		return vm, nil
	}
	return nil, fleet.Errorf(fleet.CodeUnavailable, "connection refused")
}

func (h hosts) reading(t engine.Target, vm *VM) *fleet.HostReading {
	r := &fleet.HostReading{
		Subject: fleet.Subject{Ref: t.Ref, Incarnation: fleet.Incarnation{Instance: t.Instance, BootID: vm.Boot, SystemID: vm.SystemID}},
		TakenAt: h.w.now, Unit: vm.Unit, DropIn: vm.DropIn, ContainersKnown: true,
		Containers: append([]fleet.Container(nil), vm.Leftovers...),
	}
	if vm.Busy != 0 {
		r.Containers = append(r.Containers, fleet.Container{Name: "runner-job", State: "running", JobID: vm.Busy})
	}
	return r
}

func (h hosts) Inspect(ctx context.Context, t engine.Target) (*fleet.HostFacts, error) {
	if err := h.w.ask(ctx, "inspect"); err != nil {
		return nil, err
	}
	vm, err := h.find(t)
	if err != nil {
		return nil, err
	}
	f := &fleet.HostFacts{
		Reading: *h.reading(t, vm), UnitLoaded: true, ConfigKnown: true, SystemIDs: []string{vm.SystemID},
		Entries: []fleet.RunnerEntry{{Name: "shared", ID: vm.Entry, TokenPrefix: "glrt-", TokenExpiresAt: vm.TokenExpires}},
	}
	if vm.Unregisters {
		f.Unregisters = []string{"remove-registration.service"}
	}
	if vm.Never {
		f.SystemIDs, f.Reading.Subject.SystemID, f.Entries = nil, "", nil
	}
	if vm.Unit.MainPID != 0 {
		f.RunnerPIDs, f.MainCommand = []int{vm.Unit.MainPID}, []string{"/usr/bin/gitlab-runner", "run"}
	}
	return f, nil
}

func (h hosts) Look(ctx context.Context, t engine.Target) (*fleet.HostReading, error) {
	if err := h.w.ask(ctx, "look"); err != nil {
		return nil, err
	}
	vm, err := h.find(t)
	if err != nil {
		return nil, err
	}
	return h.reading(t, vm), nil
}

func (h hosts) Glance(ctx context.Context, t engine.Target) (*fleet.HostReading, error) {
	if err := h.w.ask(ctx, "glance"); err != nil {
		return nil, err
	}
	vm, err := h.find(t)
	if err != nil {
		return nil, err
	}
	r := h.reading(t, vm)
	r.Containers, r.ContainersKnown = nil, false
	return r, nil
}

// obey checks an order as the host-side script does.
func (h hosts) obey(vm *VM, o fleet.Order) error {
	switch {
	case o.BootID != "" && o.BootID != vm.Boot:
		return fleet.Errorf(fleet.CodeConflict, "the order is for another boot")
	case o.Number < vm.Number:
		return fleet.Errorf(fleet.CodeConflict, "order %d is too late: %w", o.Number, fleet.Late{Obeyed: vm.Number, Of: vm.DropIn.Operation})
	case vm.DropIn.Present && vm.DropIn.Owner != o.Owner && !o.TakeOver:
		return fleet.Errorf(fleet.CodeConflict, "drained by another owner: %s", vm.DropIn.Owner)
	}
	vm.Number = o.Number
	return nil
}

func (h hosts) do(call string, t engine.Target, o fleet.Order, effect func(*VM) error) (*fleet.HostReading, error) {
	if err := h.w.before(call); err != nil {
		return nil, err
	}
	vm, err := h.find(t)
	if err != nil {
		return nil, err
	}
	if err := h.obey(vm, o); err != nil {
		return nil, err
	}
	if err := effect(vm); err != nil {
		return nil, err
	}
	h.w.settle(vm)
	h.w.journal("%s %s %s #%d", call, vm.Name, vm.ID, o.Number)
	if err := h.w.answer(call); err != nil {
		return nil, err
	}
	return h.reading(t, vm), nil
}

func (h hosts) StopIntake(_ context.Context, t engine.Target, o fleet.Order) (*fleet.HostReading, error) {
	return h.do("stop", t, o, func(vm *VM) error {
		vm.DropIn = fleet.DropIn{Present: true, Effective: true, Owner: o.Owner, Operation: o.Operation, Number: o.Number}
		vm.StartQueued = false
		if vm.Unit.MainPID != 0 {
			vm.Unit.ActiveState, vm.Unit.SubState, vm.Quit = "deactivating", "stop-sigterm", true
		} else {
			vm.Unit.ActiveState = "inactive"
		}
		return nil
	})
}

func (h hosts) StartIntake(_ context.Context, t engine.Target, o fleet.Order) (*fleet.HostReading, error) {
	return h.do("start", t, o, func(vm *VM) error {
		if vm.Unit.ActiveState != "active" {
			vm.StartQueued = true
		}
		return nil
	})
}

func (h hosts) ReleaseIntake(_ context.Context, t engine.Target, o fleet.Order) (*fleet.HostReading, error) {
	return h.do("release", t, o, func(vm *VM) error {
		if vm.Unit.ActiveState == "deactivating" {
			return fleet.Errorf(fleet.CodeConflict, "the unit is deactivating")
		}
		vm.DropIn = fleet.DropIn{}
		return nil
	})
}

func (h hosts) EndJobs(_ context.Context, t engine.Target, o fleet.Order) error {
	_, err := h.do("end", t, o, func(vm *VM) error {
		h.w.cut(vm)
		return nil
	})
	return err
}

func (h hosts) AwaitExit(_ context.Context, t engine.Target, pid int, limit time.Duration) (*fleet.HostReading, error) {
	if err := h.w.before("await"); err != nil {
		return nil, err
	}
	vm, err := h.find(t)
	if err != nil {
		return nil, err
	}
	end := h.w.now.Add(limit)
	if vm.Busy != 0 && vm.BusyUntil.Before(end) {
		end = vm.BusyUntil
	}
	if vm.Unit.MainPID == pid && (vm.Busy != 0 || !vm.Quit) {
		h.w.Advance(end.Sub(h.w.now))
	}
	if vm, err = h.find(t); err != nil {
		return nil, err
	}
	if vm.Unit.MainPID != 0 {
		return nil, nil
	}
	return h.reading(t, vm), nil
}

func (hosts) Forget(engine.Target) {}

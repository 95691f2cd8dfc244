package engine

import (
	"context"
	"errors"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Sweep is the reconcile that no event replaces: a VM drained on purpose stays
// drained over reboots and other people's starts. It skips VMs with an
// unfinished operation, and leaves one alone that was replaced behind our back
// or has left the configuration.
//
// Errors: joined, of every VM that could not be looked at.
func (e *Engine) Sweep(ctx context.Context) error {
	drained, err := e.drainedVMs(ctx)
	if err != nil {
		return err
	}
	problems := make([]error, len(drained))
	looks := make([]func(), len(drained))
	for i := range drained {
		vm := &drained[i]
		looks[i] = func() { problems[i] = e.keepDrained(ctx, e.Fleets[vm.Fleet], vm) }
	}
	e.together(looks...) // a host that hangs must not hold up the others
	if err := errors.Join(problems...); err != nil {
		return err
	}
	e.Observer.Reconciled(e.now())
	return nil
}

// drainedVMs lists the members that are to stay drained and that no operation
// works on.
func (e *Engine) drainedVMs(ctx context.Context) ([]fleet.VM, error) {
	busy, err := e.busyVMs(ctx)
	if err != nil {
		return nil, err
	}
	var drained []fleet.VM
	for _, name := range e.fleetNames() {
		vms, err := e.Store.VMs(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, vm := range vms {
			if vm.Intake == fleet.IntakeDrained && !vm.Missing && !busy[vm.Ref] && e.Fleets[name].Has(vm.VM) {
				drained = append(drained, vm)
			}
		}
	}
	return drained, nil
}

func (e *Engine) busyVMs(ctx context.Context) (map[fleet.Ref]bool, error) {
	ops, err := e.Store.Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	busy := make(map[fleet.Ref]bool, len(ops))
	for i := range ops {
		busy[ops[i].Ref()] = true
	}
	return busy, nil
}

// keepDrained looks at a VM that was drained on purpose and stops its intake
// again if it was opened.
func (e *Engine) keepDrained(ctx context.Context, f *Fleet, vm *fleet.VM) error {
	list, err := f.Machines.Describe(ctx, vm.VM)
	if err != nil {
		return err
	}
	m := byID(list, vm.Instance)
	if m == nil || m.Presence != fleet.PresenceRunning || m.Address == "" {
		return nil // off, absent or replaced: there is no intake of ours to keep stopped
	}
	t := Target{Ref: vm.Ref, Instance: m.ID, Address: m.Address, HostKeys: m.HostKeys}
	r, err := f.glance(ctx, t)
	if err != nil {
		return err
	}
	if !r.Unit.Known() || (r.DropIn.Effective && r.Unit.ActiveState != "active" && r.Unit.ActiveState != "activating") {
		return nil
	}
	if r.DropIn.Present && r.DropIn.Owner != e.Owner {
		return nil // somebody else has taken it over
	}
	return e.stopAgain(ctx, f, vm, t, r)
}

// stillDrained says whether the VM is still the sweep's: what it read may be
// old by now. It is asked after the order has its number: whatever works on the
// VM from here on takes a higher one, and the host refuses the sweep's.
func (e *Engine) stillDrained(ctx context.Context, vm *fleet.VM) (bool, error) {
	busy, err := e.busyVMs(ctx)
	if err != nil || busy[vm.Ref] {
		return false, err
	}
	now, err := e.Store.VM(ctx, vm.Ref)
	if err != nil {
		return false, err
	}
	return now.Intake == fleet.IntakeDrained && !now.Missing && now.Instance == vm.Instance, nil
}

func (e *Engine) stopAgain(ctx context.Context, f *Fleet, vm *fleet.VM, t Target, r *fleet.HostReading) error {
	number, err := e.Store.NextOrder(ctx, vm.Ref)
	if err != nil {
		return err
	}
	if mine, err := e.stillDrained(ctx, vm); !mine || err != nil {
		return err
	}
	order := fleet.Order{Verb: fleet.OrderStop, Owner: e.Owner, Operation: "sweep", Number: number, BootID: r.Subject.BootID}
	if _, err := f.Hosts.StopIntake(ctx, t, order); err != nil {
		return err
	}
	e.Log.WarnContext(ctx, "a drained VM had its intake opened; it is stopped again", "fleet", vm.Fleet, "vm", vm.VM)
	return e.Store.AppendFacts(ctx, []fleet.Fact{{
		At: e.now(), Fleet: vm.Fleet, VM: vm.VM, Kind: fleet.FactWarning,
		Text: "the VM is meant to stay drained, but its intake was open (a reboot, or somebody's start): it is stopped again",
	}})
}

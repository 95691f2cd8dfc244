package doctor

import (
	"context"
	"fmt"
	"slices"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// instances lists what the provider has of the fleet, by VM; nil and a finding
// if it does not say.
func (e *examination) instances(ctx context.Context) map[string][]fleet.Instance {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	list, err := e.patient.Machines.List(ctx)
	if err != nil {
		e.add(failure(CodeProviderUnread, "", err))
		return nil
	}
	byVM := map[string][]fleet.Instance{}
	for _, m := range list {
		byVM[m.VM] = append(byVM[m.VM], m)
	}
	e.extras(list)
	return byVM
}

// extras finds instances that the provider counts to the fleet and the
// configuration does not.
func (e *examination) extras(list []fleet.Instance) {
	for _, m := range list {
		if m.Presence != fleet.PresenceAbsent && !e.spec.Has(m.VM) {
			e.found(CodeVMExtra, "", fmt.Sprintf("the provider has instance %s of a VM %q, which the configuration of fleet %s does not name", m.ID, m.VM, e.spec.Name))
		}
	}
}

// instance yields the VM's running instance, or nil and a finding.
func (e *examination) instance(vm string, list []fleet.Instance) *fleet.Instance {
	switch {
	case len(list) == 0:
		f := finding(CodeVMMissing, vm, "the provider knows no VM of this name")
		f.Mend = fmt.Sprintf("sluice create %s/%s", e.spec.Name, vm)
		e.add(f)
	case len(list) > 1:
		e.found(CodeVMAmbiguous, vm, fmt.Sprintf("the provider has %d instances of this name: %s and %s", len(list), list[0].ID, list[1].ID))
	case list[0].Presence != fleet.PresenceRunning:
		e.found(CodeVMOff, vm, fmt.Sprintf("instance %s is %s", list[0].ID, list[0].Presence))
	case list[0].Address == "":
		e.found(CodeVMNoAddress, vm, fmt.Sprintf("instance %s has no address", list[0].ID))
	default:
		return &list[0]
	}
	return nil
}

// creatable asks the provider, as preflight does, whether a VM could be made
// anew: right, template, image, names. The template is the fleet's, so one VM
// stands for all.
func (e *examination) creatable(ctx context.Context) {
	if len(e.vms) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	vm := slices.Min(e.vms)
	if _, err := e.patient.Machines.Prepare(ctx, vm, e.spec.Image); err != nil {
		e.add(failure(createCode(err), "", err))
	}
}

// createCode is why a VM could not be made anew (engine.Machines).
func createCode(err error) Code {
	switch fleet.CodeOf(err) {
	case fleet.CodeForbidden:
		return CodeCreateForbidden
	case fleet.CodeImageMissing:
		return CodeImageMissing
	case fleet.CodeInvalid, fleet.CodeConflict:
		return CodeCreateInvalid
	case fleet.CodeQuota, fleet.CodeStockout:
		return CodeNoRoom
	default:
		return CodeCreateUnknown
	}
}

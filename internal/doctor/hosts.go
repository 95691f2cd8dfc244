package doctor

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// hosts examines each VM: what the provider says of it, whether it can be
// reached, and whether it is as it must be.
func (e *examination) hosts(ctx context.Context) {
	e.seen = map[string]*fleet.HostFacts{}
	if e.patient.AnyHostKey {
		e.found(CodeHostKeysOff, "", "host.host_keys is off: any host key is taken")
	}
	listing, cancel := context.WithTimeout(ctx, readLimit)
	list, err := e.patient.Machines.List(listing)
	cancel()
	if err != nil {
		e.add(failure(CodeProviderUnread, "", err))
		return
	}
	byVM := map[string][]fleet.Instance{}
	for _, m := range list {
		byVM[m.VM] = append(byVM[m.VM], m)
	}
	var group errgroup.Group
	group.SetLimit(sideBySide)
	for _, vm := range e.vms {
		if m := e.instance(vm, byVM[vm]); m != nil {
			group.Go(func() error { e.host(ctx, m); return nil })
		}
	}
	_ = group.Wait() // its functions add findings and do not err
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

func (e *examination) host(ctx context.Context, m *fleet.Instance) {
	ctx, cancel := context.WithTimeout(ctx, hostLimit)
	defer cancel()
	ref := fleet.Ref{Fleet: e.spec.Name, VM: m.VM}
	facts, err := e.patient.Hosts.Inspect(ctx, engine.Target{Ref: ref, Instance: m.ID, Address: m.Address, HostKeys: m.HostKeys})
	if err != nil {
		e.add(failure(reachCode(err), m.VM, err))
		return
	}
	e.mu.Lock()
	e.seen[m.VM] = facts
	e.mu.Unlock()
	for _, r := range fleet.Refusals(ref, e.spec.Host, facts) {
		e.add(failure(Code(r.Fault), m.VM, r.Err))
	}
	e.weaknesses(m.VM, facts)
}

// reachCode is why a host could not be inspected (engine.Hosts).
func reachCode(err error) Code {
	switch fleet.CodeOf(err) {
	case fleet.CodeConflict:
		return CodeHostKeyWrong
	case fleet.CodeForbidden:
		return CodeLoginRefused
	case fleet.CodeInvalid:
		return CodeHostUnusable
	default:
		return CodeHostUnreachable
	}
}

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
	listing, cancel := context.WithTimeout(ctx, readLimit)
	list, err := e.patient.Machines.List(listing)
	cancel()
	if err != nil {
		e.add(failure(SeverityError, "", "provider", err, "no VM can be found, deleted or created"))
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
	problem := func(severity Severity, what, would, mend string) *fleet.Instance {
		e.add(Finding{Severity: severity, VM: vm, Check: "reach", What: what, Would: would, Mend: mend})
		return nil
	}
	switch {
	case len(list) == 0:
		return problem(SeverityWarning, "the provider knows no VM of this name", "it does not serve", fmt.Sprintf("sluice create %s/%s", e.spec.Name, vm))
	case len(list) > 1:
		return problem(SeverityError, fmt.Sprintf("the provider has %d instances of this name: %s and %s", len(list), list[0].ID, list[1].ID),
			"Sluice cannot tell which one is meant and refuses", "delete the one that is not wanted, by its id")
	case list[0].Presence != fleet.PresenceRunning:
		return problem(SeverityWarning, fmt.Sprintf("instance %s is %s", list[0].ID, list[0].Presence), "it does not serve", "start it, or recreate it")
	case list[0].Address == "":
		return problem(SeverityError, fmt.Sprintf("instance %s has no address", list[0].ID), "it cannot be reached to stop its intake", "see that the provider reports one")
	}
	return &list[0]
}

func (e *examination) host(ctx context.Context, m *fleet.Instance) {
	ctx, cancel := context.WithTimeout(ctx, hostLimit)
	defer cancel()
	ref := fleet.Ref{Fleet: e.spec.Name, VM: m.VM}
	facts, err := e.patient.Hosts.Inspect(ctx, engine.Target{Ref: ref, Instance: m.ID, Address: m.Address, HostKeys: m.HostKeys})
	if err != nil {
		e.add(failure(SeverityError, m.VM, "reach", err, "its intake cannot be stopped: an operation waits for it and then fails"))
		return
	}
	e.mu.Lock()
	e.seen[m.VM] = facts
	e.mu.Unlock()
	if err := fleet.RefuseHost(ref, e.spec.Host, facts); err != nil {
		e.add(failure(SeverityError, m.VM, checkOf(facts, err), err, "operations on it are refused before anything is stopped"))
	}
}

// checkOf names the examination that a refusal belongs to.
func checkOf(facts *fleet.HostFacts, err error) string {
	switch {
	case fleet.CodeOf(err) == fleet.CodeForbidden:
		return "sudo"
	case fleet.CodeOf(err) == fleet.CodeConflict, len(facts.SystemIDs) != 1:
		return "identity"
	default:
		return "units"
	}
}

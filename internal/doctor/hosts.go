package doctor

import (
	"context"

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
	byVM := e.instances(ctx)
	if byVM == nil {
		return
	}
	e.creatable(ctx)
	var group errgroup.Group
	group.SetLimit(sideBySide)
	for _, vm := range e.vms {
		if m := e.instance(vm, byVM[vm]); m != nil {
			group.Go(func() error { e.host(ctx, m); return nil })
		}
	}
	_ = group.Wait() // its functions add findings and do not err
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

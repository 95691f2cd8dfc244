package engine

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// preflightHost judges what the host said, before anything is stopped.
func (w *work) preflightHost(ctx context.Context, facts *fleet.HostFacts) (outcome, error) {
	reading := facts.Reading
	if !reading.Unit.Known() && facts.UnitLoaded {
		return outcome{}, fleet.Errorf(fleet.CodeUnavailable, "%s: systemd gave an empty answer", w.op.Ref())
	}
	w.sawHost(&reading, "")
	if err := fleet.RefuseHost(w.op.Ref(), w.f.Host, facts); err != nil {
		return outcome{}, err
	}
	if err := w.refuseForeign(reading.DropIn); err != nil {
		return outcome{}, err
	}
	if len(facts.SystemIDs) == 1 {
		reading.Subject.SystemID = facts.SystemIDs[0]
	}
	w.op.Old.BootID, w.op.Old.SystemID = reading.Subject.BootID, reading.Subject.SystemID
	if w.op.Order.Verb == "" { // else it took over a VM that Sluice itself had stopped
		w.op.WasDown = reading.Unit.Stopped()
	}
	runs := reading.Unit.MainPID != 0 || len(facts.RunnerPIDs) > 0
	w.op.SeenRun = w.op.SeenRun || runs
	if err := w.f.known(ctx, w.op.Ref(), &w.op.Old, facts); err != nil {
		return outcome{}, err
	}
	never, err := w.preflightManager(ctx, facts, runs)
	if err != nil {
		return outcome{}, err
	}
	w.op.Drain.Verdict, w.op.Drain.VerdictAt = "", time.Time{} // an earlier look's is out of date
	if never {
		w.op.Drain.Verdict, w.op.Drain.VerdictAt = fleet.VerdictNever, w.now()
		w.fact(fleet.FactNote, "no runner runs on %s and GitLab knows no manager of it: there is nothing to drain", w.op.Ref())
	}
	if done, err := w.identifyPeers(ctx); err != nil || !done {
		return outcome{}, err
	}
	if err := w.refuseClone(ctx); err != nil {
		return outcome{}, err
	}
	vm, err := w.row(ctx)
	if err != nil {
		return outcome{}, storeError{err}
	}
	vm.Incarnation, vm.Address, vm.UpdatedAt = w.op.Old, w.op.OldAddr, w.now()
	vm.Missing = false
	return move(fleet.EventChecked)
}

// refuseForeign refuses another owner's drop-in and names the owner.
func (w *work) refuseForeign(d fleet.DropIn) error {
	if !d.Present || d.Owner == w.Owner || w.op.Request.TakeOver {
		return nil
	}
	return fleet.Errorf(fleet.CodeConflict, "%s is drained by another owner: %s (operation %s)", w.op.Ref(), d.Owner, d.Operation).
		WithHint("ask that owner, or take the VM over with --take-over")
}

// preflightManager finds the host's runner among GitLab's managers. never =
// it has not joined: no process, now or lately, and no manager.
func (w *work) preflightManager(ctx context.Context, facts *fleet.HostFacts, runs bool) (never bool, err error) {
	if w.f.GitLab == nil {
		w.saw(fleet.SourceGitLab, w.now(), "not asked: no token for it is configured")
		return !runs && w.op.Old.SystemID == "", nil
	}
	if w.f.Entries != nil && w.op.Old.Entry == 0 {
		w.saw(fleet.SourceGitLab, w.now(), "not asked: the host has no runner entry")
		return true, nil
	}
	managers, _, err := w.f.through(w.op.Old).Managers(ctx)
	if err != nil {
		return false, err
	}
	found := 0
	for _, m := range managers {
		if m.SystemID == w.op.Old.SystemID && m.SystemID != "" {
			w.op.Old.Manager = m.ID
			w.saw(fleet.SourceGitLab, w.now(), m.Words())
			found++
		}
	}
	if found == 0 {
		w.saw(fleet.SourceGitLab, w.now(), "no manager has this host's system_id")
	}
	switch {
	case found == 1:
		return false, nil
	case found > 1:
		return false, fleet.Errorf(fleet.CodeConflict, "%s: GitLab lists %d managers with system_id %s", w.op.Ref(), found, w.op.Old.SystemID).
			WithHint("machines cloned with one machine-id share a system_id; give each its own")
	case !runs:
		if !w.op.SeenRun && !facts.EndedLately() {
			return true, nil
		}
		w.fact(fleet.FactNote, "GitLab does not list the manager of a runner that has run on %s just now: it is drained as one that had joined, until GitLab agrees or the cap passes; `sluice op skip-drain` goes on at once", w.op.Ref())
		return false, nil
	case len(managers) == 0:
		return false, fleet.Errorf(fleet.CodeInvalid, "%s: the token sees no manager of runner %d at all", w.op.Ref(), w.f.entryOf(w.op.Old)).
			WithHint("is runner.id right, and is gitlab.token of a group Owner (group runner), project Maintainer (project runner) or administrator (instance runner)? `sluice doctor %s` tells", w.op.Fleet)
	default:
		return false, fleet.Errorf(fleet.CodeInvalid, "%s: GitLab does not know the host's system_id %s among the %d managers of runner %d", w.op.Ref(), w.op.Old.SystemID, len(managers), w.f.entryOf(w.op.Old)).
			WithHint("the VM runs another runner entry than runner.id, or another GitLab; `sluice doctor %s` lists both sides", w.op.Fleet)
	}
}

// refuseClone refuses a system_id that another known VM has: GitLab sees both
// as one manager, and its answers would mean nothing (cases.md T53).
func (w *work) refuseClone(ctx context.Context) error {
	other, err := w.sibling(ctx, w.op.Old.SystemID)
	if other == nil || err != nil {
		return err
	}
	return fleet.Errorf(fleet.CodeConflict, "%s and %s have the same system_id %s: GitLab cannot tell them apart", w.op.Ref(), other.Ref, other.SystemID).
		WithHint("give each VM its own machine-id (an image must ship an empty /etc/machine-id and no .runner_system_id), then recreate one of them with delete --no-drain and create")
}

// sibling yields another known VM that has the system_id, nil if there is none.
func (w *work) sibling(ctx context.Context, systemID string) (*fleet.VM, error) {
	if systemID == "" {
		return nil, nil
	}
	for _, name := range w.fleetNames() {
		vms, err := w.Store.VMs(ctx, name)
		if err != nil {
			return nil, storeError{err}
		}
		for _, other := range vms {
			if !w.Fleets[name].Has(other.VM) {
				continue // taken out of the configuration, perhaps to give it another name
			}
			if other.Ref != w.op.Ref() && other.SystemID == systemID && !other.Missing {
				return &other, nil
			}
		}
	}
	return nil, nil
}

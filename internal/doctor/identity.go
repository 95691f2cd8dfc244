package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// identities compares the hosts with each other and with GitLab's managers.
func (e *examination) identities() {
	owners := map[string][]string{}
	for _, vm := range slices.Sorted(maps.Keys(e.seen)) {
		facts := e.seen[vm]
		if len(facts.SystemIDs) != 1 {
			continue // refused already, or no runner has started yet
		}
		id := facts.SystemIDs[0]
		owners[id] = append(owners[id], vm)
		e.baked(vm, id, facts)
		e.manager(vm, id, facts)
	}
	for _, id := range slices.Sorted(maps.Keys(owners)) {
		if vms := owners[id]; len(vms) > 1 {
			e.found(CodeSystemIDShared, vms[0], fmt.Sprintf("system_id %s is on %d hosts: %s", id, len(vms), strings.Join(vms, ", ")))
		}
	}
	e.strangers(owners)
}

// baked finds a system_id that the image has brought along. One that begins
// with r_ is random: gitlab-runner found no machine-id, so there is nothing to
// compare it with.
func (e *examination) baked(vm, id string, facts *fleet.HostFacts) {
	if len(facts.OwnSystemIDs) > 0 && strings.HasPrefix(id, "s_") && !slices.Contains(facts.OwnSystemIDs, id) {
		e.found(CodeSystemIDBaked, vm, fmt.Sprintf("the .runner_system_id says %s, but this machine's machine-id makes it %s", id, facts.OwnSystemIDs[0]))
	}
}

func (e *examination) manager(vm, systemID string, facts *fleet.HostFacts) {
	if !e.managersKnown {
		return
	}
	var found []fleet.Manager
	for _, m := range e.managers {
		if m.SystemID == systemID {
			found = append(found, m)
		}
	}
	running := facts.Reading.Unit.MainPID != 0
	switch {
	case len(found) == 0 && running:
		e.found(CodeVMWithoutManager, vm, fmt.Sprintf("GitLab knows no manager with system_id %s under %s", systemID, e.runner()))
	case len(found) > 1:
		e.found(CodeManagerAmbiguous, vm, fmt.Sprintf("GitLab has %d managers with system_id %s", len(found), systemID))
	case len(found) == 1 && running && found[0].Status == "offline":
		f := finding(CodeManagerOffline, vm, "the runner runs, but GitLab calls its manager offline")
		f.Mend = "see the runner's log on the host: journalctl -u " + e.spec.Host.Unit
		e.add(f)
	}
}

// strangers finds managers that no VM of the fleet is. Those of earlier
// incarnations are normal: GitLab calls them online for two hours
// (facts/gitlab.md section 2), but they have been silent since the VMs that
// there are now have joined. Nothing is said unless every VM of the fleet was
// seen, and no other fleet shares the entry.
func (e *examination) strangers(owners map[string][]string) {
	if !e.managersKnown || !e.alone || len(e.seen) < len(e.spec.VMs) {
		return
	}
	var joined time.Time // the last of our VMs
	known := 0
	for _, m := range e.managers {
		if len(owners[m.SystemID]) == 0 {
			continue
		}
		known += len(owners[m.SystemID])
		if m.CreatedAt.After(joined) {
			joined = m.CreatedAt
		}
	}
	if known < len(e.spec.VMs) {
		return // one that GitLab knows by another id, perhaps
	}
	for _, m := range e.managers {
		if len(owners[m.SystemID]) == 0 && m.Status == "online" && m.ContactedAt.After(joined) {
			e.found(CodeManagerWithoutVM, "", fmt.Sprintf("manager %d (system_id %s) has contacted GitLab at %s, and no VM of the fleet is it",
				m.ID, m.SystemID, m.ContactedAt.UTC().Format(time.RFC3339)))
		}
	}
}

package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
		e.manager(vm, id, facts)
	}
	for _, id := range slices.Sorted(maps.Keys(owners)) {
		if vms := owners[id]; len(vms) > 1 {
			e.add(Finding{
				Severity: SeverityError, VM: vms[0], Check: "identity",
				What:  fmt.Sprintf("system_id %s is on %d hosts: %s", id, len(vms), strings.Join(vms, ", ")),
				Would: "GitLab cannot tell them apart, so neither is ever proven idle",
				Mend:  "the image carries a machine-id or .runner_system_id: remove both from it (an empty /etc/machine-id is made anew at boot), then recreate the VMs",
			})
		}
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
		e.add(Finding{
			Severity: SeverityError, VM: vm, Check: "identity", What: fmt.Sprintf("GitLab knows no manager with system_id %s under runner %d", systemID, e.spec.RunnerID),
			Would: "its jobs cannot be seen: operations on it are refused", Mend: "see that the host's config.toml holds a token of this runner entry, and that the runner has contacted GitLab",
		})
	case len(found) > 1:
		e.add(Finding{
			Severity: SeverityWarning, VM: vm, Check: "identity", What: fmt.Sprintf("GitLab has %d managers with system_id %s", len(found), systemID),
			Would: "GitLab's word on it is ambiguous and counts as unknown", Mend: "remove the stale ones on the runner's page in GitLab",
		})
	case len(found) == 1 && found[0].Execution == fleet.ExecutionUnknown:
		e.add(Finding{
			Severity: SeverityWarning, VM: vm, Check: "gitlab", What: "GitLab does not say whether the manager runs a job (job_execution_status is missing)",
			Would: "idle cannot be proven by GitLab; at the cap on_unproven decides", Mend: "use GitLab 18 or newer",
		})
	case len(found) == 1 && running && found[0].Status == "offline":
		e.add(Finding{
			Severity: SeverityWarning, VM: vm, Check: "identity", What: "the runner runs, but GitLab calls its manager offline",
			Would: "it gets no jobs", Mend: "see the runner's log on the host: journalctl -u " + e.spec.Host.Unit,
		})
	}
}

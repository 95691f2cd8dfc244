package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// The codes of fleets whose VMs have a runner entry each.
const (
	CodeEntryUnknown  Code = "runner-entry-unknown"
	CodeEntryShared   Code = "runner-entry-shared"
	CodeEntriesRemain Code = "runner-entries-remain"
)

var entryKinds = []Kind{
	{
		CodeEntryUnknown, "identity", SeverityError, "the VM's config.toml does not name one runner entry of its own (registration: individual)",
		refused, "leave one [[runners]] section, with the id that `gitlab-runner register` writes",
	},
	{
		CodeEntryShared, "identity", SeverityWarning, "two VMs have the same runner entry (registration: individual)",
		"the entry stays when one of them is deleted", "register each VM's own in its create script, or set registration: fleet",
	},
	{
		CodeEntriesRemain, "token", SeverityWarning, "registration is individual, and there is no gitlab.write_token",
		"the runner entries of deleted VMs stay in GitLab", "set gitlab.write_token to one with scope api (manage_runner, with drain.recover_orphans: false) of a user who may delete the entries, or set registration: none",
	},
}

// ownEntries reads GitLab through the runner entry of each VM that was seen, as
// gitlab does where the VMs share one.
func (e *examination) ownEntries(ctx context.Context) {
	if e.patient.Entries == nil {
		return
	}
	if e.patient.EntriesRemain {
		e.found(CodeEntriesRemain, "", "there is no gitlab.write_token")
	}
	if e.scopeless {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	owners, whole := map[int64][]string{}, true
	for _, vm := range slices.Sorted(maps.Keys(e.seen)) {
		id, err := fleet.OwnEntry(fleet.Ref{Fleet: e.spec.Name, VM: vm}, e.seen[vm])
		switch {
		case err != nil:
			e.add(failure(CodeEntryUnknown, vm, err))
			whole = false
			continue
		case id == 0: // no runner has joined from there
			continue
		}
		if owners[id] = append(owners[id], vm); len(owners[id]) == 1 {
			whole = e.entry(ctx, vm, id) && whole
		}
	}
	e.managersKnown = whole
	if len(e.managers) > 0 {
		e.execution(ctx)
	}
	for _, id := range slices.Sorted(maps.Keys(owners)) {
		if vms := owners[id]; len(vms) > 1 {
			e.found(CodeEntryShared, vms[0], fmt.Sprintf("runner entry %d is in the config.toml of %s", id, strings.Join(vms, ", ")))
		}
	}
}

// entry reads one VM's own, and says whether its managers are known.
func (e *examination) entry(ctx context.Context, vm string, id int64) bool {
	own := e.patient.Entries.Entry(id)
	info, err := own.Runner(ctx)
	if err != nil {
		e.add(failure(CodeGitLabUnread, vm, err))
		return false
	}
	if info.Paused {
		e.found(CodeRunnerPaused, vm, fmt.Sprintf("runner %d is paused in GitLab", id))
	}
	managers, _, err := own.Managers(ctx)
	if err != nil {
		e.add(failure(CodeGitLabUnread, vm, err))
		return false
	}
	e.managers = append(e.managers, managers...)
	return true
}

// runner names what a VM's manager is looked for under.
func (e *examination) runner() string {
	if e.spec.Individual() {
		return "its runner entry"
	}
	return fmt.Sprintf("runner %d", e.spec.RunnerID)
}

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// gitlab examines the runner entry and reads its managers.
func (e *examination) gitlab(ctx context.Context) {
	if e.patient.GitLab == nil || e.patient.Entries != nil || e.scopeless {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	info, err := e.patient.GitLab.Runner(ctx)
	if err != nil {
		e.add(failure(CodeGitLabUnread, "", err))
		return
	}
	if info.Paused {
		e.found(CodeRunnerPaused, "", fmt.Sprintf("runner %d is paused in GitLab", info.ID))
	}
	e.managers, _, err = e.patient.GitLab.Managers(ctx)
	switch {
	case err != nil:
		e.add(failure(CodeGitLabUnread, "", err))
	case len(e.managers) == 0:
		e.found(CodeNoManagerSeen, "", fmt.Sprintf("the token sees no manager of runner %d", info.ID))
	default:
		e.managersKnown = true
		e.execution(ctx)
	}
	e.projects(ctx)
}

// execution finds a server that does not say whether a manager runs a job.
func (e *examination) execution(ctx context.Context) {
	if !slices.ContainsFunc(e.managers, func(m fleet.Manager) bool { return m.Execution == fleet.ExecutionUnknown }) {
		return
	}
	server := "GitLab"
	if e.patient.Version != nil {
		if version, err := e.patient.Version(ctx); err == nil && version != "" {
			server += " " + version
		}
	}
	e.found(CodeGitLabTooOld, "", server+" does not say whether a manager runs a job (job_execution_status is missing)")
}

// projects finds those whose jobs the token does not see.
func (e *examination) projects(ctx context.Context) {
	if e.patient.UnseenProjects == nil {
		return
	}
	unseen, err := e.patient.UnseenProjects(ctx)
	switch {
	case err != nil:
		e.add(failure(CodeTokenSightUnknown, "", err))
	case len(unseen) > 0:
		e.found(CodeTokenBlind, "", "the GitLab token's user is less than a Reporter in "+strings.Join(unseen, ", "))
	}
}

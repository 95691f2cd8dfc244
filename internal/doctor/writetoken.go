package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

const reportedOnly = "jobs that are lost in the instant of a stop are reported, and not run again"

var writeTokenKinds = []Kind{
	{
		CodeRecoversNothing, "token", SeverityWarning, "drain.recover_orphans or drain.retry_cut_jobs is set, and nothing can be canceled and retried",
		reportedOnly, "set gitlab.write_token to one with scope api, and leave recover_orphans on",
	},
	{
		CodeWriteTokenRefused, "token", SeverityWarning, "GitLab refuses the write token",
		reportedOnly, "put a valid one with scope api into gitlab.write_token",
	},
	{
		CodeWriteTokenScope, "token", SeverityWarning, "the write token has not the scope api",
		reportedOnly, "make a token with scope api and put it into gitlab.write_token",
	},
	{
		CodeWriteTokenEndsSoon, "token", SeverityWarning, "the write token expires within two weeks",
		"from then on " + reportedOnly, "rotate it in time",
	},
	{
		CodeWriteTokenRole, "token", SeverityWarning, "the write token's user is less than a Developer in a project of a project runner",
		"that project's lost jobs are reported, and not run again",
		"give the write token's user the Maintainer role there (Developer does, but cannot end a job that stays canceling)",
	},
}

// writeToken examines the token that cancels and retries lost jobs. To have
// none is no fault: they are reported then, as the fleet's page says.
func (e *examination) writeToken(ctx context.Context) {
	switch policy := e.spec.Recovery; {
	case e.spec.Recovers():
	case policy.Asked && !e.spec.HasWriteToken:
		e.found(CodeRecoversNothing, "", "drain.recover_orphans is set, and there is no gitlab.write_token")
	case policy.CutJobs && !e.spec.HasWriteToken:
		e.found(CodeRecoversNothing, "", "drain.retry_cut_jobs is set, and there is no gitlab.write_token")
	case policy.CutJobs:
		e.found(CodeRecoversNothing, "", "drain.retry_cut_jobs is set, and drain.recover_orphans is off")
	}
	if e.patient.WriteToken == nil || !e.spec.Recovery.Orphans && !e.spec.Individual() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	info, err := e.patient.WriteToken(ctx)
	switch {
	case fleet.CodeOf(err) == fleet.CodeForbidden:
		e.add(failure(CodeWriteTokenRefused, "", err))
		return
	case err == nil && !info.CanWrite && e.spec.Recovery.Orphans: // manage_runner is enough to remove entries
		e.found(CodeWriteTokenScope, "", fmt.Sprintf("the write token has the scopes %s, not api", strings.Join(info.Scopes, ", ")))
		return
	case err == nil && !info.ExpiresAt.IsZero() && info.ExpiresAt.Sub(e.now) < soon:
		e.found(CodeWriteTokenEndsSoon, "", "the write token expires "+info.ExpiresAt.Format(time.DateOnly))
	}
	if e.patient.UnwritableProjects == nil {
		return
	}
	if projects, err := e.patient.UnwritableProjects(ctx); err == nil && len(projects) > 0 {
		e.found(CodeWriteTokenRole, "", "the write token's user is less than a Developer in "+strings.Join(projects, ", "))
	}
}

package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// soon is how near an expiry is worth a warning.
const soon = 14 * 24 * time.Hour

// tokens examines what Sluice itself was given.
func (e *examination) tokens(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	switch {
	case !e.spec.HasGitLab && !e.spec.HasRunnerToken:
		e.add(Finding{
			Severity: SeverityError, Check: "token", What: "the fleet has neither a GitLab token nor a runner token",
			Would: "nothing could be proven: drains are refused", Mend: "set gitlab.token (scope read_api) or the fleet's runner.token",
		})
	case !e.spec.HasGitLab:
		e.add(Finding{
			Severity: SeverityWarning, Check: "token", What: "there is no GitLab token",
			Would: "drains rest on host evidence alone; jobs are not named and orphans are not found", Mend: "set gitlab.token to one with scope read_api",
		})
	}
	e.gitlabToken(ctx)
	if e.patient.Registrar != nil {
		e.runnerToken(ctx)
	}
}

func (e *examination) gitlabToken(ctx context.Context) {
	if e.patient.Token == nil {
		return
	}
	info, err := e.patient.Token(ctx)
	switch {
	case err != nil: // what it cannot do shows below; that it may not describe itself does no harm
		return
	case !info.CanRead:
		e.add(Finding{
			Severity: SeverityError, Check: "token", What: fmt.Sprintf("the GitLab token has the scopes %s, not read_api", strings.Join(info.Scopes, ", ")),
			Would: "GitLab's word stays unknown, and drains end undecided at the cap", Mend: "make a token with scope read_api and put it into gitlab.token",
		})
	case !info.ExpiresAt.IsZero() && info.ExpiresAt.Sub(e.now) < soon:
		e.add(Finding{
			Severity: SeverityWarning, Check: "token", What: "the GitLab token expires " + info.ExpiresAt.Format(time.DateOnly),
			Would: "from then on GitLab's word is unknown", Mend: "rotate it in time",
		})
	}
}

func (e *examination) runnerToken(ctx context.Context) {
	err := e.patient.Registrar.TokenAlive(ctx)
	switch {
	case err == nil:
	case fleet.CodeOf(err) == fleet.CodeForbidden:
		e.refused = err
	default:
		e.add(failure(SeverityWarning, "", "token", err, "it is not known whether the runner token lives"))
	}
	if e.patient.TokenExpiry == nil {
		return
	}
	if at, err := e.patient.TokenExpiry(ctx); err == nil && !at.IsZero() {
		e.add(Finding{
			Severity: SeverityError, Check: "token", What: "the runner token expires " + at.UTC().Format(time.RFC3339),
			Would: "the first runner that rotates it ends it for every other VM of the fleet", Mend: "remove the expiry of runner tokens in GitLab's settings and reset it once by hand",
		})
	}
}

// gitlab examines the runner entry and reads its managers.
func (e *examination) gitlab(ctx context.Context) {
	if e.patient.GitLab == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	const blind = "GitLab's word stays unknown, and drains end undecided at the cap"
	info, err := e.patient.GitLab.Runner(ctx)
	if err != nil {
		e.add(failure(SeverityError, "", "gitlab", err, blind))
		return
	}
	if info.Paused {
		e.add(Finding{
			Severity: SeverityWarning, Check: "gitlab", What: fmt.Sprintf("runner %d is paused in GitLab", info.ID),
			Would: "no VM of the fleet gets jobs, and a new one never shows that it serves by a job", Mend: "resume it in GitLab; Sluice never does",
		})
	}
	e.managers, _, err = e.patient.GitLab.Managers(ctx)
	switch {
	case err != nil:
		e.add(failure(SeverityError, "", "gitlab", err, blind))
	case len(e.managers) == 0:
		e.add(Finding{
			Severity: SeverityError, Check: "gitlab", What: fmt.Sprintf("the token sees no manager of runner %d", info.ID),
			Would: blind, Mend: "check runner.id, and that the token's user may see the runner",
		})
	default:
		e.managersKnown = true
	}
}

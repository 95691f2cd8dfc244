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
		e.found(CodeNoToken, "", "the fleet has neither a GitLab token nor a runner token")
	case !e.spec.HasGitLab:
		e.found(CodeNoGitLabToken, "", "there is no GitLab token")
	}
	e.gitlabToken(ctx)
	e.runnerToken(ctx)
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
		e.scopeless = true // all it may not read has this one cause
		e.found(CodeTokenScope, "", fmt.Sprintf("the GitLab token has the scopes %s, not read_api", strings.Join(info.Scopes, ", ")))
	case !info.ExpiresAt.IsZero() && info.ExpiresAt.Sub(e.now) < soon:
		e.found(CodeTokenEndsSoon, "", "the GitLab token expires "+info.ExpiresAt.Format(time.DateOnly))
	}
}

func (e *examination) runnerToken(ctx context.Context) {
	if e.patient.Registrar != nil {
		err := e.patient.Registrar.TokenAlive(ctx)
		switch {
		case err == nil:
		case fleet.CodeOf(err) == fleet.CodeForbidden:
			e.refused = err
		default:
			e.add(failure(CodeRunnerTokenUnknown, "", err))
		}
	}
	if e.patient.TokenExpiry == nil || e.scopeless {
		return
	}
	if at, err := e.patient.TokenExpiry(ctx); err == nil && !at.IsZero() {
		e.found(CodeRunnerTokenExpires, "", "the runner token expires "+at.UTC().Format(time.RFC3339))
	}
}

package gitlab

import (
	"context"
	"net/http"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Registrar speaks with a runner token: an engine.Registrar. The token goes
// into a body or a header, never into a URL.
type Registrar struct {
	in    *Instance
	token string
}

var _ engine.Registrar = (*Registrar)(nil)

// Registrar returns the one for a runner authentication token (glrt-…).
func (in *Instance) Registrar(token string) *Registrar {
	return &Registrar{in: in, token: token}
}

// deadToken does not advise a new runner entry: a wrong runner.token gets the
// same 403, and the hosts' own token may live.
const deadToken = "GitLab knows no such runner token: see that runner.token is the token in the VMs' config.toml; `sluice doctor` compares them" //nolint:gosec // words for people, no credential

// RemoveManager implements engine.Registrar. It removes one manager; the
// shared token stays valid (facts/gitlab.md section 3).
func (r *Registrar) RemoveManager(ctx context.Context, systemID string) error {
	if systemID == "" {
		return fleet.Errorf(fleet.CodeInvalid, "no manager was removed: its system_id is not known")
	}
	c := call{
		what: "remove the manager " + systemID, client: r.in.runner,
		method: http.MethodDelete, path: "runners/managers",
		body:   managerRef{Token: r.token, SystemID: systemID},
		secret: r.token, hint403: deadToken,
	}
	a, err := r.in.do(ctx, c)
	if fleet.CodeOf(err) != fleet.CodeNotFound {
		return err
	}
	if !isJSON(a.Header.Get("Content-Type")) { // somebody else's 404
		return r.in.badAnswer(c, a.Response)
	}
	return nil
}

// TokenAlive implements engine.Registrar: 200 and 501 are alive, 403 is dead,
// all else is unknown. The call plants no manager and is no heartbeat.
func (r *Registrar) TokenAlive(ctx context.Context) error {
	a, err := r.in.do(ctx, call{
		what: "say whether the runner token is alive", client: r.in.runner,
		method: http.MethodGet, path: "runners/router/discovery",
		headers: map[string]string{"Runner-Token": r.token},
		secret:  r.token,
		hint403: deadToken,
		hint404: "this GitLab is older than 18.7 and cannot say it",
	})
	if a.Response != nil && a.StatusCode == http.StatusNotImplemented {
		return nil
	}
	return err
}

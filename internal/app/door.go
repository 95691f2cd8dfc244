package app

import (
	"context"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/doctor"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func (a *App) openAPI(context.Context) error {
	var tokens []access.Token
	for _, t := range a.Config.Server.Tokens {
		tokens = append(tokens, access.Token{Name: t.Name, SHA256: t.SHA256, Expires: t.Expires})
	}
	known, err := access.NewTokens(tokens, clock{})
	if err != nil {
		return fleet.Errorf(fleet.CodeInvalid, "server.tokens: %w", err)
	}
	a.server = api.New(api.Options{
		Control: a.intents, Store: a.journal, Fleets: a.specs, Tokens: known, Clock: clock{}, Version: a.Version, Log: a.log,
		Doctor:  doctor.New(doctor.Options{Fleets: a.hands.patients, Spec: a.intents.Spec, Clock: clock{}}),
		Metrics: promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}),
		Ready:   a.ready,
	})
	return nil
}

// ready says whether the journal can be read. The engine runs before any
// listener is open.
func (a *App) ready(ctx context.Context) error {
	_, err := a.journal.Operations(ctx, control.Filter{Limit: 1})
	return err
}

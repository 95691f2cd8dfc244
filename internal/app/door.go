package app

import (
	"context"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/doctor"
	"gitlab.com/sluice-runners/sluice/internal/whereabouts"
)

func (a *App) openAPI(context.Context) error {
	wakes := waker{own: a.own, queue: a.queue}
	if a.engine != nil {
		wakes.interrupt = a.engine.Interrupt
	}
	intents := control.New(control.Options{
		Fleets: a.specs, Store: a.journal, Waker: wakes, Clock: clock{}, Log: a.log,
	})
	known, err := a.tokens()
	if err != nil {
		return err
	}
	a.server = api.New(api.Options{
		Control: intents, Store: a.journal, Fleets: a.specs, Tokens: known, Clock: clock{}, Version: a.Version, Log: a.log,
		Pipelines: a.pipelines(),
		Locator:   whereabouts.New(whereabouts.Options{Fleets: a.hands.fleets, Store: a.journal, Log: a.log}),
		Refused:   func(reason access.Reason) { a.metrics.AccessRefused(string(reason)) },
		Doctor:    doctor.New(doctor.Options{Fleets: a.hands.patients, Spec: intents.Spec, Clock: clock{}}),
		Metrics:   promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}),
		Ready:     a.ready,
	})
	return nil
}

// ready says whether the journal can be read. The engine runs before any
// listener is open.
func (a *App) ready(ctx context.Context) error {
	_, err := a.journal.Operations(ctx, control.Filter{Limit: 1})
	return err
}

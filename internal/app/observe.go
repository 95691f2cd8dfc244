package app

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/hooks"
	"gitlab.com/sluice-runners/sluice/internal/metrics"
)

var (
	_ engine.Observer = (*metrics.Metrics)(nil)
	_ hooks.Observer  = (*metrics.Metrics)(nil)
)

func (a *App) openMetrics(context.Context) error {
	a.registry = prometheus.NewRegistry()
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var err error
	a.metrics, err = metrics.New(a.registry, metrics.Options{
		Fleets: a.specs, Version: a.Version, Clock: clock{}, State: a.state,
		Routes: gitlab.Routes(), Providers: []string{providerExec}, Refusals: refusals(),
		Events: hooks.Events(), Results: hooks.Results(),
	})
	return err
}

// state reads what the gauges show.
func (a *App) state(ctx context.Context) (metrics.State, error) {
	ops, err := a.journal.Unfinished(ctx)
	if err != nil {
		return metrics.State{}, err
	}
	vms, err := a.journal.Census(ctx)
	return metrics.State{Unfinished: ops, VMs: vms}, err
}

package app

import (
	"context"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/metrics"
)

// counted wraps a fleet's machines so that each call is counted.
func counted(provider string, inner engine.Machines, m *metrics.Metrics) engine.Machines {
	return &machines{inner: inner, count: func(call string, err error) { m.ProviderRequest(provider, call, err) }}
}

type machines struct {
	inner engine.Machines
	count func(call string, err error)
}

// List implements engine.Machines.
func (m *machines) List(ctx context.Context) ([]fleet.Instance, error) {
	list, err := m.inner.List(ctx)
	m.count("list", err)
	return list, err
}

// Describe implements engine.Machines.
func (m *machines) Describe(ctx context.Context, vm string) ([]fleet.Instance, error) {
	list, err := m.inner.Describe(ctx, vm)
	m.count("describe", err)
	return list, err
}

// Prepare implements engine.Machines.
func (m *machines) Prepare(ctx context.Context, vm, image string) (fleet.Prepared, error) {
	prepared, err := m.inner.Prepare(ctx, vm, image)
	m.count("prepare", err)
	return prepared, err
}

// Check implements engine.Machines.
func (m *machines) Check(ctx context.Context, vm string, p fleet.Prepared) error {
	err := m.inner.Check(ctx, vm, p)
	m.count("check", err)
	return err
}

// Create implements engine.Machines.
func (m *machines) Create(ctx context.Context, o engine.CreateOrder) (engine.Progress, error) {
	progress, err := m.inner.Create(ctx, o)
	m.count("create", err)
	return progress, err
}

// Delete implements engine.Machines.
func (m *machines) Delete(ctx context.Context, o engine.DeleteOrder) (engine.Progress, error) {
	progress, err := m.inner.Delete(ctx, o)
	m.count("delete", err)
	return progress, err
}

// Remains implements engine.Machines.
func (m *machines) Remains(ctx context.Context, o engine.DeleteOrder) ([]string, error) {
	left, err := m.inner.Remains(ctx, o)
	m.count("remains", err)
	return left, err
}

package engine

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// reachLimit is how long one reading of a host may take. A host that needs
// longer is out of reach: it must not use up the step, or nothing would ever
// be decided about it.
const reachLimit = 10 * time.Second

// inspectLimit is the same for preflight's reading, which asks for more.
const inspectLimit = 20 * time.Second

// look, glance and inspect are the host's, within their limits. The caller tells a host
// that hangs from a step that was ended by its own context.
func (f *Fleet) look(ctx context.Context, t Target) (*fleet.HostReading, error) {
	ctx, cancel := timeout(ctx, reachLimit)
	defer cancel()
	return f.Hosts.Look(ctx, t)
}

func (f *Fleet) glance(ctx context.Context, t Target) (*fleet.HostReading, error) {
	ctx, cancel := timeout(ctx, reachLimit)
	defer cancel()
	return f.Hosts.Glance(ctx, t)
}

func (f *Fleet) inspect(ctx context.Context, t Target) (*fleet.HostFacts, error) {
	ctx, cancel := timeout(ctx, inspectLimit)
	defer cancel()
	return f.Hosts.Inspect(ctx, t)
}

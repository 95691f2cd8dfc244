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

// look and glance are the host's, within reachLimit. The caller tells a host
// that hangs from a step that was ended by its own context.
func (f *Fleet) look(ctx context.Context, t Target) (*fleet.HostReading, error) {
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	return f.Hosts.Look(ctx, t)
}

func (f *Fleet) glance(ctx context.Context, t Target) (*fleet.HostReading, error) {
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	return f.Hosts.Glance(ctx, t)
}

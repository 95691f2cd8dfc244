package engine

import (
	"context"
	"time"
)

// ownTime is a context that ends by a clock of its own. The simulation's do:
// a limit of sixteen seconds must pass on its clock and not on the machine's.
type ownTime interface {
	context.Context
	WithTimeout(d time.Duration) (context.Context, context.CancelFunc)
}

// timeout is context.WithTimeout, by the context's own clock where it has one.
// Every limit of a step is made here.
func timeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if own, ok := ctx.(ownTime); ok {
		return own.WithTimeout(d)
	}
	return context.WithTimeout(ctx, d)
}

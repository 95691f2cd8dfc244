package hooks

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Store keeps deliveries. Every write is one transaction, durable when the call
// returns.
type Store interface {
	// ReceiveDelivery stores a delivery with all of its work, unless it came
	// before: then that one is yielded, and nothing but its count of repeats
	// changes. It may give d the id of an earlier one that came to nothing.
	ReceiveDelivery(ctx context.Context, d *fleet.Delivery) (first *fleet.Delivery, err error)
	// Delivery loads one. CodeNotFound.
	Delivery(ctx context.Context, id string) (*fleet.Delivery, error)
	// UpdateDelivery compares and sets on Revision: CodeConflict.
	UpdateDelivery(ctx context.Context, d *fleet.Delivery) error
	// NewestInLane yields the delivery that counts in a lane.
	NewestInLane(ctx context.Context, lane string) (string, error)
	// Operations lists newest first.
	Operations(ctx context.Context, f control.Filter) ([]fleet.Operation, error)
}

// Control accepts intents (package control).
type Control interface {
	Ask(ctx context.Context, in control.Intent) ([]control.Answer, error)
}

// Waker has a delivery or an operation looked at. A lost wake-up is healed by
// the queue's sweep.
type Waker interface {
	WakeDelivery(ctx context.Context, delivery string) error
	Wake(ctx context.Context, operation string) error
}

// Images says whether an image is there: nil = yes. It changes nothing.
type Images interface {
	Find(ctx context.Context, fleetName, vm, image string) error
}

// Observer counts deliveries by event ([Events]) and result ([Results]).
type Observer interface {
	Delivery(event, result string)
}

// Clock tells the time.
type Clock interface {
	Now() time.Time
}

package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/doctor"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/whereabouts"
)

// Control accepts intents (package control).
type Control interface {
	Ask(ctx context.Context, in control.Intent) ([]control.Answer, error)
	Plan(ctx context.Context, in control.Intent) ([]control.Answer, error)
	Cancel(ctx context.Context, id string, by fleet.Actor) (*fleet.Operation, error)
	Change(ctx context.Context, id string, ch control.Change) (*fleet.Operation, error)
	Resume(ctx context.Context, id, image string, by fleet.Actor) (*fleet.Operation, error)
	Spec(name string) (fleet.Spec, error)
}

// Reader is what the API reads of the store.
type Reader interface {
	Operation(ctx context.Context, id string) (*fleet.Operation, error)
	FindOperation(ctx context.Context, prefix string) (*fleet.Operation, error)
	Operations(ctx context.Context, f control.Filter) ([]fleet.Operation, error)
	Facts(ctx context.Context, after int64, operation string, limit int) ([]fleet.Fact, error)
	LastFact(ctx context.Context) (int64, error)
	VMs(ctx context.Context, fleetName string) ([]fleet.VM, error)
	Chores(ctx context.Context, operation string) ([]fleet.Chore, error)
	Deliveries(ctx context.Context, f fleet.DeliveryFilter) ([]fleet.Delivery, error)
}

// Doctor examines a fleet's VMs without changing them; no VMs named = all.
type Doctor interface {
	Examine(ctx context.Context, fleetName string, vms []string) (doctor.Report, error)
}

// Locator says on which VM of a fleet a CI job runs.
type Locator interface {
	Locate(ctx context.Context, fleetName string, job whereabouts.Job) whereabouts.Place
}

// Options are what a Server is made of.
type Options struct {
	Control   Control
	Store     Reader
	Fleets    map[string]fleet.Spec
	Doctor    Doctor
	Tokens    *access.Tokens
	Pipelines *access.Pipelines           // nil = no id_tokens
	Locator   Locator                     // nil = nobody knows where a job runs
	Refused   func(access.Reason)         // counts refusals; nil = nobody does
	Metrics   http.Handler                // nil = no /metrics
	Ready     func(context.Context) error // nil = always ready
	Clock     interface{ Now() time.Time }
	Version   string
	Log       *slog.Logger
}

package app

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// journal is what is read of the store in every role, and written by control.
type journal interface {
	control.Store
	Unfinished(ctx context.Context) ([]fleet.Operation, error)
	LastFact(ctx context.Context) (int64, error)
	Census(ctx context.Context) ([]fleet.VM, error)
	Deliveries(ctx context.Context, f fleet.DeliveryFilter) ([]fleet.Delivery, error)
	LastDelivery(ctx context.Context, project int64) (time.Time, error)
	Known(ctx context.Context, ref fleet.Ref, instance string) ([]string, error)
	Trust(ctx context.Context, ref fleet.Ref, instance string, keys []string) error
	Close() error
}

// blank is the journal before anything was ever asked for: reading commands
// work on it, and nothing can be written.
type blank struct{}

func (blank) nothing(id string) error {
	return fleet.Errorf(fleet.CodeNotFound, "there is no operation %s: the journal does not exist yet", id).
		WithHint("check store.sqlite in the configuration; the first operation makes the journal")
}

func (blank) readOnly() error {
	return fleet.Errorf(fleet.CodeInternal, "a reading command tried to write")
}

// Insert implements control.Store.
func (b blank) Insert(context.Context, []fleet.Operation, control.Key, func([]control.Inserted) error) ([]control.Inserted, error) {
	return nil, b.readOnly()
}

// Operation implements control.Store.
func (b blank) Operation(_ context.Context, id string) (*fleet.Operation, error) {
	return nil, b.nothing(id)
}

// UpdateOperation implements control.Store.
func (b blank) UpdateOperation(context.Context, *fleet.Operation, []fleet.Fact, *fleet.VM, []fleet.Chore) error {
	return b.readOnly()
}

// Operations implements control.Store.
func (blank) Operations(context.Context, control.Filter) ([]fleet.Operation, error) { return nil, nil }

// FindOperation implements control.Store.
func (b blank) FindOperation(_ context.Context, prefix string) (*fleet.Operation, error) {
	return nil, b.nothing(prefix)
}

// Facts implements control.Store.
func (blank) Facts(context.Context, int64, string, int) ([]fleet.Fact, error) { return nil, nil }

// LastFact is that of an empty event log.
func (blank) LastFact(context.Context) (int64, error) { return 0, nil }

// VM implements control.Store.
func (blank) VM(_ context.Context, ref fleet.Ref) (*fleet.VM, error) {
	return &fleet.VM{Ref: ref, Intake: fleet.IntakeServing}, nil
}

// VMs implements control.Store.
func (blank) VMs(context.Context, string) ([]fleet.VM, error) { return nil, nil }

// Chores implements control.Store.
func (blank) Chores(context.Context, string) ([]fleet.Chore, error) { return nil, nil }

// Unfinished lists nothing.
func (blank) Unfinished(context.Context) ([]fleet.Operation, error) { return nil, nil }

// Census counts nobody.
func (blank) Census(context.Context) ([]fleet.VM, error) { return nil, nil }

// Deliveries lists nothing.
func (blank) Deliveries(context.Context, fleet.DeliveryFilter) ([]fleet.Delivery, error) {
	return nil, nil
}

// LastDelivery is never.
func (blank) LastDelivery(context.Context, int64) (time.Time, error) { return time.Time{}, nil }

// Known knows no host key.
func (blank) Known(context.Context, fleet.Ref, string) ([]string, error) { return nil, nil }

// Trust keeps nothing.
func (b blank) Trust(context.Context, fleet.Ref, string, []string) error { return b.readOnly() }

// Close closes nothing.
func (blank) Close() error { return nil }

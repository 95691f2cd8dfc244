package control

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Waker tells the engine that an operation has something to do. A lost wake-up
// is healed by the engine's sweep.
type Waker interface {
	Wake(ctx context.Context, operation string) error
}

// Clock tells the time.
type Clock interface {
	Now() time.Time
}

// Filter selects operations. Zero fields select all.
type Filter struct {
	Fleet      string
	VM         string
	Unfinished bool
	Limit      int // 0 = 100
}

// Inserted is what became of one operation that was to be inserted.
type Inserted struct {
	Operation fleet.Operation // the new one, or the unfinished one that is in the way
	New       bool
	// Kept is an earlier result of the same key that is under way or went well:
	// it is in nobody's way, finished or not.
	Kept bool
	// Joined is set by accept where the asker attaches to the one in the way: the
	// journal says so, once, and [fleet.Operation.Joined] if it is not begun.
	Joined bool
	// Ended is set by accept where the one in the way gives way: it is stored
	// as given, and the new operation is inserted in its place.
	Ended *fleet.Operation
}

// Store is what control needs of the truth.
type Store interface {
	// Insert stores operations that nobody has begun, in one transaction with
	// the key and a FactAsked for each. Where a VM has an unfinished operation,
	// nothing is inserted for it and that one is yielded. If accept refuses a
	// result (asked before the commit), nothing at all is stored; it may also set
	// Joined and Ended. A key that was used before yields what it yielded then; with another
	// body CodeConflict. From another job, what ended badly is inserted anew.
	Insert(ctx context.Context, ops []fleet.Operation, key Key, accept func([]Inserted) error) ([]Inserted, error)
	Operation(ctx context.Context, id string) (*fleet.Operation, error)
	UpdateOperation(ctx context.Context, op *fleet.Operation, facts []fleet.Fact, vm *fleet.VM, chores []fleet.Chore) error
	// Operations lists newest first.
	Operations(ctx context.Context, f Filter) ([]fleet.Operation, error)
	// FindOperation finds by id or unique prefix. CodeNotFound, CodeConflict.
	FindOperation(ctx context.Context, prefix string) (*fleet.Operation, error)
	// Facts lists the event log after an id, oldest first; operation "" = all.
	Facts(ctx context.Context, after int64, operation string, limit int) ([]fleet.Fact, error)
	VM(ctx context.Context, ref fleet.Ref) (*fleet.VM, error)
	VMs(ctx context.Context, fleetName string) ([]fleet.VM, error)
	Chores(ctx context.Context, operation string) ([]fleet.Chore, error)
}

// Key is an Idempotency-Key and the digest of the request it came with. The
// zero Key is none. Keys are kept for 7 days.
type Key struct {
	Scope  string // keeps the keys of different callers apart
	Value  string
	Digest string
	Job    int64 // the CI job that sends it; 0 = none
}

package enginetest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Store is the truth in memory, held to the engine's half of the contract in
// store/storetest. Rows are copied in and out, so that nothing is shared with
// the engine but what was committed; the engine replaces an operation's slices
// and pointers and never writes through them. It is for one goroutine.
type Store struct {
	points *Points
	ops    map[string]*fleet.Operation
	order  []string // of asking
	vms    map[fleet.Ref]fleet.VM
	chores map[string]fleet.Chore
	added  []string // chores in the order they came
	Facts  []fleet.Fact
}

// NewStore makes an empty store whose commits are points.
func NewStore(p *Points) *Store {
	return &Store{points: p, ops: map[string]*fleet.Operation{}, vms: map[fleet.Ref]fleet.VM{}, chores: map[string]fleet.Chore{}}
}

// ended refuses a write whose context has ended, as a real store does.
func ended(ctx context.Context) error {
	switch err := ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return fleet.Errorf(fleet.CodeCanceled, "canceled before it was stored: %w", err)
	default:
		return fleet.Errorf(fleet.CodeUnavailable, "not stored in time: %w", err)
	}
}

// Insert stores a queued operation.
func (s *Store) Insert(op fleet.Operation) {
	s.ops[op.ID] = &op
	s.order = append(s.order, op.ID)
}

// Operation implements engine.Store.
func (s *Store) Operation(_ context.Context, id string) (*fleet.Operation, error) {
	stored, ok := s.ops[id]
	if !ok {
		return nil, fleet.Errorf(fleet.CodeNotFound, "no operation %s", id)
	}
	op := *stored
	return &op, nil
}

// UpdateOperation implements engine.Store.
func (s *Store) UpdateOperation(ctx context.Context, op *fleet.Operation, facts []fleet.Fact, vm *fleet.VM, chores []fleet.Chore) error {
	s.points.Pass("commit:before")
	if err := ended(ctx); err != nil {
		return err
	}
	stored, err := s.Operation(ctx, op.ID)
	if err != nil {
		return err
	}
	if stored.Revision != op.Revision {
		return fleet.Errorf(fleet.CodeConflict, "operation %s was moved", op.ID)
	}
	op.Revision++
	now := *op
	s.ops[op.ID] = &now
	if vm != nil {
		s.saveVM(*vm)
	}
	for _, c := range chores {
		if _, ok := s.chores[c.ID]; !ok {
			s.chores[c.ID] = c
			s.added = append(s.added, c.ID)
		}
	}
	s.log(facts)
	s.points.Pass("commit:after")
	return nil
}

// log appends to the event log. Ids only rise.
func (s *Store) log(facts []fleet.Fact) {
	for _, fact := range facts {
		fact.ID = int64(len(s.Facts) + 1)
		s.Facts = append(s.Facts, fact)
	}
}

// NextOrder implements engine.Store.
func (s *Store) NextOrder(ctx context.Context, ref fleet.Ref) (int64, error) {
	if err := ended(ctx); err != nil {
		return 0, err
	}
	vm, err := s.VM(ctx, ref)
	if err != nil {
		return 0, err
	}
	vm.OrderNumber++
	s.vms[ref] = *vm
	return vm.OrderNumber, nil
}

// all yields every operation, in the order of asking, to be read only.
func (s *Store) all() iter.Seq[*fleet.Operation] {
	return func(yield func(*fleet.Operation) bool) {
		for _, id := range s.order {
			if !yield(s.ops[id]) {
				return
			}
		}
	}
}

// Unfinished implements engine.Store.
func (s *Store) Unfinished(context.Context) ([]fleet.Operation, error) {
	var list []fleet.Operation
	for op := range s.all() {
		if !op.Phase.Finished() {
			list = append(list, *op)
		}
	}
	return list, nil
}

// VM implements engine.Store.
func (s *Store) VM(_ context.Context, ref fleet.Ref) (*fleet.VM, error) {
	if vm, ok := s.vms[ref]; ok {
		return &vm, nil
	}
	return &fleet.VM{Ref: ref, Intake: fleet.IntakeServing}, nil
}

// saveVM leaves two fields alone that have owners of their own: the order
// number only rises, and Trust is the host keys' own table's.
func (s *Store) saveVM(vm fleet.VM) {
	if before, ok := s.vms[vm.Ref]; ok {
		vm.OrderNumber = max(vm.OrderNumber, before.OrderNumber)
	}
	vm.Trust = nil
	s.vms[vm.Ref] = vm
}

// SaveVM implements engine.Store.
func (s *Store) SaveVM(ctx context.Context, vm *fleet.VM) error {
	s.points.Pass("commit:before")
	if err := ended(ctx); err != nil {
		return err
	}
	s.saveVM(*vm)
	s.points.Pass("commit:after")
	return nil
}

// NoteIdentity implements engine.Store.
func (s *Store) NoteIdentity(ctx context.Context, ref fleet.Ref, is fleet.Incarnation, address string, at time.Time) error {
	s.points.Pass("commit:before")
	if err := ended(ctx); err != nil {
		return err
	}
	vm, err := s.VM(ctx, ref)
	if err != nil {
		return err
	}
	if vm.Instance != "" && vm.Instance != is.Instance {
		return nil
	}
	vm.Incarnation, vm.Address, vm.UpdatedAt = is, address, at
	s.saveVM(*vm)
	s.points.Pass("commit:after")
	return nil
}

// VMs implements engine.Store.
func (s *Store) VMs(_ context.Context, name string) ([]fleet.VM, error) {
	var list []fleet.VM
	for ref, vm := range s.vms {
		if ref.Fleet == name {
			list = append(list, vm)
		}
	}
	slices.SortFunc(list, func(a, b fleet.VM) int { return strings.Compare(a.VM, b.VM) })
	return list, nil
}

// Chore implements engine.Store.
func (s *Store) Chore(_ context.Context, id string) (*fleet.Chore, error) {
	c, ok := s.chores[id]
	if !ok {
		return nil, fleet.Errorf(fleet.CodeNotFound, "no chore %s", id)
	}
	return &c, nil
}

// UpdateChore implements engine.Store.
func (s *Store) UpdateChore(ctx context.Context, c *fleet.Chore, facts []fleet.Fact) error {
	s.points.Pass("commit:before")
	if err := ended(ctx); err != nil {
		return err
	}
	stored, err := s.Chore(ctx, c.ID)
	if err != nil || stored.Revision != c.Revision {
		return fleet.Errorf(fleet.CodeConflict, "chore %s was moved, or is not there", c.ID)
	}
	c.Revision++
	s.chores[c.ID] = *c
	s.log(facts)
	s.points.Pass("commit:after")
	return nil
}

// UnfinishedChores implements engine.Store.
func (s *Store) UnfinishedChores(context.Context) ([]fleet.Chore, error) {
	var list []fleet.Chore
	for _, id := range s.added {
		if c := s.chores[id]; c.FinishedAt.IsZero() {
			list = append(list, c)
		}
	}
	return list, nil
}

// AppendFacts implements engine.Store.
func (s *Store) AppendFacts(ctx context.Context, facts []fleet.Fact) error {
	if err := ended(ctx); err != nil {
		return err
	}
	s.log(facts)
	return nil
}

package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Store is the truth in memory. Rows are copied in and out, so that nothing is
// shared with the engine but what was committed; the engine replaces an
// operation's slices and pointers and never writes through them.
type Store struct {
	points *Points
	ops    map[string]fleet.Operation
	order  []string
	vms    map[fleet.Ref][]byte
	chores map[string][]byte
	Facts  []fleet.Fact
}

// NewStore makes an empty store whose commits are points.
func NewStore(p *Points) *Store {
	return &Store{points: p, ops: map[string]fleet.Operation{}, vms: map[fleet.Ref][]byte{}, chores: map[string][]byte{}}
}

func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

func decode[T any](raw []byte) *T {
	v := new(T)
	if err := json.Unmarshal(raw, v); err != nil {
		panic(err)
	}
	return v
}

// Insert stores a queued operation.
func (s *Store) Insert(op fleet.Operation) {
	s.ops[op.ID] = op
	s.order = append(s.order, op.ID)
}

// Operation implements engine.Store.
func (s *Store) Operation(_ context.Context, id string) (*fleet.Operation, error) {
	op, ok := s.ops[id]
	if !ok {
		return nil, fleet.Errorf(fleet.CodeNotFound, "no operation %s", id)
	}
	return &op, nil
}

// UpdateOperation implements engine.Store.
func (s *Store) UpdateOperation(ctx context.Context, op *fleet.Operation, facts []fleet.Fact, vm *fleet.VM, chores []fleet.Chore) error {
	s.points.Pass("commit:before")
	if ctx.Err() != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "operation %s was not stored: %w", op.ID, ctx.Err())
	}
	stored, err := s.Operation(ctx, op.ID)
	if err != nil {
		return err
	}
	if stored.Revision != op.Revision {
		return fleet.Errorf(fleet.CodeConflict, "operation %s was moved", op.ID)
	}
	op.Revision++
	s.ops[op.ID] = *op
	if vm != nil {
		s.saveVM(vm)
	}
	for _, c := range chores {
		if _, ok := s.chores[c.ID]; !ok {
			s.chores[c.ID] = encode(c)
		}
	}
	s.Facts = append(s.Facts, facts...)
	s.points.Pass("commit:after")
	return nil
}

// Admit implements engine.Store.
func (s *Store) Admit(ctx context.Context, op *fleet.Operation, next fleet.Phase, budget int, at time.Time) (bool, string, error) {
	out := map[string]bool{}
	for _, other := range s.all() {
		if other.VM != op.VM && !other.Phase.Finished() && other.Phase != fleet.PhaseQueued {
			out[other.VM] = true
		}
	}
	for ref, raw := range s.vms {
		if ref.VM != op.VM && !decode[fleet.VM](raw).Serving() {
			out[ref.VM] = true
		}
	}
	own, err := s.VM(ctx, op.Ref())
	if err != nil {
		return false, "", err
	}
	if own.Serving() && len(out) >= budget {
		return false, fmt.Sprintf("%d of at most %d are not serving", len(out), budget), nil
	}
	op.Phase, op.PhaseSince = next, at
	return true, "", s.UpdateOperation(ctx, op, nil, nil, nil)
}

// NextOrder implements engine.Store.
func (s *Store) NextOrder(ctx context.Context, ref fleet.Ref) (int64, error) {
	vm, err := s.VM(ctx, ref)
	if err != nil {
		return 0, err
	}
	vm.OrderNumber++
	s.vms[ref] = encode(vm)
	return vm.OrderNumber, nil
}

func (s *Store) all() []fleet.Operation {
	var list []fleet.Operation
	for _, id := range s.order {
		list = append(list, s.ops[id])
	}
	return list
}

// Unfinished implements engine.Store.
func (s *Store) Unfinished(context.Context) ([]fleet.Operation, error) {
	return slices.DeleteFunc(s.all(), func(op fleet.Operation) bool { return op.Phase.Finished() }), nil
}

// VM implements engine.Store.
func (s *Store) VM(_ context.Context, ref fleet.Ref) (*fleet.VM, error) {
	if raw, ok := s.vms[ref]; ok {
		return decode[fleet.VM](raw), nil
	}
	return &fleet.VM{Ref: ref, Intake: fleet.IntakeServing}, nil
}

// saveVM keeps the highest order number: a row that was read before an order
// must not take it back.
func (s *Store) saveVM(vm *fleet.VM) {
	if raw, ok := s.vms[vm.Ref]; ok {
		vm.OrderNumber = max(vm.OrderNumber, decode[fleet.VM](raw).OrderNumber)
	}
	s.vms[vm.Ref] = encode(vm)
}

// SaveVM implements engine.Store.
func (s *Store) SaveVM(_ context.Context, vm *fleet.VM) error {
	s.points.Pass("commit:before")
	s.saveVM(vm)
	s.points.Pass("commit:after")
	return nil
}

// VMs implements engine.Store.
func (s *Store) VMs(_ context.Context, name string) ([]fleet.VM, error) {
	var list []fleet.VM
	for ref, raw := range s.vms {
		if ref.Fleet == name {
			list = append(list, *decode[fleet.VM](raw))
		}
	}
	slices.SortFunc(list, func(a, b fleet.VM) int { return strings.Compare(a.VM, b.VM) })
	return list, nil
}

// Chore implements engine.Store.
func (s *Store) Chore(_ context.Context, id string) (*fleet.Chore, error) {
	raw, ok := s.chores[id]
	if !ok {
		return nil, fleet.Errorf(fleet.CodeNotFound, "no chore %s", id)
	}
	return decode[fleet.Chore](raw), nil
}

// UpdateChore implements engine.Store.
func (s *Store) UpdateChore(ctx context.Context, c *fleet.Chore, facts []fleet.Fact) error {
	s.points.Pass("commit:before")
	stored, err := s.Chore(ctx, c.ID)
	if err != nil {
		return err
	}
	if stored.Revision != c.Revision {
		return fleet.Errorf(fleet.CodeConflict, "chore %s was moved", c.ID)
	}
	c.Revision++
	s.chores[c.ID] = encode(c)
	s.Facts = append(s.Facts, facts...)
	s.points.Pass("commit:after")
	return nil
}

// UnfinishedChores implements engine.Store.
func (s *Store) UnfinishedChores(context.Context) ([]fleet.Chore, error) {
	var list []fleet.Chore
	for _, raw := range s.chores {
		if c := decode[fleet.Chore](raw); c.FinishedAt.IsZero() {
			list = append(list, *c)
		}
	}
	slices.SortFunc(list, func(a, b fleet.Chore) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// AppendFacts implements engine.Store.
func (s *Store) AppendFacts(_ context.Context, facts []fleet.Fact) error {
	s.Facts = append(s.Facts, facts...)
	return nil
}

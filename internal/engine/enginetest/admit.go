package enginetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Admit implements engine.Store, by the rules that the SQLite store lists.
func (s *Store) Admit(ctx context.Context, op *fleet.Operation, next fleet.Phase, budget fleet.Budget, at time.Time) (bool, string, error) {
	if why := s.mustWait(op, budget); why != "" {
		return false, why, nil
	}
	if stored, err := s.Operation(ctx, op.ID); err != nil || stored.Phase != fleet.PhaseQueued {
		return false, "", fleet.Errorf(fleet.CodeConflict, "operation %s was moved", op.ID)
	}
	admitted := *op
	admitted.Phase, admitted.PhaseSince, admitted.UpdatedAt = next, at, at
	if err := s.UpdateOperation(ctx, &admitted, nil, nil, nil); err != nil {
		return false, "", err
	}
	*op = admitted
	return true, "", nil
}

// mustWait says for whom op has to wait; "" = it does not.
func (s *Store) mustWait(op *fleet.Operation, budget fleet.Budget) string {
	if !op.Kind.Drains() || !s.serving(op.Ref()) {
		return ""
	}
	out := s.notServing(op, budget.Members)
	if len(out) >= budget.Room {
		return budget.Full(op.Fleet, len(out), strings.Join(out, ", "), s.nobodyWorks(op))
	}
	room := budget.Room - len(out)
	for other := range s.all() {
		if other.ID == op.ID {
			break
		}
		if other.Fleet != op.Fleet || other.Phase != fleet.PhaseQueued || !other.Kind.Drains() || !s.serving(other.Ref()) {
			continue
		}
		if room--; room <= 0 || other.Request.Parallel < op.Request.Parallel {
			return fmt.Sprintf("%s (%s) was asked for earlier and goes first", other.ID, other.Ref())
		}
	}
	return ""
}

// nobodyWorks says that op is the first in its fleet's line and that nothing is
// at work.
func (s *Store) nobodyWorks(op *fleet.Operation) bool {
	ahead := true
	for other := range s.all() {
		switch {
		case other.Fleet != op.Fleet || other.Phase.Finished():
		case other.ID == op.ID:
			ahead = false
		case ahead, other.Phase != fleet.PhaseQueued:
			return false
		}
	}
	return true
}

// serving says whether the VM's row calls it so; one without a row serves.
func (s *Store) serving(ref fleet.Ref) bool {
	vm, ok := s.vms[ref]
	return !ok || vm.Serving()
}

// notServing names the fleet's other VMs that are not serving, each once. Of
// members nil, every row counts.
func (s *Store) notServing(op *fleet.Operation, members []string) []string {
	var names []string
	for other := range s.all() {
		if other.Fleet == op.Fleet && other.VM != op.VM && !other.Phase.Finished() && other.Phase != fleet.PhaseQueued {
			names = append(names, other.VM)
		}
	}
	for ref := range s.vms {
		if ref.Fleet == op.Fleet && ref.VM != op.VM && !s.serving(ref) && (members == nil || slices.Contains(members, ref.VM)) {
			names = append(names, ref.VM)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

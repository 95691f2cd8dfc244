package engine

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// What an orphan watch knows of the runner that it is about: whether that has
// ended, when, and who may work under its system_id by now.

// reopened says whether intake on the watched system_id was open again, or may
// have been before the job began: somebody started the runner, it was given
// back, or the next incarnation has the same system_id, or one not known yet.
func (s *watchState) reopened(op *fleet.Operation, vm *fleet.VM, g *fleet.GitLabReading, job fleet.Job) bool {
	switch {
	case s.Reopened, !s.OpenedAt.IsZero(), vm.OrderNumber > s.Order:
		return true
	case op.Drain.Reopened, !op.Phase.Finished() && op.Drain.Verdict == "": // the proof was lost again
		return true
	}
	another := vm.Instance != "" && vm.Instance != s.Subject.Instance && !vm.Missing
	if another && vm.SystemID == s.Subject.SystemID || op.Create.New.SystemID == s.Subject.SystemID {
		return true
	}
	began := op.Create.Began
	return !began.IsZero() && op.Create.New.SystemID == "" && !job.StartedAt.Before(began.Add(serverOffset(g)))
}

// recorded takes over which jobs the operation has told of as cut since.
func (s *watchState) recorded(op *fleet.Operation) {
	if s.Stray {
		return
	}
	for _, job := range op.CutJobs {
		if !slices.Contains(s.Recorded, job.ID) {
			s.Known, s.Recorded = append(s.Known, job.ID), append(s.Recorded, job.ID)
		}
	}
}

// end is when the runner had surely ended: it was seen to, or its VM was gone.
// Zero = neither is known.
func (s *watchState) end(op *fleet.Operation) time.Time {
	if s.NoExit {
		return s.goneBy(op)
	}
	return s.ExitAt
}

// goneBy is when the VM had surely gone. Zero = nobody has seen it go.
func (s *watchState) goneBy(op *fleet.Operation) time.Time {
	if s.Stray || !absent(op) {
		return time.Time{}
	}
	return first(first(op.Create.Began, op.FinishedAt), op.PhaseSince)
}

// fate says what has become of the watched incarnation.
func (r *errand) fate(ctx context.Context, s *watchState, op *fleet.Operation, vm *fleet.VM) (fleet.RunnerFate, error) {
	if s.Stray {
		there, err := r.strayIsThere(ctx, s.Subject.Instance)
		if there {
			return fleet.RunnerInWork, err
		}
		if vm.SystemID == s.Subject.SystemID && !vm.Missing || op.Create.New.SystemID == s.Subject.SystemID {
			return fleet.RunnerStays, err // the one that was kept has it, too
		}
		return fleet.RunnerGone, err
	}
	return s.fate(op, vm), nil
}

// strayIsThere says whether a second VM was not yet seen gone: its chore goes on
// until then.
func (r *errand) strayIsThere(ctx context.Context, instance string) (bool, error) {
	chores, err := r.Store.UnfinishedChores(ctx)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(chores, func(c fleet.Chore) bool {
		var s strayState
		return c.Kind == fleet.ChoreStray && c.Ref() == r.c.Ref() && json.Unmarshal(c.State, &s) == nil && s.Op.Old.Instance == instance
	}), nil
}

func (s *watchState) fate(op *fleet.Operation, vm *fleet.VM) fleet.RunnerFate {
	serves := !vm.Missing && vm.SystemID == s.Subject.SystemID // the next incarnation under the same id, too
	switch ended := op.Phase.Finished(); {
	case serves && ended:
		return fleet.RunnerStays
	case !ended && (serves || !absent(op) || !op.Create.Began.IsZero()): // the next one may be there before that is written
		return fleet.RunnerInWork
	case ended && !absent(op) && !replaced(vm, s.Subject.Instance):
		return fleet.RunnerStays // nobody has seen it go
	default:
		return fleet.RunnerGone
	}
}

// replaced says whether an instance is known not to be the VM's any more. A row
// that knows of none says nothing.
func replaced(vm *fleet.VM, instance string) bool {
	return vm.Missing || vm.Instance != "" && vm.Instance != instance
}

// later says whether a job began after intake was stopped. One that reached a
// runner did not reach the one that was told to stop: somebody has started
// another, or the host was rebooted.
func (s *watchState) later(g *fleet.GitLabReading, job fleet.Job) bool {
	return !s.StopSeen.IsZero() && job.StartedAt.After(s.StopSeen.Add(serverOffset(g)))
}

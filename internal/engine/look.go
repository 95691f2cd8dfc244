package engine

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// step is what a phase does. limit bounds one run of it.
type step struct {
	limit time.Duration
	run   func(context.Context, *work) (outcome, error)
}

// outcome is what a step asks for. The zero outcome runs the next step now.
type outcome struct {
	event fleet.Event   // moves the operation; "" = it stays
	wait  time.Duration // > 0: nothing to do until then
}

func move(event fleet.Event) (outcome, error) { return outcome{event: event}, nil }
func wait(d time.Duration) (outcome, error)   { return outcome{wait: d}, nil }
func again() (outcome, error)                 { return outcome{}, nil }

// steps is the engine's side of the phase table.
var steps = map[fleet.Phase]step{
	fleet.PhaseQueued:    {2 * time.Second, queued},
	fleet.PhasePreflight: {24 * time.Second, preflight},
	fleet.PhaseDraining:  {16 * time.Second, draining},
	fleet.PhaseDeleting:  {16 * time.Second, deleting},
	fleet.PhaseCreating:  {20 * time.Second, creating},
	fleet.PhaseVerifying: {16 * time.Second, verifying},
	fleet.PhaseRestoring: {16 * time.Second, restoring},
}

// Look runs an operation's steps until one waits, the operation has ended, or
// the attempt is used up. Each step is committed on its own. wait says when to
// look again; done that nobody needs to.
//
// Errors: of the store only. What a step meets is written to the operation.
func (e *Engine) Look(ctx context.Context, operation string) (wait time.Duration, done bool, err error) {
	began := e.now()
	a := e.attempt(began)
	for {
		op, err := e.Store.Operation(ctx, operation)
		if err != nil {
			return 0, fleet.CodeOf(err) == fleet.CodeNotFound, err
		}
		if op.Phase.Finished() {
			return 0, true, nil
		}
		if until := op.NotBefore.Sub(e.now()); until > 0 && !op.Canceled {
			return until, false, nil
		}
		if e.now().Sub(began)+steps[op.Phase].limit > Attempt {
			return time.Millisecond, false, nil // go on in the next attempt
		}
		pause, err := e.step(ctx, op, a)
		if fleet.CodeOf(err) == fleet.CodeConflict {
			continue // somebody else moved the row: load it again
		}
		if err != nil || pause > 0 {
			return pause, false, err
		}
	}
}

// step runs one step of the operation's phase and commits what it did, also
// when the step has used up its time.
func (e *Engine) step(ctx context.Context, op *fleet.Operation, a *attempt) (time.Duration, error) {
	f, err := e.fleet(op.Fleet)
	if err != nil {
		e.Log.WarnContext(ctx, "operation waits", "op", op.ID, "fleet", op.Fleet, "vm", op.VM, "phase", op.Phase, "error", err)
		return 30 * time.Second, nil
	}
	s := steps[op.Phase]
	bounded, cancel := timeout(ctx, s.limit)
	defer cancel()
	w := e.work(f, op, a)
	out, err := s.run(bounded, w)
	if err != nil {
		out, err = w.trouble(bounded, err)
	}
	if err != nil {
		return 0, err
	}
	return e.advance(ctx, w, out)
}

// advance applies an outcome: the only place that sets a phase.
func (e *Engine) advance(ctx context.Context, w *work, out outcome) (time.Duration, error) {
	if out.event == "" {
		return out.wait, w.save(ctx)
	}
	next, err := fleet.Transition(w.op.Position(), out.event)
	if err != nil {
		return 0, fleet.Errorf(fleet.CodeInternal, "%s: %w", w.op.ID, err)
	}
	return 0, w.enter(ctx, next)
}

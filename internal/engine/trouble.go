package engine

import (
	"context"
	"errors"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// storeError marks a failure of our own store: the queue's business, never a
// reason to end an operation.
type storeError struct{ err error }

func (s storeError) Error() string { return s.err.Error() }
func (s storeError) Unwrap() error { return s.err }

// trouble decides what becomes of an operation whose step met an error that
// the step did not handle itself. What may pass is tried again, for hours;
// before anything was touched, what cannot pass ends the operation.
func (w *work) trouble(ctx context.Context, err error) (outcome, error) {
	if se, ok := errors.AsType[storeError](err); ok {
		return outcome{}, se.err
	}
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return outcome{}, ctx.Err() // shutting down: nothing is learnt from it
	}
	if fleet.Retryable(fleet.CodeOf(err)) || ctx.Err() != nil || w.op.Phase == fleet.PhaseRestoring {
		return w.backoff(err)
	}
	if next, tErr := fleet.Transition(w.op.Position(), fleet.EventFail); tErr == nil && next == fleet.PhaseFailed {
		return w.fail(err)
	}
	if _, tErr := fleet.Transition(w.op.Position(), fleet.EventRestore); tErr == nil {
		return w.fail(err)
	}
	return w.backoff(err)
}

// backoff waits before the act is tried again: 1 s, doubling to a minute.
func (w *work) backoff(err error) (outcome, error) {
	w.op.Attempts++
	pause := min(time.Second<<min(w.op.Attempts-1, 10), time.Minute)
	w.op.NotBefore = w.now().Add(pause)
	w.waitsFor(text(err), w.op.NotBefore, "it is tried again")
	if w.op.ErrMessage == "" { // else the hint belongs to what ended the operation
		w.op.ErrHint = fleet.HintOf(err)
	}
	return wait(pause)
}

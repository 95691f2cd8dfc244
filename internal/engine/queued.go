package engine

import (
	"context"
	"math"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// queued waits for room in the fleet's budget, whoever asked. What brings a
// VM back, or makes one that is not there, costs nothing.
func queued(ctx context.Context, w *work) (outcome, error) {
	if w.op.Canceled {
		return w.cancel()
	}
	next, err := fleet.Transition(w.op.Position(), fleet.EventAdmitted)
	if err != nil {
		return outcome{}, err
	}
	budget := fleet.Budget{Room: max(w.f.MaxUnavailable, w.op.Request.Parallel, 1), Members: w.f.VMs}
	if !w.op.Kind.Drains() {
		budget.Room = math.MaxInt32
	}
	ok, why, err := w.Store.Admit(ctx, w.op, next, budget, w.now())
	if err != nil {
		return outcome{}, storeError{err}
	}
	if !ok {
		w.watchInherited()
		w.waitsFor(why, time.Time{}, "")
		return wait(2 * time.Second)
	}
	w.fact(fleet.FactPhase, "%s", next)
	w.op.Waiting = ""
	w.Log.InfoContext(ctx, "phase", "op", w.op.ID, "fleet", w.op.Fleet, "vm", w.op.VM, "phase", next)
	return again()
}

// watchInherited looks for the orphans of a stop that an operation was given
// which this one superseded: its own drain, and the watch after that, may be
// hours away, or of another instance.
func (w *work) watchInherited() {
	d := &w.op.Drain
	if d.InheritedStop.IsZero() && d.OrderedAt.IsZero() {
		return
	}
	w.watchOrphans()
	d.InheritedStop, d.OrderedAt = time.Time{}, time.Time{}
}

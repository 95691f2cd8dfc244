package engine

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// work is one run of a step: the operation as loaded, and what is to be
// committed with it.
type work struct {
	*Engine
	f       *Fleet
	op      *fleet.Operation
	attempt *attempt
	before  fleet.Operation // as last committed
	facts   []fleet.Fact
	vm      *fleet.VM
	chores  []fleet.Chore
	commit  func(context.Context, *work) error // to the operation's row, or a chore's
	stray   bool                               // a second VM of ours is removed: the VM's row is not about it
}

func (e *Engine) work(f *Fleet, op *fleet.Operation, a *attempt) *work {
	return &work{Engine: e, f: f, op: op, attempt: a, before: clone(op), commit: commitOperation}
}

func commitOperation(ctx context.Context, w *work) error {
	return w.Store.UpdateOperation(ctx, w.op, w.facts, w.vm, w.chores)
}

// save commits what has been learnt so far, so that the effect which follows
// finds its intent written. Nothing to write costs nothing.
func (w *work) save(ctx context.Context) error {
	if len(w.facts) == 0 && w.vm == nil && len(w.chores) == 0 && reflect.DeepEqual(w.before, *w.op) {
		return nil
	}
	w.op.UpdatedAt = w.now()
	if err := w.commit(ctx, w); err != nil {
		return err
	}
	w.after(ctx)
	return nil
}

// enter commits the operation in its next phase.
func (w *work) enter(ctx context.Context, next fleet.Phase) error {
	now := w.now()
	w.op.Phase, w.op.PhaseSince = next, now
	w.op.Waiting, w.op.Then, w.op.Until = "", "", time.Time{}
	w.op.Attempts, w.op.NotBefore = 0, time.Time{}
	if next.Finished() {
		w.op.FinishedAt = now
	}
	w.fact(fleet.FactPhase, "%s", w.phaseText(next))
	if err := w.save(ctx); err != nil {
		return err
	}
	w.Log.InfoContext(ctx, "phase", "op", w.op.ID, "fleet", w.op.Fleet, "vm", w.op.VM, "phase", next)
	if next.Finished() {
		w.wakeQueued(ctx)
	}
	return nil
}

func (w *work) phaseText(next fleet.Phase) string {
	if next == fleet.PhaseFailed && w.op.ErrMessage != "" {
		return fmt.Sprintf("%s: %s", next, w.op.ErrMessage)
	}
	return string(next)
}

// after tells whoever wants to know what was committed.
func (w *work) after(ctx context.Context) {
	w.Observer.OperationMoved(&w.before, w.op)
	if n := len(w.op.CutJobs) - len(w.before.CutJobs); n > 0 {
		w.Observer.JobsCut(w.op.Fleet, n)
	}
	for _, c := range w.chores {
		if err := w.Waker.WakeChore(ctx, c.ID); err != nil {
			w.Log.WarnContext(ctx, "a chore was not woken; the sweep will find it", "op", w.op.ID, "fleet", w.op.Fleet, "vm", w.op.VM, "chore", c.ID, "error", err)
		}
	}
	w.before = clone(w.op)
	w.facts, w.vm, w.chores = nil, nil, nil
}

// wakeQueued wakes the fleet's queued operations: the budget has room again.
func (w *work) wakeQueued(ctx context.Context) {
	list, err := w.Store.Unfinished(ctx)
	if err != nil {
		return // the queued ones look again by themselves
	}
	for i := range list {
		if list[i].Fleet == w.op.Fleet && list[i].Phase == fleet.PhaseQueued {
			_ = w.Waker.Wake(ctx, list[i].ID) // healed by their own next look
		}
	}
}

// fact adds a line to the event log, committed with the next save.
func (w *work) fact(kind, format string, args ...any) {
	w.facts = append(w.facts, fleet.Fact{
		At: w.now(), Operation: w.op.ID, Fleet: w.op.Fleet, VM: w.op.VM,
		Kind: kind, Phase: w.op.Phase, Text: fmt.Sprintf(format, args...),
	})
}

// waitsFor says what the operation waits for, until when and what then. A
// change is a line in the event log; a repeat is not.
func (w *work) waitsFor(reason string, until time.Time, then string) {
	if w.op.Waiting != reason {
		w.fact(fleet.FactNote, "%s", reason)
	}
	w.op.Waiting, w.op.Until, w.op.Then = reason, until, then
}

// fail ends the operation for err, giving intake back first if we stopped it.
func (w *work) fail(err error) (outcome, error) {
	w.remember(err)
	return w.end(fleet.EventFail)
}

// end ends the operation by an event, by way of restoring if intake may have
// been stopped by us and there still is a way back.
func (w *work) end(event fleet.Event) (outcome, error) {
	at := w.op.Position()
	if _, err := fleet.Transition(at, fleet.EventRestore); at.Stopping && err == nil {
		w.op.Restore.Event = event
		return move(fleet.EventRestore)
	}
	return move(event)
}

func (w *work) remember(err error) {
	w.op.ErrCode, w.op.ErrMessage, w.op.ErrHint = fleet.CodeOf(err), text(err), fleet.HintOf(err)
}

// text renders an error without its hint, which is kept apart.
func text(err error) string {
	if e, ok := err.(*fleet.Error); ok { //nolint:errorlint // only the outermost carries the whole text
		plain := *e
		plain.Hint = ""
		return plain.Error()
	}
	return err.Error()
}

// cancel ends the operation because somebody asked.
func (w *work) cancel() (outcome, error) { return w.end(fleet.EventCancel) }

// order numbers a command to the host and commits it, before it is given.
func (w *work) order(ctx context.Context, verb fleet.OrderVerb, boot string) error {
	number, err := w.Store.NextOrder(ctx, w.op.Ref())
	if err != nil {
		return err
	}
	w.op.Order = fleet.Order{
		Verb: verb, Owner: w.Owner, Operation: w.op.ID, Number: number,
		BootID: boot, TakeOver: w.op.Request.TakeOver,
	}
	return w.save(ctx)
}

// row yields the VM's stored row, to be changed and committed with the next save.
func (w *work) row(ctx context.Context) (*fleet.VM, error) {
	if w.vm != nil {
		return w.vm, nil
	}
	vm, err := w.Store.VM(ctx, w.op.Ref())
	if err != nil {
		return nil, err
	}
	w.vm = vm
	return vm, nil
}

// oldTarget is the host of the incarnation that preflight found.
func (w *work) oldTarget() Target {
	return Target{Ref: w.op.Ref(), Instance: w.op.Old.Instance, Address: w.op.OldAddr, HostKeys: w.op.OldKeys}
}

// newTarget is the host of the incarnation that this operation created.
func (w *work) newTarget() Target {
	return Target{Ref: w.op.Ref(), Instance: w.op.Create.New.Instance, Address: w.op.Create.NewAddr, HostKeys: w.op.Create.HostKeys}
}

// clone copies an operation deep enough to compare: steps replace slices and
// pointers, they do not write through them.
func clone(op *fleet.Operation) fleet.Operation { return *op }

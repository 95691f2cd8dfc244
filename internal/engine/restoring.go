package engine

import (
	"cmp"
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// restoring gives intake back (design.md section 4.1): start with the drop-in
// kept, wait, for hours if a job still runs, until the unit is active anew,
// only then remove the drop-in. It returns to what preflight found.
func restoring(ctx context.Context, w *work) (outcome, error) {
	list, err := w.describe(ctx)
	if err != nil {
		return outcome{}, err
	}
	if w.op.Old.Instance == "" && len(list) > 0 { // an undrain has had no preflight
		w.op.Old.Instance, w.op.OldAddr, w.op.OldKeys = list[0].ID, list[0].Address, list[0].HostKeys
	}
	mine := byID(list, w.op.Old.Instance)
	switch {
	case mine == nil && len(list) == 0 && w.op.OldAddr != "" && !w.hostGone(ctx):
		return w.restoreWaits("the provider does not list instance "+w.op.Old.Instance+", but its host answers", 2*time.Second)
	case mine == nil && w.op.Kind == fleet.KindUndrain:
		w.remember(fleet.Errorf(fleet.CodeNotFound, "%s does not exist: there is nothing to undrain", w.op.Ref()))
		w.watchOrphans() // of the drain that it superseded
		return move(fleet.EventFail)
	case mine == nil:
		w.fact(fleet.FactNote, "instance %s is gone: there is nothing to restore", name(w.op.Old.Instance))
		return w.restored(ctx, nil)
	}
	if mine.Presence == fleet.PresenceOff && w.op.Kind != fleet.KindUndrain {
		w.fact(fleet.FactNote, "instance %s is off: there is no intake to restore", mine.ID)
		return w.restored(ctx, nil)
	}
	if mine.Address != "" {
		w.op.OldAddr, w.op.OldKeys = mine.Address, mine.HostKeys
	}
	reading, err := w.f.glance(ctx, w.oldTarget())
	if err != nil {
		w.sawHost(nil, text(err))
		return outcome{}, err
	}
	w.sawHost(reading, "")
	return w.restoreFrom(ctx, reading)
}

// hostGone says whether the old incarnation's host is out of reach, as it must
// be if the provider is right that the instance is absent.
func (w *work) hostGone(ctx context.Context) bool {
	reading, err := w.f.glance(ctx, w.oldTarget())
	if err != nil {
		return ctx.Err() == nil
	}
	return w.op.OldSubject().Check(reading.Subject) != nil
}

// restoreFrom does the next thing on the way back, by what the host shows.
func (w *work) restoreFrom(ctx context.Context, r *fleet.HostReading) (outcome, error) {
	state := r.Unit.ActiveState
	if w.goesOn(r) && w.now().Sub(w.op.Drain.EndOrderedAt) > fleet.EndGrace {
		w.takeBack() // it was not told to end them, or has not heard it
	}
	if r.Unit.Stopped() && r.DropIn.Effective && w.op.Restore.StartedAt.IsZero() && w.op.Drain.ExitSeenAt.IsZero() && !differ(w.op.Old.BootID, r.Subject.BootID) && r.Unit.Result == "success" {
		w.spareJobs() // they have ended by themselves
	}
	switch {
	case !r.Unit.Known():
		return w.restoreWaits("the host's answer is incomplete", time.Second)
	case r.DropIn.Present && r.DropIn.Owner != w.Owner && !w.op.Request.TakeOver:
		return w.foreignDropIn(r.DropIn)
	case !w.mustRun():
		return w.leaveDown(ctx, r)
	case state == "active" && r.Unit.MainPID != 0 && !r.DropIn.Present && w.outnumbered():
		return w.restored(ctx, r)
	case state == "active" && r.Unit.MainPID != 0:
		return w.release(ctx, r)
	case w.op.Restore.StartedAt.IsZero() || (state != "deactivating" && w.now().Sub(w.op.Restore.StartedAt) > 5*time.Second):
		return w.startIntake(ctx, r)
	case state == "deactivating" && r.Unit.MainPID != 0:
		w.waitsFor("the runner starts anew as soon as its job has ended", time.Time{}, "")
		if err := w.save(ctx); err != nil {
			return outcome{}, storeError{err}
		}
		return w.awaitExit(ctx, r.Unit.MainPID)
	default:
		return w.restoreWaits("the unit is "+word(state), 300*time.Millisecond)
	}
}

// goesOn says whether the runner that the drain found is still there.
func (w *work) goesOn(r *fleet.HostReading) bool {
	state := r.Unit.ActiveState
	return r.Unit.MainPID != 0 && w.op.Drain.ExitSeenAt.IsZero() && !differ(w.op.Old.BootID, r.Subject.BootID) &&
		(state == "deactivating" || state == "active" && w.op.Restore.StartedAt.IsZero())
}

// outnumbered says whether the host has a number from this way back: a stop
// order that is still on its way to the host is refused there. Without one, an
// open intake proves nothing.
func (w *work) outnumbered() bool {
	return w.op.Order.Verb == fleet.OrderStart || w.op.Order.Verb == fleet.OrderRelease
}

func (w *work) restoreWaits(reason string, pause time.Duration) (outcome, error) {
	w.waitsFor(reason, time.Time{}, "")
	return wait(pause)
}

// foreignDropIn ends the restore: what another owner has stopped is not ours.
func (w *work) foreignDropIn(d fleet.DropIn) (outcome, error) {
	err := fleet.Errorf(fleet.CodeConflict, "%s is drained by another owner: %s (operation %s)", w.op.Ref(), d.Owner, d.Operation).
		WithHint("ask that owner, or take the VM over with --take-over")
	if w.op.ErrMessage == "" {
		w.remember(err)
	}
	w.fact(fleet.FactWarning, "%s", text(err))
	w.watchOrphans()
	return move(fleet.EventFail)
}

// leaveDown removes the drop-in from a VM that was down before us.
func (w *work) leaveDown(ctx context.Context, r *fleet.HostReading) (outcome, error) {
	if !r.DropIn.Present && w.outnumbered() {
		return w.restored(ctx, r)
	}
	started := r.Unit.ActiveState == "active" && r.Unit.MainPID != 0 // by somebody else
	if r.DropIn.Present && !r.Unit.Stopped() && !started {
		return w.restoreWaits("the unit is "+word(r.Unit.ActiveState)+"; it was down before", time.Second)
	}
	return w.release(ctx, r)
}

func (w *work) startIntake(ctx context.Context, r *fleet.HostReading) (outcome, error) {
	vm, err := w.row(ctx)
	if err != nil {
		return outcome{}, storeError{err}
	}
	vm.OpenedAt = w.now()
	if err := w.order(ctx, fleet.OrderStart, r.Subject.BootID); err != nil {
		return outcome{}, storeError{err}
	}
	if _, err := w.f.Hosts.StartIntake(ctx, w.oldTarget(), w.op.Order); err != nil {
		if behind, failed := w.catchUp(ctx, err); behind || failed != nil {
			return outcome{}, failed
		}
		return outcome{}, err
	}
	w.op.Restore.StartedAt = w.now()
	w.fact(fleet.FactNote, "the runner was told to start again")
	return again()
}

func (w *work) release(ctx context.Context, r *fleet.HostReading) (outcome, error) {
	w.op.Restore.OpenAt = first(w.op.Restore.OpenAt, w.now())
	if err := w.order(ctx, fleet.OrderRelease, r.Subject.BootID); err != nil {
		return outcome{}, storeError{err}
	}
	after, err := w.f.Hosts.ReleaseIntake(ctx, w.oldTarget(), w.op.Order)
	if behind, failed := w.catchUp(ctx, err); behind || failed != nil {
		return outcome{}, failed
	}
	if fleet.CodeOf(err) == fleet.CodeConflict {
		return w.restoreWaits(text(err), time.Second) // it went down again meanwhile
	}
	if err != nil {
		return outcome{}, err
	}
	if w.mustRun() && after.Unit.ActiveState != "active" {
		return w.restoreWaits("the runner has ended again: the unit is "+word(after.Unit.ActiveState), 300*time.Millisecond)
	}
	return w.restored(ctx, after)
}

// mustRun says whether the way back ends with a runner: always for an undrain,
// else if preflight found one.
func (w *work) mustRun() bool { return !w.op.WasDown || w.op.Kind == fleet.KindUndrain }

// restored ends the operation the way that was decided before.
func (w *work) restored(ctx context.Context, r *fleet.HostReading) (outcome, error) {
	if r != nil {
		w.fact(fleet.FactNote, "intake is as it was before: the unit is %s", word(r.Unit.ActiveState))
	}
	w.watchOrphans()
	if w.op.Kind != fleet.KindUndrain {
		if w.op.Restore.Event == "" {
			w.op.Restore.Event = fleet.EventFail
		}
		return move(w.op.Restore.Event)
	}
	vm, err := w.row(ctx)
	if err != nil {
		return outcome{}, storeError{err}
	}
	vm.Intake, vm.Failed, vm.UpdatedAt = fleet.IntakeServing, false, w.now()
	if vm.Instance != w.op.Old.Instance {
		vm.Incarnation = fleet.Incarnation{Instance: w.op.Old.Instance}
	}
	if r != nil {
		vm.BootID, vm.SystemID = cmp.Or(r.Subject.BootID, vm.BootID), cmp.Or(r.Subject.SystemID, vm.SystemID)
	}
	vm.Address = w.op.OldAddr
	return move(fleet.EventRestored)
}

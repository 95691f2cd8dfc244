package engine

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// endJobs runs under a waiver: where the host can be reached, the runner is
// told to end its jobs (SIGTERM), so that GitLab shows them failed within
// seconds and not running for an hour; then, at most 15 s later, on we go.
func (w *work) endJobs(ctx context.Context) (outcome, error) {
	d := &w.op.Drain
	if d.Verdict == fleet.VerdictUnreachable || d.Verdict == fleet.VerdictUnproven {
		return w.drainEnded(ctx)
	}
	reading, err := w.f.glance(ctx, w.oldTarget())
	if err != nil {
		if ctx.Err() != nil {
			return outcome{}, err
		}
		return w.notReached(ctx, err)
	}
	d.UnreachableSince = time.Time{}
	if w.op.OldSubject().Check(reading.Subject) != nil {
		return w.replaced("the host is another one")
	}
	if w.op.Old.SystemID == "" { // no preflight has looked: whose orphans and manager they are
		w.op.Old.SystemID = reading.Subject.SystemID
	}
	if err := w.refuseUnseen(ctx); err != nil {
		return outcome{}, err
	}
	now := w.now()
	switch {
	case reading.Unit.Stopped() && reading.DropIn.Effective:
		if reading.Unit.Result == "success" && !d.Reopened { // else its jobs did not end by themselves
			w.spareJobs()
		}
		d.ExitSeenAt = first(d.ExitSeenAt, now)
		return w.drainEnded(ctx)
	case !d.EndedAt.IsZero() && now.Sub(d.EndedAt) >= fleet.EndGrace && !w.op.Kind.Deletes():
		return w.orderEnd(ctx, reading) // a drain is done when the runner has ended
	case !d.EndedAt.IsZero() && now.Sub(d.EndedAt) >= fleet.EndGrace:
		w.fact(fleet.FactWarning, "the runner did not end within %s of SIGTERM", fleet.EndGrace)
		return w.drainEnded(ctx)
	case !d.EndedAt.IsZero():
		then := "it is told again"
		if w.op.Kind.Deletes() {
			then = "the delete goes on"
		}
		w.waitsFor("the runner ends its jobs", d.EndedAt.Add(fleet.EndGrace), then)
		return w.awaitExit(ctx, reading.Unit.MainPID, d.EndedAt.Add(fleet.EndGrace))
	default:
		return w.orderEnd(ctx, reading)
	}
}

// notReached goes on where the host does not answer when its jobs are to be
// ended: with the delete, or, in a drain, for as long as a host may be out of
// reach.
func (w *work) notReached(ctx context.Context, err error) (outcome, error) {
	d, why := &w.op.Drain, "the runner could not be told to end its jobs: "+text(err)
	d.UnreachableSince = first(d.UnreachableSince, w.now())
	until := d.UnreachableSince.Add(w.op.Request.Policy.ReachDeadline)
	proceeds := w.op.Request.Policy.Unreachable == fleet.UnreachableProceed
	then := "the drain fails"
	if proceeds {
		then = "the drain is done without knowing that the runner has ended"
	}
	switch over := !w.now().Before(until); {
	case w.op.Kind.Deletes(), over && proceeds:
		w.fact(fleet.FactWarning, "%s", why)
		if !w.op.Kind.Deletes() {
			w.spareJobs() // nobody ends them
		}
		return w.drainEnded(ctx)
	case over:
		return w.fail(fleet.Errorf(fleet.CodeUnavailable, "%s: %s", w.op.Ref(), why).
			WithHint("intake is given back once the host answers; ask again then"))
	}
	w.waitsFor(why, until, then)
	return wait(2 * time.Second)
}

// orderEnd makes sure that the runner will not come back, then ends its jobs.
func (w *work) orderEnd(ctx context.Context, reading *fleet.HostReading) (outcome, error) {
	d := &w.op.Drain
	w.recordSkipped(ctx, reading)
	// A start that an earlier operation has queued behind the stop is called off by
	// a stop of our own; without one the runner would be back as soon as it ended.
	if !reading.DropIn.Effective || reading.Unit.ActiveState != "deactivating" || d.StoppedAt.IsZero() {
		d.Reopened = d.Reopened || !d.StoppedAt.IsZero() && !reading.DropIn.Effective // a reboot, perhaps
		if d.StoppedPastCap && w.op.Kind.Deletes() {
			return w.drainEnded(ctx) // tried already; the delete must not wait for ever
		}
		d.OrderedAt = first(d.OrderedAt, w.now()) // it may take effect, and its answer not be written
		after, err := w.giveStop(ctx, reading.Subject.BootID)
		if isStore(err) {
			return outcome{}, err
		}
		d.StoppedPastCap = true
		if err != nil && !w.op.Kind.Deletes() {
			w.waitsFor("intake could not be stopped: "+text(err), time.Time{}, "it is stopped again") // a drain is done when the runner has ended
			return wait(2 * time.Second)
		}
		if err != nil {
			w.fact(fleet.FactWarning, "intake could not be stopped before the delete: %s", text(err))
			return w.drainEnded(ctx)
		}
		d.StoppedAt = first(d.StoppedAt, w.now())
		w.op.Old.BootID = after.Subject.BootID
		return again()
	}
	if d.Verdict == fleet.VerdictOverrun && (d.Reopened || !d.EndedAt.IsZero()) { // another one, perhaps, than was looked at
		w.cut(w.doomed(ctx, nil), "the cap passed and the policy is "+string(w.op.Request.Policy.OnOverrun))
	}
	before := d.EndOrderedAt
	d.EndOrderedAt = w.now()
	if err := w.order(ctx, fleet.OrderEnd, reading.Subject.BootID); err != nil {
		return outcome{}, storeError{err}
	}
	err := w.f.Hosts.EndJobs(ctx, w.oldTarget(), w.op.Order)
	switch code := fleet.CodeOf(err); {
	case err != nil && ctx.Err() == nil && (code == fleet.CodeForbidden || code == fleet.CodeInvalid):
		d.EndOrderedAt = before // an earlier order may have been heard
		return w.notTold(ctx, err)
	case err != nil: // it may have been told, or a reboot was quicker
		w.fact(fleet.FactWarning, "the runner could not be told to end its jobs: %s", text(err))
	default:
		w.fact(fleet.FactNote, "the runner was told to end its jobs (SIGTERM)")
	}
	d.EndedAt = w.now()
	return again()
}

// notTold goes on where the host has refused the order to end the jobs: a delete
// ends them in any case, a drain waits for them.
func (w *work) notTold(ctx context.Context, err error) (outcome, error) {
	w.op.Order.Verb = fleet.OrderStop // the last that it obeyed
	if w.op.Kind.Deletes() {
		w.fact(fleet.FactWarning, "the runner could not be told to end its jobs: %s", text(err))
		return w.drainEnded(ctx)
	}
	w.waitsFor("the runner could not be told to end its jobs: "+text(err), time.Time{}, "it is told again, unless they end by themselves before")
	return wait(fleet.EndGrace)
}

package engine

import (
	"context"
	"fmt"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// hold is how long an attempt may wait on the host for the process to end. The
// longer wait is made of several attempts; a crash in one loses nothing.
const hold = 10 * time.Second

// draining looks, decides by the table, and acts on the decision.
func draining(ctx context.Context, w *work) (outcome, error) {
	intent := !w.op.Delete.IntentAt.IsZero()
	switch {
	case w.op.Canceled && !intent:
		return w.cancel()
	case w.op.Drain.Verdict == fleet.VerdictNever:
		return w.drained(ctx, fleet.Decision{Verdict: fleet.VerdictNever, Reason: "no runner has joined from this VM"}, nil)
	case w.op.Drain.Waiver != nil:
		return w.endJobs(ctx)
	}
	s, err := w.snapshot(ctx)
	if err != nil {
		return outcome{}, err
	}
	return w.act(ctx, s, fleet.Decide(s))
}

func (w *work) act(ctx context.Context, s *fleet.Snapshot, d fleet.Decision) (outcome, error) {
	w.sawAll(s)
	d.Reason = w.rules(d)
	told := d.Overran && !w.op.Drain.Overran
	if told {
		w.op.Drain.Overran = true
		w.fact(fleet.FactWarning, "%s", overrunText(w.op.Kind, s.Policy, d))
		w.byRow(d)
	}
	switch d.Action {
	case fleet.ActStopIntake:
		if !w.op.Drain.StoppedAt.IsZero() { // the first stop goes without saying
			w.waitsByRow(s, d, d.Reason)
		}
		return w.stopIntake(ctx, s, d)
	case fleet.ActHold:
		return w.holdForExit(ctx, s, d)
	case fleet.ActDrained:
		return w.drained(ctx, d, s)
	case fleet.ActProceed:
		return w.proceed(ctx, s, d)
	case fleet.ActRestore:
		if !w.op.Delete.IntentAt.IsZero() {
			// The delete is committed, perhaps called: giving intake back could
			// hand jobs to a VM that is about to go. Keep looking.
			w.waitsFor(d.Reason+"; the delete is committed", time.Time{}, "")
			return wait(5 * time.Second)
		}
		if !told { // else the overrun has told it
			w.fact(fleet.FactWarning, "the drain is given up: %s", d.Reason)
			w.byRow(d)
		}
		return w.fail(fleet.Errorf(fleet.CodeUnavailable, "%s was not drained: %s", w.op.Ref(), d.Reason).
			WithHint("intake is given back; ask again once that is mended, or with another policy"))
	case fleet.ActConflict:
		w.fact(fleet.FactWarning, "conflict: %s", d.Reason)
		w.byRow(d)
		return w.replaced(d.Reason)
	default:
		w.waitsByRow(s, d, d.Reason)
		return wait(max(d.Wait, 100*time.Millisecond))
	}
}

// overrunText says that the cap has passed, and what the policy makes of it.
func overrunText(kind fleet.Kind, policy fleet.DrainPolicy, d fleet.Decision) string {
	text := fmt.Sprintf("overrun: %s; policy %s", d.Reason, policy.OnOverrun)
	if then := d.Then(kind, policy); then != "" {
		text += ": " + then
	}
	return text
}

// replaced ends the operation because the VM is not the one that preflight
// saw. With the intent to delete committed that is no end: the old instance is
// gone, and deleting will see it.
func (w *work) replaced(reason string) (outcome, error) {
	w.remember(fleet.Errorf(fleet.CodeConflict, "%s was replaced behind our back: %s", w.op.Ref(), reason).
		WithHint("nothing of the new one was touched; ask again if it is to be worked on"))
	if !w.op.Delete.IntentAt.IsZero() {
		w.op.Drain.Verdict = fleet.VerdictAbsent
		return move(fleet.EventDrained)
	}
	w.watchOrphans() // of the stop that the old one was given
	return move(fleet.EventReplaced)
}

// stopIntake commits the order, gives it, and starts the cap's clock.
func (w *work) stopIntake(ctx context.Context, s *fleet.Snapshot, d fleet.Decision) (outcome, error) {
	boot := ""
	if s.Host != nil {
		boot = s.Host.Subject.BootID
		if s.Host.Unit.ActiveState == "active" {
			w.op.WasDown = false // somebody, or a reboot, has started it since preflight
		}
	}
	if err := w.inspectLate(ctx, s); err != nil {
		return w.notInspected(ctx, s, d, err)
	}
	if w.op.Drain.StoppedAt.IsZero() {
		// A job started since may be the stop's orphan, also where the answer to
		// the stop was lost.
		w.op.Drain.OrderedAt = first(w.op.Drain.OrderedAt, w.now())
	}
	fresh := w.op.Order.Verb == ""
	reading, err := w.giveStop(ctx, boot)
	if isStore(err) {
		return outcome{}, err
	}
	if err != nil {
		return w.notStopped(s, d, err, fresh)
	}
	w.intakeStopped(d)
	if differ(w.op.Old.BootID, reading.Subject.BootID) {
		w.fact(fleet.FactWarning, "the host was rebooted during the drain (boot %s)", reading.Subject.BootID)
	}
	w.op.Old.BootID = reading.Subject.BootID
	return again()
}

// inspectLate judges, before its first stop, a host that preflight could not
// look at: a second VM, one that was off, or that the provider had overlooked.
func (w *work) inspectLate(ctx context.Context, s *fleet.Snapshot) error {
	switch {
	case w.op.Old.BootID != "" || w.op.Order.Verb != "":
		return nil
	case s.Provider == nil:
		return fleet.Errorf(fleet.CodeUnavailable, "%s: whether the host is instance %s cannot be told: the provider does not answer", w.op.Ref(), w.op.Old.Instance)
	}
	facts, err := w.f.inspect(ctx, w.oldTarget())
	if err != nil {
		return err
	}
	for _, refusal := range fleet.Refusals(w.op.Ref(), w.f.Host, facts) {
		if !w.stray || refusal.Fault != fleet.FaultTokenExpires { // it must go in any case
			return refusal.Err
		}
	}
	return nil
}

// notInspected goes on where such a host was not, or must not be stopped: one that
// answers, but not that, for longer than a host may be out of reach is taken for
// out of reach.
func (w *work) notInspected(ctx context.Context, s *fleet.Snapshot, d fleet.Decision, err error) (outcome, error) {
	policy := w.op.Request.Policy
	patient := w.now().Sub(w.op.PhaseSince) < policy.ReachDeadline || !w.op.Delete.IntentAt.IsZero()
	switch {
	case fleet.CodeOf(err) != fleet.CodeUnavailable || patient:
		return w.notStopped(s, d, err, true)
	case policy.Unreachable == fleet.UnreachableProceed:
		return w.proceed(ctx, s, fleet.Decision{Row: 2, Verdict: fleet.VerdictUnreachable, Reason: text(err)})
	default:
		return w.fail(fleet.Errorf(fleet.CodeUnavailable, "%s was not drained: its host answers, and could not be inspected for %s: %w", w.op.Ref(), policy.ReachDeadline, err).
			WithHint("`sluice doctor %s` tells what does not answer there; nothing was stopped", w.op.Fleet))
	}
}

// refuseUnseen is what holds under a waiver, too (see [fleet.RefuseUnregister]),
// for a host that answers only now. One that cannot be asked goes on: the waiver
// is for that.
func (w *work) refuseUnseen(ctx context.Context) error {
	if w.op.Old.BootID != "" || w.op.Order.Verb != "" {
		return nil
	}
	bounded, cancel := timeout(ctx, waivedLimit)
	defer cancel()
	facts, err := w.f.inspect(bounded, w.oldTarget())
	if err != nil {
		return ctx.Err()
	}
	if err := fleet.RefuseUnregister(w.op.Ref(), w.f.Host, facts); err != nil {
		return err
	}
	w.op.Old.BootID = facts.Reading.Subject.BootID
	return nil
}

// intakeStopped records the stop, and starts the cap's clock at the first.
func (w *work) intakeStopped(by fleet.Decision) {
	now, d := w.now(), &w.op.Drain
	if d.StoppedAt.IsZero() {
		d.StoppedAt = now
		d.Deadline = now.Add(w.op.Request.Policy.Cap)
		d.HardCap = now.Add(max(w.op.Request.Policy.HardCap, w.op.Request.Policy.Cap))
		w.fact(fleet.FactNote, "intake is stopped; running jobs have up to %s to end", w.op.Request.Policy.Cap)
	} else {
		d.StoppedPastCap, d.Reopened = !now.Before(d.Deadline), true
		d.ListedAt = time.Time{} // what came while intake was open is in no list yet
		w.fact(fleet.FactNote, "intake is stopped again")
	}
	w.byRow(by)
}

// notStopped sorts the failures of a stop order. fresh = it was the first that
// the host was given: of an earlier one, the answer may have been lost.
func (w *work) notStopped(s *fleet.Snapshot, d fleet.Decision, err error, fresh bool) (outcome, error) {
	switch code := fleet.CodeOf(err); {
	case fleet.Retryable(code):
		w.waitsByRow(s, d, "intake could not be stopped: "+text(err))
		return wait(time.Second)
	case code == fleet.CodeConflict && w.op.Drain.StoppedAt.IsZero() && w.op.Delete.IntentAt.IsZero():
		if fresh {
			w.op.Order = fleet.Order{} // the host refused the order: nothing was done under it
		}
		return w.fail(err)
	case code == fleet.CodeConflict:
		w.waitsByRow(s, d, "intake could not be stopped: "+text(err))
		return wait(2 * time.Second)
	default:
		return outcome{}, err
	}
}

// holdForExit waits on the host for the process to end, at most until the cap.
func (w *work) holdForExit(ctx context.Context, s *fleet.Snapshot, d fleet.Decision) (outcome, error) {
	w.waitsByRow(s, d, d.Reason)
	if err := w.save(ctx); err != nil {
		return outcome{}, storeError{err}
	}
	pid := 0
	if s.Host != nil {
		pid = s.Host.Unit.MainPID
	}
	return w.awaitExit(ctx, pid, w.op.Drain.Deadline, w.op.Drain.HardCap)
}

// awaitExit holds on the host until the process is gone, the attempt's room
// for holding is used up, or one of the given moments, if it is to come.
func (w *work) awaitExit(ctx context.Context, mainPID int, ends ...time.Time) (outcome, error) {
	now := w.now()
	limit := w.attempt.holdUntil.Sub(now)
	for _, end := range ends {
		if left := end.Sub(now); left > 0 {
			limit = min(limit, left)
		}
	}
	switch {
	case mainPID == 0:
		return wait(200 * time.Millisecond) // on its way down without a process: nearly done
	case limit < 100*time.Millisecond:
		return wait(time.Millisecond) // hold again in the next attempt
	}
	held, done := w.holds.begin(ctx, w.op.ID)
	defer done()
	if changed, err := w.changed(ctx); changed || err != nil {
		return outcome{}, err
	}
	seen, err := w.f.Hosts.AwaitExit(held, w.oldTarget(), mainPID, limit)
	if err != nil && held.Err() == nil {
		return wait(time.Second) // the next look tells what is wrong
	}
	w.attempt.seen = seen
	return again()
}

// changed says whether somebody has moved the row since this step loaded it. It
// is asked when the hold can be interrupted already: what comes later ends it.
func (w *work) changed(ctx context.Context) (bool, error) {
	if w.stray { // it has a chore and no row
		return false, nil
	}
	now, err := w.Store.Operation(ctx, w.op.ID)
	if err != nil {
		return false, storeError{err}
	}
	return now.Revision != w.op.Revision, nil
}

func differ(a, b string) bool { return a != "" && b != "" && a != b }

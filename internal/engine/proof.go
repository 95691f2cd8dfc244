package engine

import (
	"context"
	"fmt"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// prove looks once more, just before the call, whether the verdict that led
// here still holds (design.md section 5). lost says why it does not; "" = it
// does. An error is of the store, or of a context that ended.
func (w *work) prove(ctx context.Context, mine *fleet.Instance, l *lastLook) (lost string, err error) {
	w.lookAtOld(ctx, l)
	switch v := w.op.Drain.Verdict; {
	case v == fleet.VerdictOff:
		if mine.Presence != fleet.PresenceOff {
			return "the instance is " + string(mine.Presence) + " again", nil
		}
		return "", nil
	case v == fleet.VerdictAbsent:
		return "the instance is there again", nil
	case v.Waived():
		return "", w.underWaiver(ctx, l)
	default:
		return w.proveStopped(ctx, l)
	}
}

// proveStopped proves that the runner is still down: same boot, unit stopped,
// drop-in in effect; of a VM that never joined, that no runner has started.
func (w *work) proveStopped(ctx context.Context, l *lastLook) (lost string, err error) {
	reading := l.host
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case l.hostErr != nil:
		return "the host cannot be reached: " + text(l.hostErr), nil
	case reading == nil:
		return "the host was not looked at", nil
	}
	never := w.op.Drain.Verdict == fleet.VerdictNever
	switch {
	case w.op.OldSubject().Check(reading.Subject) != nil:
		return w.op.OldSubject().Check(reading.Subject).Error(), nil
	case !reading.Unit.Known() || reading.Subject.BootID == "":
		return "the host's answer is incomplete", nil
	case differ(w.op.Old.BootID, reading.Subject.BootID):
		return "the host was rebooted", nil
	case never && reading.Unit.MainPID == 0 && reading.Unit.ActiveState != "activating":
		return "", nil
	case !reading.Unit.Stopped():
		return fmt.Sprintf("the unit is %s with main pid %d", reading.Unit.ActiveState, reading.Unit.MainPID), nil
	case !reading.DropIn.Effective:
		return "the drain drop-in is not in effect", nil
	}
	return "", nil
}

// underWaiver makes sure once more, as far as the host can be reached, that
// intake is stopped. The waiver lets the delete go on in any case.
func (w *work) underWaiver(ctx context.Context, l *lastLook) error {
	reading := l.host
	if reading != nil && w.op.Delete.IntentAt.IsZero() {
		if err := w.refuseUnseen(ctx); err != nil {
			return err
		}
	}
	w.recordDoomed(ctx, reading)
	if reading == nil || w.op.OldSubject().Check(reading.Subject) != nil {
		return ctx.Err()
	}
	if reading.DropIn.Effective && reading.Unit.ActiveState != "active" && reading.Unit.ActiveState != "activating" {
		return nil
	}
	w.op.Drain.OrderedAt = first(w.op.Drain.OrderedAt, w.now())
	switch _, err := w.giveStop(ctx, reading.Subject.BootID); {
	case isStore(err):
		return err
	case err != nil:
		w.fact(fleet.FactWarning, "intake was found open and could not be stopped: %s", text(err))
	default:
		w.fact(fleet.FactNote, "intake was found open and is stopped again")
		w.op.Drain.StoppedAt = first(w.op.Drain.StoppedAt, w.now())
		w.op.Drain.ExitSeenAt, w.op.Drain.Reopened = time.Time{}, true // whatever ended before, another one ran
		w.watchOrphans()                                               // of this stop
	}
	return ctx.Err()
}

// proofLost takes the operation back to draining: the delete does not happen.
func (w *work) proofLost(why string) (outcome, error) {
	w.fact(fleet.FactWarning, "the delete did not happen: %s; the drain starts again", why)
	d := &w.op.Drain
	d.Verdict, d.VerdictAt, d.ExitSeenAt, d.LeftoversSince = "", time.Time{}, time.Time{}, time.Time{}
	d.Waiver, d.Proof, d.Disagreed = nil, nil, ""
	return move(fleet.EventProofLost)
}

package engine

import (
	"context"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// deleting takes the old incarnation away: image and template looked up once
// more, proof, intent committed, call, and then wait until instance and every
// dependent are seen absent (design.md section 5).
func deleting(ctx context.Context, w *work) (outcome, error) {
	d := &w.op.Delete
	if d.IntentAt.IsZero() && w.op.Canceled {
		return w.cancel()
	}
	if d.Done {
		return w.confirmAbsence(ctx)
	}
	l := w.lastLook(ctx)
	if l.listErr != nil {
		return outcome{}, l.listErr
	}
	mine := byID(l.list, w.op.Old.Instance)
	if mine == nil && d.CalledAt.IsZero() {
		w.lookAtOld(ctx, &l) // the provider may overlook it
	}
	switch {
	case mine == nil && len(l.list) > 0 && d.IntentAt.IsZero() && !w.stray:
		return w.replaced("the provider lists instance " + l.list[0].ID + " under its name")
	case mine == nil && d.CalledAt.IsZero() && w.answers(&l):
		w.waitsFor("the provider does not list instance "+w.op.Old.Instance+", but its host answers", time.Time{}, "")
		return wait(2 * time.Second)
	case mine == nil && d.CalledAt.IsZero():
		return w.absentAlready()
	case d.CalledAt.IsZero():
		return w.callDelete(ctx, mine, l)
	default:
		return w.delete(ctx) // looks how the attempt is
	}
}

// absentAlready records that there is nothing to call a delete for. The intent
// is committed all the same: from here on there is no way back.
func (w *work) absentAlready() (outcome, error) {
	d := &w.op.Delete
	d.IntentAt = first(d.IntentAt, w.now())
	d.ProofAt, d.Done = w.now(), true
	w.fact(fleet.FactNote, "instance %s is absent already", name(w.op.Old.Instance))
	return again()
}

func name(instance string) string {
	if instance == "" {
		return "(none known)"
	}
	return instance
}

// callDelete proves, commits the intent, and begins an attempt.
func (w *work) callDelete(ctx context.Context, mine *fleet.Instance, l lastLook) (outcome, error) {
	if l.imageErr != nil {
		return outcome{}, l.imageErr
	}
	lost, err := w.prove(ctx, mine, &l)
	if err != nil {
		return outcome{}, err
	}
	if lost != "" {
		if w.op.OldAddr == "" { // it was taken for absent, and nobody has looked at it
			w.op.OldAddr, w.op.OldKeys = mine.Address, mine.HostKeys
		}
		return w.proofLost(lost)
	}
	d := &w.op.Delete
	d.ProofAt = l.provedAt
	d.Attempt++
	if d.IntentAt.IsZero() {
		d.IntentAt = w.now()
		w.fact(fleet.FactNote, "the delete of instance %s is committed (%s)", mine.ID, w.op.Drain.Verdict)
	}
	if err := w.save(ctx); err != nil {
		return outcome{}, storeError{err}
	}
	if !within(d.ProofAt, w.now(), fleet.ProofAge) {
		return again() // proof or commit were slow: prove again
	}
	return w.delete(ctx)
}

// delete calls, or looks how the attempt is: which of them it is, the token
// tells the provider.
func (w *work) delete(ctx context.Context) (outcome, error) {
	d := &w.op.Delete
	progress, err := w.f.Machines.Delete(ctx, w.deleteOrder())
	if err != nil {
		return w.deleteFailed(ctx, err)
	}
	d.CalledAt = first(d.CalledAt, w.now())
	if progress.Done {
		d.Done = true
		return again()
	}
	w.waitsFor(detail("the provider deletes instance "+w.op.Old.Instance, progress.Detail), time.Time{}, "")
	return wait(pollPause(w.now().Sub(d.CalledAt)))
}

func (w *work) deleteOrder() DeleteOrder {
	d := w.op.Delete
	return DeleteOrder{
		Ref: w.op.Ref(), Operation: w.op.ID, Attempt: d.Attempt, Instance: w.op.Old.Instance,
		Token: fleet.RequestToken(w.op.ID, "delete", d.Attempt),
	}
}

// deleteFailed ends the attempt. Only a definite refusal of the call, and a
// look that shows the same instance up, open the way back (promise 8).
func (w *work) deleteFailed(ctx context.Context, err error) (outcome, error) {
	if ctx.Err() != nil {
		return outcome{}, err // not answered: the same attempt is looked at again
	}
	w.op.Delete.CalledAt = time.Time{} // the next look begins a new attempt, with a new proof
	code := fleet.CodeOf(err)
	if code != fleet.CodeForbidden && code != fleet.CodeInvalid {
		return w.backoff(err)
	}
	list, lookErr := w.describe(ctx)
	if lookErr != nil {
		return w.backoff(err)
	}
	if mine := byID(list, w.op.Old.Instance); mine == nil || mine.Presence != fleet.PresenceRunning {
		return w.backoff(err)
	}
	w.fact(fleet.FactWarning, "the provider refused the delete of instance %s, which is still up: the way back is open again", w.op.Old.Instance)
	w.op.Delete = fleet.DeleteState{Attempt: w.op.Delete.Attempt}
	if w.op.Drain.Waiver != nil { // else others have cut them
		w.spareJobs()
	}
	w.op.Drain.Waiver = nil
	return w.fail(err)
}

// confirmAbsence waits until every dependent is gone, then moves on.
func (w *work) confirmAbsence(ctx context.Context) (outcome, error) {
	if w.op.Old.Instance != "" {
		left, err := w.f.Machines.Remains(ctx, w.deleteOrder())
		if err != nil {
			return outcome{}, err
		}
		if len(left) > 0 && w.op.Delete.CalledAt.IsZero() {
			if back, err := w.cameBack(ctx); back || err != nil {
				return outcome{}, err
			}
		}
		if len(left) > 0 {
			w.waitsFor("still there: "+strings.Join(left, ", "), time.Time{}, "")
			return wait(pollPause(w.now().Sub(first(w.op.Delete.CalledAt, w.op.PhaseSince))))
		}
	}
	w.f.Hosts.Forget(w.oldTarget())
	w.watchCut()
	if w.stray {
		w.deregister(w.op.Old)
		return move(fleet.EventDeleted)
	}
	vm, err := w.row(ctx)
	if err != nil {
		return outcome{}, storeError{err}
	}
	vm.Incarnation, vm.Address, vm.Trust = fleet.Incarnation{}, "", nil
	vm.Missing, vm.Failed, vm.UpdatedAt = true, false, w.now()
	vm.Intake = fleet.IntakeServing // whoever creates it anew wants it to serve
	vm.Prepared = w.op.Create.Prepared
	w.deregister(w.op.Old)
	w.fact(fleet.FactNote, "instance %s and its dependents are gone", name(w.op.Old.Instance))
	return move(fleet.EventDeleted)
}

// cameBack says whether an instance that was taken for absent, so that no
// delete was ever called, is listed after all: the next look proves and calls.
func (w *work) cameBack(ctx context.Context) (bool, error) {
	list, err := w.describe(ctx)
	if err != nil || byID(list, w.op.Old.Instance) == nil {
		return false, err
	}
	w.op.Delete.Done = false
	if w.op.Delete.Attempt == 0 {
		w.op.Delete.IntentAt = time.Time{} // nothing was ever called: the way back is open
	}
	w.fact(fleet.FactWarning, "the provider had overlooked instance %s: it is still there", w.op.Old.Instance)
	return true, nil
}

// pollPause is how long to wait between looks at something that began a while
// ago: quick things are seen quickly, slow ones are not asked about too often.
func pollPause(age time.Duration) time.Duration {
	return min(max(age/4, 500*time.Millisecond), 15*time.Second)
}

func detail(what, words string) string {
	if words == "" {
		return what
	}
	return what + ": " + words
}

package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// heldPause is how often a held operation looks whether somebody resumed it;
// resuming wakes it at once.
const heldPause = 30 * time.Second

// creating makes the new incarnation: token stored before the call, what an
// earlier attempt made late is adopted, failures are waited out by their kind.
func creating(ctx context.Context, w *work) (outcome, error) {
	c := &w.op.Create
	if w.op.Held {
		return wait(heldPause)
	}
	if c.Began.IsZero() {
		c.Began = w.now()
		c.GitLabAt = w.gitlabTime(ctx)
	}
	if !c.Prepared.Resolved { // resumed with another image
		if err := w.prepare(ctx, w.op.Request.Image); err != nil {
			return w.createFailed(ctx, "the create request", err)
		}
	}
	if c.Token == "" {
		return w.beginCreate(ctx)
	}
	return w.create(ctx)
}

// gitlabTime is GitLab's own clock: what contacts it later is new. Zero = not
// known; the gate then reckons it from GitLab's next answer.
func (w *work) gitlabTime(ctx context.Context) time.Time {
	if w.f.GitLab == nil || w.f.Entries != nil && w.op.Old.Entry == 0 {
		return time.Time{}
	}
	ctx, cancel := timeout(ctx, 5*time.Second)
	defer cancel()
	_, at, err := w.f.through(w.op.Old).Managers(ctx)
	if err != nil {
		return time.Time{}
	}
	return at
}

// beginCreate looks for what an earlier attempt made, then stores the token of
// a new attempt.
func (w *work) beginCreate(ctx context.Context) (outcome, error) {
	list, err := w.describe(ctx)
	if err != nil {
		return outcome{}, err
	}
	ours, foreign, err := w.ours(ctx, list)
	switch {
	case err != nil:
		return outcome{}, err
	case len(ours) > 0:
		w.fact(fleet.FactNote, "instance %s of an earlier attempt is there: adopted", ours[0].ID)
		return w.created(&ours[0])
	case len(foreign) > 0:
		return w.backoff(fleet.Errorf(fleet.CodeConflict, "%s: the provider still lists instance %s under its name", w.op.Ref(), foreign[0].ID).
			WithHint("it is waited for; if it is not one of Sluice's, delete it by hand"))
	case w.op.Canceled:
		w.watchLate(1)
		return move(fleet.EventCancel) // of a create whose attempts left nothing
	}
	w.op.Create.Attempt++
	w.op.Create.Token = fleet.RequestToken(w.op.ID, "create", w.op.Create.Attempt)
	w.op.Create.CalledAt = time.Time{}
	return again()
}

// ours sorts instances into those that our own operations on this VM made and
// others. The old incarnation is none of ours.
func (w *work) ours(ctx context.Context, list []fleet.Instance) (ours, foreign []fleet.Instance, err error) {
	for _, m := range list {
		if m.ID == w.op.Old.Instance {
			foreign = append(foreign, m)
			continue
		}
		own, err := w.madeByUs(ctx, m)
		if err != nil {
			return nil, nil, err
		}
		if own {
			ours = append(ours, m)
		} else {
			foreign = append(foreign, m)
		}
	}
	return ours, foreign, nil
}

// madeByUs says whether an operation on this VM made an instance, and did not
// give it to a chore that removes it.
func (w *work) madeByUs(ctx context.Context, m fleet.Instance) (bool, error) {
	label := m.Labels[fleet.LabelOperation]
	if label == "" || label == w.op.ID {
		return label != "", nil
	}
	op, err := w.Store.Operation(ctx, label)
	switch {
	case fleet.CodeOf(err) == fleet.CodeNotFound:
		return false, nil
	case err != nil:
		return false, storeError{err}
	}
	return op.Ref() == w.op.Ref() && !slices.Contains(op.Strays, m.ID), nil
}

// create calls, or looks how the attempt is.
func (w *work) create(ctx context.Context) (outcome, error) {
	c := &w.op.Create
	progress, err := w.f.Machines.Create(ctx, CreateOrder{
		Ref: w.op.Ref(), Operation: w.op.ID, Attempt: c.Attempt, Token: c.Token, Prepared: c.Prepared,
	})
	if err != nil {
		return w.createFailed(ctx, fmt.Sprintf("create attempt %d", c.Attempt), err)
	}
	c.CalledAt = first(c.CalledAt, w.now())
	switch {
	case progress.Done && progress.Instance != nil:
		return w.created(progress.Instance)
	case progress.Done: // somebody took it away between the create and this look
		return w.createFailed(ctx, fmt.Sprintf("create attempt %d", c.Attempt), fleet.Errorf(fleet.CodeUnavailable, "attempt %d has ended, but its instance is not listed", c.Attempt))
	}
	w.waitsFor(detail("the provider creates "+w.op.VM, progress.Detail), time.Time{}, "")
	return wait(pollPause(w.now().Sub(c.CalledAt)))
}

// created stores the new incarnation.
func (w *work) created(m *fleet.Instance) (outcome, error) {
	c := &w.op.Create
	c.New = fleet.Incarnation{Instance: m.ID}
	c.NewAddr, c.HostKeys = m.Address, m.HostKeys
	w.op.Verify = fleet.VerifyState{Deadline: w.now().Add(w.f.GateOnline)}
	w.op.ErrCode, w.op.ErrMessage, w.op.ErrHint = "", "", ""
	w.fact(fleet.FactNote, "instance %s is created", m.ID)
	return move(fleet.EventCreated)
}

// createFailed ends the attempt. After a delete nothing is given up: what may
// pass is tried again for hours, what needs a person is held and shouted about.
func (w *work) createFailed(ctx context.Context, what string, err error) (outcome, error) {
	if ctx.Err() != nil {
		return outcome{}, err // not answered: the same attempt is looked at again
	}
	w.op.Create.Token = ""
	code := fleet.CodeOf(err)
	if fleet.Retryable(code) || code == fleet.CodeConflict || code == fleet.CodeInternal {
		return w.backoff(fleet.Errorf(code, "%s failed: %w", what, err))
	}
	if w.op.Kind == fleet.KindCreate {
		w.watchLate(2) // of this one, the refusal is the last word
		return w.fail(err)
	}
	w.op.Held = true
	w.remember(err)
	w.fact(fleet.FactWarning, "held: %s", text(err))
	w.waitsFor("held: "+text(err), time.Time{}, "")
	w.op.ErrHint = "mend it, or use another image, then `sluice op resume " + w.op.ID + " [--image I]`"
	w.Log.ErrorContext(ctx, "a deleted VM cannot be created", "op", w.op.ID, "fleet", w.op.Fleet, "vm", w.op.VM, "phase", w.op.Phase, "error", err)
	return wait(heldPause)
}

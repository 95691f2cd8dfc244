package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// lateLooks are when a create whose attempts did not all end with an answer is
// looked at again, after its operation has ended: a provider may carry an
// attempt out that it called failed.
var lateLooks = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

// lateState is a late-create watch's own.
type lateState struct {
	Since time.Time `json:"since"`
	Looks int       `json:"looks"`
	Found int       `json:"found"`
}

// watchLate adds the watch to an operation that ends, if an attempt of its
// create was given up without the provider's last word.
func (w *work) watchLate(attempts int) {
	if w.op.Create.Attempt < attempts {
		return
	}
	now := w.now()
	c, err := newChore(w.op, fleet.ChoreLateCreate, "", now.Add(lateLooks[0]), lateState{Since: now})
	if err != nil {
		w.fact(fleet.FactWarning, "late creates are not looked for: %s", text(err))
		return
	}
	w.chores = append(w.chores, c)
}

// watchLateCreates looks for instances of its operation beyond the one that it
// ended with. Each is drained and then deleted by id (promise 3).
func watchLateCreates(ctx context.Context, r *errand) error {
	var s lateState
	if err := r.load(&s); err != nil {
		return err
	}
	looked, found, err := r.takeLate(ctx)
	if err != nil {
		return err
	}
	if !looked && s.Looks == len(lateLooks)-1 {
		return r.keep(&s, r.now().Add(lateLooks[0])) // the last look must be one
	}
	s.Found += found
	if s.Looks++; s.Looks >= len(lateLooks) {
		return r.end("%d came late", s.Found)
	}
	next := s.Since.Add(lateLooks[s.Looks])
	if soon := r.now().Add(time.Second); next.Before(soon) {
		next = soon
	}
	return r.keep(&s, next)
}

// takeLate gives each late instance to a chore of its own, in the row of the
// operation that made it. Nothing is looked at while an operation works on the VM.
func (r *errand) takeLate(ctx context.Context) (looked bool, found int, err error) {
	op, err := r.Store.Operation(ctx, r.c.Operation)
	if err != nil {
		return false, 0, err
	}
	w := r.work(r.f, op, r.attempt(r.now()))
	list, err := w.describe(ctx)
	if err != nil {
		return false, 0, err
	}
	free, kept, err := r.mayTake(ctx)
	if err != nil || !free {
		return false, 0, err
	}
	known := len(op.Strays)
	for _, m := range list {
		if m.Labels[fleet.LabelOperation] != op.ID || m.ID == kept {
			continue
		}
		if err := w.takeStray(m); err != nil {
			return false, 0, err
		}
	}
	if found = len(op.Strays) - known; found == 0 {
		return true, 0, nil
	}
	if err := w.save(ctx); err != nil {
		return false, 0, fmt.Errorf("strays of %s: %w", op.ID, err)
	}
	return true, found, nil
}

// mayTake says whether no operation works on the VM, which might have adopted
// what came late, and which instance is the VM's own by now. One in the queue,
// where it may stand for hours, has not looked for any yet.
func (r *errand) mayTake(ctx context.Context) (free bool, kept string, err error) {
	ops, err := r.Store.Unfinished(ctx)
	if err != nil || slices.ContainsFunc(ops, func(o fleet.Operation) bool { return o.Ref() == r.c.Ref() && o.Phase != fleet.PhaseQueued }) {
		return false, "", err
	}
	vm, err := r.Store.VM(ctx, r.c.Ref())
	if err != nil {
		return false, "", err
	}
	return true, vm.Instance, nil
}

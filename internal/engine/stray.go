package engine

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// strayState is a second VM of ours that came late: a small operation of its
// own, worked by the same steps, kept in the chore's row.
type strayState struct {
	Op    fleet.Operation `json:"op"`
	Again int             `json:"again,omitempty"` // how often it could not be drained
}

// A stray that could not be drained rests, longer each time.
const (
	strayPause    = time.Minute
	strayPauseMax = 15 * time.Minute
)

// findStrays looks for further instances that our own operations made under
// this VM's name: late successes of attempts that were given up. The stored
// one is kept; each other is drained and then deleted by id (promise 3).
func (w *work) findStrays(ctx context.Context, list []fleet.Instance) error {
	ours, _, err := w.ours(ctx, list)
	if err != nil {
		return err
	}
	for _, m := range ours {
		if err := w.takeStray(m); err != nil {
			return err
		}
	}
	return nil
}

// takeStray gives an instance to a chore that removes it, once.
func (w *work) takeStray(m fleet.Instance) error {
	if m.ID == w.op.Create.New.Instance || slices.Contains(w.op.Strays, m.ID) {
		return nil
	}
	c, err := newChore(w.op, fleet.ChoreStray, m.ID, w.now(), strayState{Op: w.strayOperation(m)})
	if err != nil {
		return err
	}
	w.op.Strays = append(w.op.Strays[:len(w.op.Strays):len(w.op.Strays)], m.ID)
	w.chores = append(w.chores, c)
	w.fact(fleet.FactWarning, "a second instance %s of %s came late: it is drained and deleted", m.ID, w.op.Ref())
	return nil
}

func (w *work) strayOperation(m fleet.Instance) fleet.Operation {
	now, policy := w.now(), w.f.Drain
	policy.OnUnproven = fleet.UnprovenProceed                        // its runner gone, a GitLab that cannot tell must not keep two VMs of one name
	policy.ReachDeadline = max(policy.ReachDeadline, w.f.GateOnline) // perhaps it boots
	return fleet.Operation{
		ID: w.op.ID + "-" + m.ID, Fleet: w.op.Fleet, VM: w.op.VM, Kind: fleet.KindDelete, Phase: fleet.PhaseDraining,
		Request:   fleet.Request{Policy: policy, By: fleet.Actor{Name: "chore:stray", Why: w.op.ID}},
		CreatedAt: now, UpdatedAt: now, PhaseSince: now,
		Old: fleet.Incarnation{Instance: m.ID}, OldAddr: m.Address, OldKeys: m.HostKeys,
	}
}

// removeStray runs the draining and deleting steps on the stray.
func removeStray(ctx context.Context, r *errand) error {
	var s strayState
	if err := r.load(&s); err != nil {
		return err
	}
	if s.Op.Order.Verb == "" && s.Op.Delete.IntentAt.IsZero() {
		if own, err := r.isOwn(ctx, s.Op.Old.Instance); err != nil {
			return err
		} else if own {
			return r.end("instance %s is the VM's own by now", s.Op.Old.Instance)
		}
	}
	w := r.work(r.f, &s.Op, r.attempt(r.now()))
	w.stray = true
	w.commit = func(ctx context.Context, w *work) error { return r.commitStray(ctx, &s, w) }
	step, ok := steps[s.Op.Phase]
	if !ok || s.Op.Phase.Finished() {
		return r.end("instance %s: %s", s.Op.Old.Instance, s.Op.Phase)
	}
	bounded, cancel := timeout(ctx, step.limit)
	defer cancel()
	out, err := step.run(bounded, w)
	if err != nil {
		out, err = w.trouble(bounded, err)
	}
	if err != nil {
		return err
	}
	pause, err := r.advance(ctx, w, out)
	if err != nil {
		return err
	}
	if s.Op.Phase == fleet.PhaseSucceeded {
		return r.end("instance %s: %s", s.Op.Old.Instance, s.Op.Phase)
	}
	if s.Op.Phase.Finished() {
		return r.strayAgain(&s)
	}
	return r.keep(&s, r.now().Add(pause))
}

// isOwn says whether an operation has adopted the instance since it was taken for
// a second one.
func (r *errand) isOwn(ctx context.Context, instance string) (bool, error) {
	vm, err := r.Store.VM(ctx, r.c.Ref())
	if err != nil || vm.Instance == instance && !vm.Missing {
		return err == nil, err
	}
	ops, err := r.Store.Unfinished(ctx)
	return slices.ContainsFunc(ops, func(o fleet.Operation) bool {
		return o.Ref() == r.c.Ref() && o.Create.New.Instance == instance
	}), err
}

// strayAgain begins anew: a second VM of one name is never left as it is.
func (r *errand) strayAgain(s *strayState) error {
	op := s.Op
	r.fact(fleet.FactWarning, "the second instance %s of %s is still there: %s", op.Old.Instance, r.c.Ref(), op.ErrMessage)
	s.Op = fleet.Operation{
		ID: op.ID, Fleet: op.Fleet, VM: op.VM, Kind: op.Kind, Phase: fleet.PhaseDraining, Request: op.Request,
		CreatedAt: op.CreatedAt, UpdatedAt: r.now(), PhaseSince: r.now(),
		Old: fleet.Incarnation{Instance: op.Old.Instance}, OldAddr: op.OldAddr, OldKeys: op.OldKeys,
		Drain: fleet.DrainState{Watches: op.Drain.Watches}, // each stop has a watch of its own
	}
	pause := min(strayPause<<min(s.Again, 4), strayPauseMax)
	s.Again++
	return r.keep(s, r.now().Add(pause))
}

// commitStray stores the small operation where it lives: in the chore's row.
func (r *errand) commitStray(ctx context.Context, s *strayState, w *work) error {
	if err := r.addChores(ctx, w.chores); err != nil {
		return err
	}
	facts := w.facts
	raw, err := json.Marshal(s)
	if err != nil {
		return fleet.Errorf(fleet.CodeInternal, "state of chore %s: %w", r.c.ID, err)
	}
	r.c.State, r.c.NextAt = raw, r.now().Add(time.Millisecond)
	for i := range facts {
		facts[i].Operation = r.c.Operation
	}
	return r.Store.UpdateChore(ctx, r.c, facts)
}

// addChores stores what the removal of a stray leaves to do, with the operation
// that made it. Their ids say what they are for: stored twice, they are one.
func (r *errand) addChores(ctx context.Context, chores []fleet.Chore) error {
	if len(chores) == 0 {
		return nil
	}
	op, err := r.Store.Operation(ctx, r.c.Operation)
	if err != nil {
		return err
	}
	for i := range chores {
		chores[i].Operation = op.ID
	}
	return r.Store.UpdateOperation(ctx, op, nil, nil, chores)
}

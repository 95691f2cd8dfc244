package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// chore is what one kind of chore does at a look: it changes the chore's State
// and NextAt, or ends it by FinishedAt and Outcome.
type chore func(context.Context, *errand) error

// chores is the engine's table of them.
var chores = map[fleet.ChoreKind]chore{
	fleet.ChoreOrphanWatch: watchOrphans,
	fleet.ChoreDeregister:  deregister,
	fleet.ChoreStray:       removeStray,
	fleet.ChoreLateCreate:  watchLateCreates,
}

// errand is one look at a chore: the chore as loaded, and the facts that are
// to be committed with it.
type errand struct {
	*Engine
	f     *Fleet
	c     *fleet.Chore
	facts []fleet.Fact
	count []func(Observer) // once the facts are committed
}

// choreLimit bounds one look at a chore.
const choreLimit = 25 * time.Second

// LookChore looks at a chore once. wait says when to look again.
//
// Errors: of the store only.
func (e *Engine) LookChore(ctx context.Context, id string) (wait time.Duration, done bool, err error) {
	c, err := e.Store.Chore(ctx, id)
	if err != nil {
		return 0, fleet.CodeOf(err) == fleet.CodeNotFound, err
	}
	if !c.FinishedAt.IsZero() {
		return 0, true, nil
	}
	if left := c.NextAt.Sub(e.now()); left > 0 {
		return left, false, nil
	}
	f, err := e.fleet(c.Fleet)
	if err != nil {
		return time.Minute, false, nil //nolint:nilerr // the fleet may come back into the configuration
	}
	bounded, cancel := timeout(ctx, choreLimit)
	defer cancel()
	r := &errand{Engine: e, f: f, c: c}
	if err := chores[c.Kind](bounded, r); err != nil {
		return r.troubled(ctx, err)
	}
	if err := r.commit(ctx); err != nil {
		return 0, false, err
	}
	if !c.FinishedAt.IsZero() {
		return 0, true, nil
	}
	return max(c.NextAt.Sub(e.now()), time.Millisecond), false, nil
}

// commit stores the chore with what was learnt so far: an effect that follows
// finds its intent written.
func (r *errand) commit(ctx context.Context) error {
	if err := r.Store.UpdateChore(ctx, r.c, r.facts); err != nil {
		return err
	}
	for _, count := range r.count {
		count(r.Observer)
	}
	r.facts, r.count = nil, nil
	return nil
}

// troubled tries again later: a chore gives up only by its own rules.
func (r *errand) troubled(ctx context.Context, err error) (time.Duration, bool, error) {
	r.Log.WarnContext(ctx, "chore waits", "op", r.c.Operation, "fleet", r.c.Fleet, "vm", r.c.VM, "chore", r.c.Kind, "error", err)
	return 15 * time.Second, false, nil
}

// newChore makes a chore of an operation. Its id says what it is for, so that
// the same chore made twice is one.
func newChore(op *fleet.Operation, kind fleet.ChoreKind, suffix string, at time.Time, state any) (fleet.Chore, error) {
	raw, err := json.Marshal(state)
	if err != nil {
		return fleet.Chore{}, fleet.Errorf(fleet.CodeInternal, "chore state: %w", err)
	}
	id := op.ID + "-" + string(kind)
	if suffix != "" {
		id += "-" + suffix
	}
	return fleet.Chore{
		ID: id, Operation: op.ID, Fleet: op.Fleet, VM: op.VM,
		Kind: kind, State: raw, CreatedAt: at, NextAt: at,
	}, nil
}

// load reads the chore's own state.
func (r *errand) load(state any) error {
	if err := json.Unmarshal(r.c.State, state); err != nil {
		return fleet.Errorf(fleet.CodeInternal, "state of chore %s: %w", r.c.ID, err)
	}
	return nil
}

// keep stores the chore's own state and when to look again.
func (r *errand) keep(state any, next time.Time) error {
	raw, err := json.Marshal(state)
	if err != nil {
		return fleet.Errorf(fleet.CodeInternal, "state of chore %s: %w", r.c.ID, err)
	}
	r.c.State, r.c.NextAt = raw, next
	return nil
}

// end ends the chore with one line for people.
func (r *errand) end(format string, args ...any) error {
	r.c.FinishedAt, r.c.Outcome = r.now(), fmt.Sprintf(format, args...)
	r.fact(fleet.FactNote, "%s: %s", r.c.Kind, r.c.Outcome)
	return nil
}

func (r *errand) fact(kind, format string, args ...any) {
	r.facts = append(r.facts, fleet.Fact{
		At: r.now(), Operation: r.c.Operation, Fleet: r.c.Fleet, VM: r.c.VM,
		Kind: kind, Text: fmt.Sprintf(format, args...),
	})
}

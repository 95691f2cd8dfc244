package control

import (
	"context"
	"io"
	"log/slog"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Options are what a Control is made of.
type Options struct {
	Fleets map[string]fleet.Spec
	Store  Store
	Waker  Waker
	Clock  Clock
	Random io.Reader // for operation ids; nil = crypto/rand
	Log    *slog.Logger
}

// Control accepts intents.
type Control struct {
	Options
}

// New makes a Control.
func New(o Options) *Control { return &Control{Options: o} }

// Spec yields a fleet's spec. CodeNotFound names the nearest fleet.
func (c *Control) Spec(name string) (fleet.Spec, error) {
	spec, ok := c.Fleets[name]
	if !ok {
		return fleet.Spec{}, unknown("fleet", name, "", keys(c.Fleets))
	}
	return spec, nil
}

// Ask accepts an intent: one operation for each VM, in the order given, all or
// none. A VM with an unfinished operation of the same kind and target, and of no
// other policy than the intent names, attaches to it; any other unfinished
// operation refuses the whole intent.
//
// Errors: CodeNotFound (fleet, VM; with the near name), CodeInvalid,
// CodeConflict (with the id of the operation in the way).
func (c *Control) Ask(ctx context.Context, in Intent) ([]Answer, error) { return c.ask(ctx, in) }

// Cancel asks an operation to end and give intake back. It is refused once the
// intent to delete is committed: CodeConflict. A finished one: CodeConflict.
func (c *Control) Cancel(ctx context.Context, id string, by fleet.Actor) (*fleet.Operation, error) {
	return c.cancel(ctx, id, by)
}

// Change changes a drain that is under way: extends its cap, puts it under
// another policy, or skips it. The engine sees it at once, wherever it waits;
// what it had decided before and not committed is decided anew.
//
// Errors: CodeInvalid, CodeNotFound, CodeConflict (the drain has a verdict, or the
// delete is committed; see fleet.Operation.Changeable), those of Change.Judge.
func (c *Control) Change(ctx context.Context, id string, ch Change) (*fleet.Operation, error) {
	return c.changeDrain(ctx, id, ch)
}

// Resume goes on with an operation that is held after its delete, with a
// corrected image if one is given; it also ends a backoff. CodeConflict if
// the operation has finished.
func (c *Control) Resume(ctx context.Context, id, image string, by fleet.Actor) (*fleet.Operation, error) {
	return c.resume(ctx, id, image, by)
}

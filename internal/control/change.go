package control

import (
	"context"
	"fmt"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// edit changes a loaded operation and says what was done, for the journal; ""
// where there is nothing to do. Further facts go with it.
type edit func(*fleet.Operation) (what string, also []fleet.Fact, err error)

// change loads, changes and stores an operation, anew if somebody else moved
// it in between: the engine's step under way then loads it again too.
func (c *Control) change(ctx context.Context, id string, by fleet.Actor, apply edit) (*fleet.Operation, error) {
	for {
		op, err := c.Store.FindOperation(ctx, id)
		if err != nil {
			return nil, err
		}
		what, also, err := apply(op)
		if err != nil || what == "" {
			return op, err
		}
		now := c.Clock.Now()
		op.UpdatedAt = now
		facts := append([]fleet.Fact{{
			At: now, Operation: op.ID, Fleet: op.Fleet, VM: op.VM, Kind: fleet.FactAsked, Phase: op.Phase,
			Text: fmt.Sprintf("%s by %s", what, by.Words()),
		}}, also...)
		err = c.Store.UpdateOperation(ctx, op, facts, nil, nil)
		if fleet.CodeOf(err) == fleet.CodeConflict {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := c.Waker.Wake(ctx, op.ID); err != nil {
			c.Log.WarnContext(ctx, "the engine was not woken; its sweep will find the operation",
				"op", op.ID, "fleet", op.Fleet, "vm", op.VM, "error", err)
		}
		return op, nil
	}
}

// unfinished refuses to change what has ended.
func unfinished(op *fleet.Operation) error {
	if !op.Phase.Finished() {
		return nil
	}
	return fleet.Errorf(fleet.CodeConflict, "%s has ended already: %s", op.ID, op.Phase).
		WithHint("`sluice op show %s` says how; ask anew if more is wanted", op.ID)
}

package control

import (
	"context"
	"fmt"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func (c *Control) cancel(ctx context.Context, id string, by fleet.Actor) (*fleet.Operation, error) {
	return c.change(ctx, id, by, "cancel was asked for", func(op *fleet.Operation) error {
		switch {
		case !op.Delete.IntentAt.IsZero():
			return fleet.Errorf(fleet.CodeConflict, "%s: the delete of %s is committed, there is no way back", op.ID, op.Ref()).
				WithHint("let it go on; follow it with `sluice op watch %s`", op.ID)
		case op.Phase == fleet.PhaseCreating && op.Create.Token != "":
			return fleet.Errorf(fleet.CodeConflict, "%s: the provider is creating %s already", op.ID, op.Ref()).
				WithHint("follow it with `sluice op watch %s`; `sluice delete %s` takes the VM away afterwards", op.ID, op.Ref())
		case op.Phase == fleet.PhaseVerifying, op.Phase == fleet.PhaseRestoring:
			return fleet.Errorf(fleet.CodeConflict, "%s is %s: that cannot be canceled", op.ID, op.Phase).
				WithHint("follow it with `sluice op watch %s`", op.ID)
		}
		op.Canceled = true
		return nil
	})
}

func (c *Control) resume(ctx context.Context, id, image string, by fleet.Actor) (*fleet.Operation, error) {
	what := "resume was asked for"
	if image != "" {
		what += " with image " + image
	}
	return c.change(ctx, id, by, what, func(op *fleet.Operation) error {
		op.NotBefore = op.UpdatedAt
		if image != "" {
			if op.Phase == fleet.PhaseCreating && op.Create.Token != "" {
				return fleet.Errorf(fleet.CodeConflict, "%s: an attempt to create %s is under way, and its image cannot be changed", op.ID, op.Ref()).
					WithHint("wait until the attempt has ended: `sluice op watch %s`", op.ID)
			}
			if op.Phase != fleet.PhaseCreating {
				return fleet.Errorf(fleet.CodeConflict, "%s is %s: an image can be changed only in creating, between two attempts", op.ID, op.Phase).
					WithHint("before that cancel it and ask anew; see `sluice op show %s`", op.ID)
			}
			op.Request.Image = image
			op.Create.Prepared = fleet.Prepared{}
		}
		op.Held = false
		return nil
	})
}

// change loads, changes and stores an operation, anew if somebody else moved
// it in between.
func (c *Control) change(ctx context.Context, id string, by fleet.Actor, what string, apply func(*fleet.Operation) error) (*fleet.Operation, error) {
	for {
		op, err := c.Store.FindOperation(ctx, id)
		if err != nil {
			return nil, err
		}
		if op.Phase.Finished() {
			return nil, fleet.Errorf(fleet.CodeConflict, "%s has ended already: %s", op.ID, op.Phase).
				WithHint("`sluice op show %s` says how; ask anew if more is wanted", op.ID)
		}
		if err := apply(op); err != nil {
			return nil, err
		}
		now := c.Clock.Now()
		op.UpdatedAt = now
		fact := fleet.Fact{
			At: now, Operation: op.ID, Fleet: op.Fleet, VM: op.VM, Kind: fleet.FactAsked, Phase: op.Phase,
			Text: fmt.Sprintf("%s by %s", what, by.Name),
		}
		err = c.Store.UpdateOperation(ctx, op, []fleet.Fact{fact}, nil, nil)
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

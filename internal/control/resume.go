package control

import (
	"context"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func (c *Control) resume(ctx context.Context, id, image string, by fleet.Actor) (*fleet.Operation, error) {
	what := "resume was asked for"
	if image != "" {
		what += " with image " + image
	}
	return c.change(ctx, id, by, func(op *fleet.Operation) (string, []fleet.Fact, error) {
		if err := unfinished(op); err != nil {
			return "", nil, err
		}
		op.NotBefore = op.UpdatedAt
		if err := correctImage(op, image); err != nil {
			return "", nil, err
		}
		op.Held = false
		return what, nil, nil
	})
}

// correctImage has the next attempt create with another image; "" = as it is.
func correctImage(op *fleet.Operation, image string) error {
	switch {
	case image == "":
		return nil
	case op.Phase == fleet.PhaseCreating && op.Create.Token != "":
		return fleet.Errorf(fleet.CodeConflict, "%s: an attempt to create %s is under way, and its image cannot be changed", op.ID, op.Ref()).
			WithHint("wait until the attempt has ended: `sluice op watch %s`", op.ID)
	case op.Phase != fleet.PhaseCreating:
		return fleet.Errorf(fleet.CodeConflict, "%s is %s: an image can be changed only in creating, between two attempts", op.ID, op.Phase).
			WithHint("before that cancel it and ask anew; see `sluice op show %s`", op.ID)
	}
	op.Request.Image = image
	op.Create.Prepared = fleet.Prepared{}
	return nil
}

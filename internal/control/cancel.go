package control

import (
	"context"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func (c *Control) cancel(ctx context.Context, id string, by fleet.Actor) (*fleet.Operation, error) {
	return c.change(ctx, id, by, func(op *fleet.Operation) (string, []fleet.Fact, error) {
		if err := cancelable(op); err != nil {
			return "", nil, err
		}
		op.Canceled = true
		return "cancel was asked for", nil, nil
	})
}

// cancelable refuses where there is no way back. Under a waiver there is one
// until the delete is committed.
func cancelable(op *fleet.Operation) error {
	if err := unfinished(op); err != nil {
		return err
	}
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
	default:
		return nil
	}
}

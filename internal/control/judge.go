package control

import (
	"fmt"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// kind is what the intent comes to: a create that may replace is a recreate.
func (in Intent) kind() fleet.Kind {
	if in.Kind == fleet.KindCreate && in.Replace {
		return fleet.KindRecreate
	}
	return in.Kind
}

// judge says what becomes of the unfinished operations in an intent's way:
// one of the same kind and target is attached to, a restore gives way to what
// deletes the VM (design.md section 4.1), anything else refuses the intent.
func (c *Control) judge(in Intent, list []Inserted) error {
	for i := range list {
		op := list[i].Operation
		switch {
		case list[i].New || sameTarget(in, op):
		case op.Phase == fleet.PhaseRestoring && in.kind().Deletes():
			ended, err := c.supersede(in, op)
			if err != nil {
				return err
			}
			list[i].Ended = ended
		default:
			return fleet.Errorf(fleet.CodeConflict, "%s has an unfinished operation already: %s (%s, %s)", op.Ref(), op.ID, op.Kind, op.Phase).
				WithHint("see it with `sluice op show %s`, wait for it, or end it with `sluice op cancel %s`", op.ID, op.ID)
		}
	}
	return nil
}

func sameTarget(in Intent, op fleet.Operation) bool {
	return op.Phase != fleet.PhaseRestoring &&
		op.Kind == in.kind() && op.Request.Image == in.Image && op.Request.NoDrain == in.NoDrain
}

// supersede ends a restore: the VM is about to go, and its intake stays as it is.
func (c *Control) supersede(in Intent, op fleet.Operation) (*fleet.Operation, error) {
	event := op.Restore.Event
	if event == "" {
		event = fleet.EventCancel // an undrain
	}
	next, err := fleet.Transition(op.Position(), event)
	if err != nil {
		return nil, err
	}
	now := c.Clock.Now()
	op.Phase, op.PhaseSince, op.UpdatedAt, op.FinishedAt = next, now, now, now
	op.Waiting = ""
	if op.ErrMessage == "" {
		op.ErrMessage = fmt.Sprintf("superseded by a %s before intake was restored", in.kind())
	}
	return &op, nil
}

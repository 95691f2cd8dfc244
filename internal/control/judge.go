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
// one of the same kind and target is attached to; some give way; anything else
// refuses the intent.
func (c *Control) judge(in Intent, ops []fleet.Operation, list []Inserted) error {
	for i := range list {
		op := list[i].Operation
		if list[i].New || list[i].Kept || sameTarget(in, op) {
			continue
		}
		event, gives := givesWay(in, op)
		if !gives {
			return fleet.Errorf(fleet.CodeConflict, "%s has an unfinished operation already: %s (%s, %s)", op.Ref(), op.ID, op.Kind, op.Phase).
				WithHint("see it with `sluice op show %s`, wait for it, or end it with `sluice op cancel %s`", op.ID, op.ID)
		}
		ended, err := c.supersede(in, op, event)
		if err != nil {
			return err
		}
		inherit(&ops[i], op)
		list[i].Ended = ended
	}
	return nil
}

func sameTarget(in Intent, op fleet.Operation) bool {
	superseded := op.Phase == fleet.PhaseRestoring && op.Kind != fleet.KindUndrain
	return !superseded && op.Kind == in.kind() && op.Request.Image == in.Image && op.Request.NoDrain == in.NoDrain
}

// givesWay says by which event an operation ends for an intent. A restore gives
// way to what deletes the VM (design.md section 4.1), and what has not committed
// a delete gives way to an undrain, which gives intake back in its stead. What a
// webhook asked for and nobody began gives way to what a newer one asks for.
func givesWay(in Intent, op fleet.Operation) (fleet.Event, bool) {
	switch {
	case op.Phase == fleet.PhaseRestoring && op.Restore.Event != "":
		return op.Restore.Event, in.kind().Deletes() || in.Kind == fleet.KindUndrain
	case op.Phase == fleet.PhaseRestoring:
		return fleet.EventCancel, in.kind().Deletes()
	case in.Kind == fleet.KindUndrain && op.Kind.Drains() && op.Delete.IntentAt.IsZero():
		return fleet.EventCancel, true
	case in.Newer && op.Phase == fleet.PhaseQueued && op.Kind == fleet.KindRecreate && op.Request.By.From == FromWebhook:
		return fleet.EventCancel, in.kind() == fleet.KindRecreate
	default:
		return "", false
	}
}

// inherit hands on what the successor must know of the intake that it answers
// for from now on. The stop that was given is the successor's to watch for
// orphans; a new drain has a stop, and a cap, of its own besides.
func inherit(to *fleet.Operation, from fleet.Operation) {
	to.Old, to.OldAddr, to.OldKeys, to.Order, to.WasDown = from.Old, from.OldAddr, from.OldKeys, from.Order, from.WasDown
	to.Drain = fleet.DrainState{JobsSeen: from.Drain.JobsSeen, OrderedAt: from.Drain.OrderedAt}
	if to.Kind == fleet.KindUndrain {
		to.Drain.StoppedAt = from.Drain.StoppedAt
	}
}

// supersede ends an operation in favour of another that takes over its VM as
// it is: nothing is left half done, because the other one goes on from there.
func (c *Control) supersede(in Intent, op fleet.Operation, event fleet.Event) (*fleet.Operation, error) {
	at := op.Position()
	at.Stopping = false // the successor answers for the intake
	next, err := fleet.Transition(at, event)
	if err != nil {
		return nil, err
	}
	now := c.Clock.Now()
	op.Phase, op.PhaseSince, op.UpdatedAt, op.FinishedAt = next, now, now, now
	op.Waiting = ""
	if op.ErrMessage == "" {
		op.ErrMessage = fmt.Sprintf("superseded by a %s", in.kind())
	}
	return &op, nil
}

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
// one that does what is asked is attached to; some give way; anything else
// refuses the intent.
func (c *Control) judge(in Intent, ops []fleet.Operation, list []Inserted) error {
	for i := range list {
		op := list[i].Operation
		if list[i].New || list[i].Kept {
			continue
		}
		if attaches(in, op) {
			list[i].Joined = true
			continue
		}
		event, gives := givesWay(in, op)
		if !gives {
			return inTheWay(in, op)
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

// attaches says whether an operation does what the intent asks for: then there
// is nothing to begin.
func attaches(in Intent, op fleet.Operation) bool {
	return sameTarget(in, op) && samePolicy(in, op) && !tooEarly(in, op)
}

// tooEarly says whether an operation may have looked its image up before what
// the intent is about was built: what it will bring is not what is asked for.
// While it is queued nobody has looked; from there on the intent comes again
// when it has ended.
func tooEarly(in Intent, op fleet.Operation) bool {
	return in.Newer && op.Kind.Creates() && op.Phase != fleet.PhaseQueued
}

// samePolicy says whether an operation runs under the policy that the intent
// names. What the intent does not name is the operation's to know.
func samePolicy(in Intent, op fleet.Operation) bool {
	return in.Policy.Apply(op.Request.Policy) == op.Request.Policy
}

// inTheWay refuses an intent, and says which way is open.
func inTheWay(in Intent, op fleet.Operation) error {
	if sameTarget(in, op) && !samePolicy(in, op) {
		return fleet.Errorf(fleet.CodeConflict, "%s has an unfinished operation already, under another policy than is asked for: %s (%s, %s; %s)",
			op.Ref(), op.ID, op.Kind, op.Phase, in.Policy.differs(op.Request.Policy)).
			WithHint("ask without a policy to attach to it as it is; or see it with `sluice op show %s`, and end it with `sluice op cancel %s`", op.ID, op.ID)
	}
	if sameTarget(in, op) && tooEarly(in, op) {
		return fleet.Errorf(fleet.CodeConflict, "%s has an unfinished operation already, whose image may be an older one: %s (%s, %s)", op.Ref(), op.ID, op.Kind, op.Phase).
			WithHint("ask again when it has ended; see it with `sluice op show %s`", op.ID)
	}
	err := fleet.Errorf(fleet.CodeConflict, "%s has an unfinished operation already: %s (%s, %s%s)", op.Ref(), op.ID, op.Kind, op.Phase, otherImage(in, op))
	if !op.Delete.IntentAt.IsZero() || op.Kind == fleet.KindCreate { // there is no way back
		return err.WithHint("see it with `sluice op show %s`, and ask again when it has ended", op.ID)
	}
	return err.WithHint("see it with `sluice op show %s`, wait for it, or end it with `sluice op cancel %s`", op.ID, op.ID)
}

// otherImage says by which image an operation differs from an intent of its
// kind; "" if by none.
func otherImage(in Intent, op fleet.Operation) string {
	switch {
	case op.Kind != in.kind() || op.Request.Image == in.Image:
		return ""
	case op.Request.Image == "":
		return "; with the fleet's own image"
	default:
		return "; with image " + op.Request.Image
	}
}

func sameTarget(in Intent, op fleet.Operation) bool {
	superseded := op.Phase == fleet.PhaseRestoring && op.Kind != fleet.KindUndrain
	if in.TakeOver && !op.Request.TakeOver {
		return false // the one under way goes on being refused by the host
	}
	return !superseded && op.Kind == in.kind() && op.Request.Image == in.Image && op.SkipsDrain() == in.NoDrain
}

// givesWay says by which event an operation ends for an intent. A restore gives
// way to what deletes the VM (design.md section 4.1), and what has not committed
// a delete gives way to an undrain, which gives intake back in its stead. What a
// webhook asked for and nobody began gives way to what a newer one asks for,
// unless somebody else relies on it.
func givesWay(in Intent, op fleet.Operation) (fleet.Event, bool) {
	switch {
	case op.Phase == fleet.PhaseRestoring && op.Restore.Event != "":
		return op.Restore.Event, in.kind().Deletes() || in.Kind == fleet.KindUndrain
	case op.Phase == fleet.PhaseRestoring:
		return fleet.EventCancel, in.kind().Deletes() || in.Kind == fleet.KindUndrain && in.TakeOver && !op.Request.TakeOver
	case in.Kind == fleet.KindUndrain && op.Kind.Drains() && op.Delete.IntentAt.IsZero():
		return fleet.EventCancel, true
	case in.Newer && op.Phase == fleet.PhaseQueued && op.Kind == fleet.KindRecreate && fromWebhooksOnly(op):
		return fleet.EventCancel, in.kind() == fleet.KindRecreate
	default:
		return "", false
	}
}

// fromWebhooksOnly says that no person and no job asked for the operation or
// attached to it.
func fromWebhooksOnly(op fleet.Operation) bool {
	return op.Request.By.From == FromWebhook && op.Joined == fleet.Actor{}
}

// inherit hands on what the successor must know of the intake that it answers
// for from now on. The stop that was given is the successor's to watch for
// orphans; a new drain has a stop, and a cap, of its own besides.
func inherit(to *fleet.Operation, from fleet.Operation) {
	to.Old, to.OldAddr, to.OldKeys, to.Order = from.Old, from.OldAddr, from.OldKeys, from.Order
	to.WasDown, to.SeenRun = from.WasDown, from.SeenRun
	to.Drain = fleet.DrainState{
		JobsSeen: from.Drain.JobsSeen, OrderedAt: from.Drain.OrderedAt,
		GitLabUnsure: from.Drain.GitLabUnsure, Reopened: from.Drain.Reopened,
	}
	if to.Kind == fleet.KindUndrain {
		to.Drain.StoppedAt, to.Drain.EndOrderedAt = from.Drain.StoppedAt, from.Drain.EndOrderedAt
		to.CutJobs = from.CutJobs // taken back if their runner goes on
	}
	if to.Drain.InheritedStop = from.Drain.InheritedStop; to.Drain.InheritedStop.IsZero() {
		to.Drain.InheritedStop = from.Drain.StoppedAt
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

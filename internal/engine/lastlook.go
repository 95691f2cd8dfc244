package engine

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// glanceAge is how old the glance may be when the slower reads beside it have
// ended: older, and the host is looked at once more.
const glanceAge = 300 * time.Millisecond

// lastLook is what a delete is decided on: the provider's list, the image and
// template, and the host. Its reads do not depend on each other.
type lastLook struct {
	list      []fleet.Instance
	listErr   error
	imageErr  error // while there is a way back; past the intent it would only delay
	host      *fleet.HostReading
	hostErr   error
	askedHost time.Time
}

func (w *work) lastLook(ctx context.Context) lastLook {
	var l lastLook
	reads := []func(){func() { l.list, l.listErr = w.describe(ctx) }}
	d := w.op.Delete
	if w.op.Kind.Creates() && d.IntentAt.IsZero() {
		reads = append(reads, func() { l.imageErr = w.f.Machines.Check(ctx, w.op.VM, w.op.Create.Prepared) })
	}
	if d.CalledAt.IsZero() && w.hostTells() {
		reads = append(reads, func() { w.glance(ctx, &l) })
	}
	l.askedHost = w.now()
	w.together(reads...)
	return l
}

// hostTells says whether the verdict is of a kind that the host has a word in.
func (w *work) hostTells() bool {
	switch w.op.Drain.Verdict {
	case fleet.VerdictOff, fleet.VerdictAbsent, fleet.VerdictUnreachable:
		return false
	default:
		return w.op.OldAddr != ""
	}
}

// answers says whether the old incarnation's own host was reached.
func (w *work) answers(l *lastLook) bool {
	return l.host != nil && w.op.OldSubject().Check(l.host.Subject) == nil
}

func (w *work) glance(ctx context.Context, l *lastLook) {
	l.askedHost = w.now()
	l.host, l.hostErr = w.f.glance(ctx, w.oldTarget())
}

// freshen looks at the host once more if the reads beside the glance took long.
// A host that could not be reached is not asked again.
func (w *work) freshen(ctx context.Context, l *lastLook) {
	if w.hostTells() && l.hostErr == nil && w.now().Sub(l.askedHost) > glanceAge {
		w.glance(ctx, l)
	}
}

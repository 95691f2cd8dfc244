package engine

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// proofFresh is how old the reading behind a verdict may be to count as the
// proof too, without another look: no host boots and starts its runner in it.
const proofFresh = time.Second

// lastLook is what a delete is decided on: the provider's list, the image and
// template, and, last, the host.
type lastLook struct {
	askedAt  time.Time // before the provider was asked
	list     []fleet.Instance
	listErr  error
	imageErr error // while there is a way back; past the intent it would only delay
	host     *fleet.HostReading
	hostErr  error
	provedAt time.Time // when the host evidence was taken
}

// lastLook is what the provider says, asked ahead or now.
func (w *work) lastLook(ctx context.Context) lastLook {
	if l, ok := w.askedAhead(); ok && w.op.Delete.IntentAt.IsZero() {
		return l
	}
	return w.askProvider(ctx)
}

// askProvider asks for two things that do not depend on each other.
func (w *work) askProvider(ctx context.Context) lastLook {
	l := lastLook{askedAt: w.now()}
	reads := []func(){func() { l.list, l.listErr = w.describe(ctx) }}
	if w.op.Kind.Creates() && w.op.Delete.IntentAt.IsZero() {
		reads = append(reads, func() { l.imageErr = w.f.Machines.Check(ctx, w.op.VM, w.op.Create.Prepared) })
	}
	w.together(reads...)
	return l
}

// lookAtOld looks at the host after the provider has answered, unless the
// reading that made the verdict is fresh still.
func (w *work) lookAtOld(ctx context.Context, l *lastLook) {
	l.provedAt = w.now()
	switch d := &w.op.Drain; d.Verdict {
	case fleet.VerdictOff, fleet.VerdictAbsent:
		return // the host has no word in these
	case fleet.VerdictUnreachable:
		if !w.op.Delete.IntentAt.IsZero() {
			return // there is no way back
		}
	case fleet.VerdictDrained, fleet.VerdictDirty:
		if w.op.Delete.IntentAt.IsZero() && within(d.VerdictAt, l.provedAt, proofFresh) {
			l.host, l.provedAt = d.Proof, d.VerdictAt
		}
	default:
	}
	if l.host == nil {
		if w.op.Drain.Waiver != nil {
			var cancel context.CancelFunc
			ctx, cancel = timeout(ctx, waivedLimit)
			defer cancel()
		}
		l.host, l.hostErr = w.f.glance(ctx, w.oldTarget())
	}
}

// within says whether then was at most age before now. What lies in the future
// was taken before the clock was set back, nobody knows how long ago.
func within(then, now time.Time, age time.Duration) bool {
	return !then.After(now) && now.Sub(then) <= age
}

// answers says whether the old incarnation's own host was reached.
func (w *work) answers(l *lastLook) bool {
	return l.host != nil && w.op.OldSubject().Check(l.host.Subject) == nil
}

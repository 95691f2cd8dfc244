package engine

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// attempt is what the steps of one attempt hand on to each other, to save time.
// None of it is the truth: a crash loses it, and what is missing is asked for.
type attempt struct {
	holdUntil time.Time          // waits on a host end here: the acts after them need room
	seen      *fleet.HostReading // what the host saw just after its process ended
	ahead     *lastLook          // what the provider said at that moment
}

func (e *Engine) attempt(began time.Time) *attempt { return &attempt{holdUntil: began.Add(hold)} }

// lookAtOldHost yields what was read on the host when its process ended, once and
// while it is fresh; else it looks.
func (w *work) lookAtOldHost(ctx context.Context) (reading *fleet.HostReading, seen bool, err error) {
	reading, w.attempt.seen = w.attempt.seen, nil
	if reading != nil && within(reading.TakenAt, w.now(), proofFresh) {
		return reading, true, nil
	}
	reading, err = w.f.look(ctx, w.oldTarget())
	return reading, false, err
}

// lookAhead asks the provider what deleting is about to ask, while GitLab is asked:
// the process has ended, and every moment until the delete is a VM that does nothing.
func (w *work) lookAhead(ctx context.Context) {
	ahead := w.askProvider(ctx)
	if ctx.Err() == nil {
		w.attempt.ahead = &ahead
	}
}

// askedAhead yields the provider's answers while they are fresh.
func (w *work) askedAhead() (lastLook, bool) {
	ahead := w.attempt.ahead
	w.attempt.ahead = nil
	if ahead == nil || !within(ahead.askedAt, w.now(), proofFresh) {
		return lastLook{}, false
	}
	return *ahead, true
}

package queue

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/riverqueue/river"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// look is one of the engine's two.
type look func(ctx context.Context, id string) (wait time.Duration, done bool, err error)

// attempt looks until there is nothing to do for a while, then gives its place
// back: nil ends the job, a snooze brings it back. Failures are snoozes too,
// with a pause that doubles; they use no attempts up and leave no trace in the
// job that would grow for as long as a disk is full.
func (q *Queue) attempt(ctx context.Context, about subject, look look) error {
	began := q.Clock.Now()
	place := q.desk.begin(about)
	defer q.desk.drop(about, place)
	for {
		wait, done, err := q.lookOnce(ctx, about, look)
		switch {
		case done:
			q.desk.recovered(about)
			return nil
		case errors.Is(ctx.Err(), context.Canceled):
			return ctx.Err() // River knows its own stop and does not count it
		case err != nil:
			wait = q.desk.failed(about)
			q.Log.WarnContext(ctx, "a look failed; it is repeated", about.key(), about.id, "error", err, "in", wait)
		default:
			q.desk.recovered(about)
		}
		if q.Clock.Now().Sub(began) >= stay {
			return river.JobSnooze(q.desk.remaining(about, place, wait))
		}
		if wait > shortWait && q.desk.leave(about, place) {
			return river.JobSnooze(wait)
		}
		if err := pause(ctx, place, wait); err != nil {
			return err
		}
	}
}

// lookOnce is one look within its limit. A panic is a failure like others: one
// operation must not end the controller.
func (q *Queue) lookOnce(ctx context.Context, about subject, look look) (wait time.Duration, done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			q.Log.ErrorContext(ctx, "a look panicked", about.key(), about.id, "panic", cause, "stack", string(debug.Stack()))
			wait, done, err = 0, false, fleet.Errorf(fleet.CodeInternal, "%s %s: a look panicked: %v", about.kind, about.id, cause)
		}
	}()
	wait, done, err = look(ctx, about.id)
	if done && err != nil {
		q.Log.WarnContext(ctx, "a look ended for good", about.key(), about.id, "error", err)
	}
	return wait, done, err
}

// pause sits out a short wait, a wake-up, or the end of ctx: an error then.
func pause(ctx context.Context, place *place, wait time.Duration) error {
	timer := time.NewTimer(min(max(wait, leastWait), shortWait))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-place.poke:
	case <-timer.C:
	}
	return nil
}

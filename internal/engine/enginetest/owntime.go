package enginetest

import (
	"context"
	"time"
)

// ownTime is a context whose limits pass on the world's clock.
type ownTime struct {
	context.Context
	w   *World
	end time.Time
}

// Err implements context.Context.
func (o ownTime) Err() error {
	if !o.end.IsZero() && !o.w.now.Before(o.end) {
		return context.DeadlineExceeded
	}
	return nil
}

// Deadline implements context.Context.
func (o ownTime) Deadline() (time.Time, bool) { return o.end, !o.end.IsZero() }

// WithTimeout is what the engine makes its limits with.
func (o ownTime) WithTimeout(d time.Duration) (context.Context, context.CancelFunc) {
	end := o.w.now.Add(d)
	if !o.end.IsZero() && o.end.Before(end) {
		end = o.end
	}
	return ownTime{o.Context, o.w, end}, func() {}
}

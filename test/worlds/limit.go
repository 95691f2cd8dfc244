package worlds

import (
	"context"
	"time"
)

// limit is a context that ends by the world's clock. It has no Done channel:
// nothing in a world waits on one, the ports ask the clock.
type limit struct {
	w        *World
	parent   *limit
	deadline time.Duration // 0 = none
	canceled bool
}

type limitKey struct{}

// Deadline implements context.Context, in the world's time.
func (l *limit) Deadline() (time.Time, bool) {
	until, ok := l.until()
	return start.Add(until), ok
}

func (l *limit) until() (time.Duration, bool) {
	least := l.deadline
	for p := l.parent; p != nil; p = p.parent {
		if p.deadline != 0 && (least == 0 || p.deadline < least) {
			least = p.deadline
		}
	}
	return least, least != 0
}

// Done implements context.Context.
func (l *limit) Done() <-chan struct{} { return nil }

// Err implements context.Context.
func (l *limit) Err() error {
	for p := l; p != nil; p = p.parent {
		switch {
		case p.canceled:
			return context.Canceled
		case p.deadline != 0 && l.w.now >= p.deadline:
			return context.DeadlineExceeded
		}
	}
	return nil
}

// Value implements context.Context. It yields itself, so that a context that
// was derived from it can be asked too.
func (l *limit) Value(key any) any {
	if key == (limitKey{}) {
		return l
	}
	return nil
}

// WithTimeout derives a context that ends d from now at the latest.
func (l *limit) WithTimeout(d time.Duration) (context.Context, context.CancelFunc) {
	child := &limit{w: l.w, parent: l, deadline: l.w.now + d}
	return child, func() { child.canceled = true }
}

// ended says whether a context of this world, or one derived from it, has ended.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l, ok := ctx.Value(limitKey{}).(*limit); ok {
		return l.Err()
	}
	return nil
}

// Package simclock is the time that the simulated parts live in: a clock with
// timers. In the demo it is the real one; a simulation can give them another.
//
// It must not know what runs on it.
package simclock

import (
	"context"
	"time"
)

// Clock tells the time and calls back when some of it has passed.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own once d has passed.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a call to come.
type Timer interface {
	// Stop prevents the call; false if it has begun already or was stopped.
	Stop() bool
}

// Real is the wall clock, with its reading injected.
type Real struct{ now func() time.Time }

// NewReal makes a real clock of now, usually time.Now.
func NewReal(now func() time.Time) Real { return Real{now: now} }

// Now implements Clock.
func (r Real) Now() time.Time { return r.now() }

// AfterFunc implements Clock.
func (Real) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// Sleep waits for d or until ctx ends; it says whether d has passed.
func Sleep(ctx context.Context, c Clock, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	passed := make(chan struct{})
	t := c.AfterFunc(d, func() { close(passed) })
	defer t.Stop()
	select {
	case <-passed:
		return true
	case <-ctx.Done():
		return false
	}
}

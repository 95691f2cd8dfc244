package real

import (
	"context"
	"sync/atomic"
	"time"
)

// pace tells how busy the machine is, by how late its own alarms are. Worlds in
// real time would fail on a machine that has no time for them, and say nothing
// about Sluice: while alarms are late no further world begins, and none fails for
// want of time.
type pace struct {
	by   atomic.Int64 // nanoseconds, smoothed
	last atomic.Int64 // when it was late, in Unix nanoseconds
}

// The limits of the pace. A few worlds always live: whoever is alone is never
// held up.
const (
	alarm   = 20 * time.Millisecond
	tooLate = 15 * time.Millisecond
	always  = 3
)

// measure looks at alarms until ctx ends.
func (p *pace) measure(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		<-time.After(alarm)
		late := time.Since(began) - alarm
		p.by.Store((9*p.by.Load() + int64(late)) / 10)
		if p.late() {
			p.last.Store(time.Now().UnixNano())
		}
	}
}

// late says whether the machine has no time for more.
func (p *pace) late() bool { return time.Duration(p.by.Load()) >= tooLate }

// lateSince says whether it had no time for more at some moment since then.
func (p *pace) lateSince(since time.Time) bool { return p.last.Load() > since.UnixNano() }

// admits waits until a further world may begin beside those that live.
func (p *pace) admits(living *atomic.Int64) {
	for {
		if n := living.Add(1); n <= always || !p.late() {
			return
		}
		living.Add(-1)
		<-time.After(5 * alarm)
	}
}

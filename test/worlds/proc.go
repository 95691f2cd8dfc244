package worlds

import (
	"context"
	"iter"
	"runtime/debug"
	"time"
)

// proc is one thread of the controller: a coroutine that runs until it waits
// for the clock. Only one thing runs in a world at any time, so a world needs
// no locks and has one story.
type proc struct {
	w     *World
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	alarm *event
	ctx   context.Context // of the wait that it is in; nil = it cannot be ended
	idle  bool            // rests between two looks
	poked bool            // woken while it was not resting
	over  bool
}

// killed unwinds a proc whose process is dead.
type killed struct{}

// spawn makes a proc that begins to run after a moment.
func (w *World) spawn(delay time.Duration, run func(*proc)) *proc {
	p := &proc{w: w}
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		p.yield = yield
		defer p.ends()
		run(p)
	})
	p.alarm = w.after(delay, func() { w.resume(p) })
	return p
}

// ends sorts the ways in which a proc ends. A panic of the engine is a failure
// of the world.
func (p *proc) ends() {
	p.over = true
	if cause := recover(); cause != nil {
		if _, ok := cause.(killed); !ok {
			p.w.violation("panic", "%v\n%s", cause, debug.Stack())
		}
	}
}

// resume runs a proc until it waits again. Only the clock calls it.
func (w *World) resume(p *proc) {
	if p.over {
		return
	}
	if w.now < w.pausedUntil { // the process is stopped, or its machine is
		p.alarm = w.after(w.pausedUntil-w.now, func() { w.resume(p) })
		return
	}
	w.running = p
	p.next()
	w.running = nil
	if w.dying != "" {
		w.bury()
	}
}

// wait lets the clock go on for d, at most as long as ctx lasts. Outside of a
// proc nothing waits. It yields why ctx has ended, if it has.
func (w *World) wait(ctx context.Context, d time.Duration) error {
	p := w.running
	if p == nil {
		return nil
	}
	if until, ok := untilOf(ctx); ok {
		d = min(d, until-w.now)
	}
	p.ctx = ctx
	p.sleep(d)
	p.ctx = nil
	return ended(ctx)
}

func untilOf(ctx context.Context) (time.Duration, bool) {
	l, ok := ctx.Value(limitKey{}).(*limit)
	if !ok {
		return 0, false
	}
	return l.until()
}

func (p *proc) sleep(d time.Duration) {
	p.alarm = p.w.after(d, func() { p.w.resume(p) })
	if !p.yield(struct{}{}) {
		panic(killed{})
	}
}

// rouse ends a wait early.
func (p *proc) rouse(delay time.Duration) {
	if p.over || p.alarm == nil || p.alarm.off {
		return
	}
	p.alarm.off = true
	p.alarm = p.w.after(delay, func() { p.w.resume(p) })
}

// rest is the pause between two looks; a wake-up ends it.
func (p *proc) rest(d time.Duration) {
	if p.poked {
		d = 0
	}
	p.idle, p.poked = true, false
	p.sleep(d)
	p.idle = false
}

// poke wakes a resting proc, or lets it look again at once.
func (p *proc) poke() {
	if p.idle {
		p.rouse(5 * time.Millisecond)
		return
	}
	p.poked = true
}

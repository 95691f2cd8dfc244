package worlds

import (
	"context"
	"log/slog"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// controller is our process: an engine, and what the queue does around it. All
// of it is forgotten when it dies.
type controller struct {
	up        bool
	engine    *engine.Engine
	root      *limit
	threads   []*proc
	looks     map[string]*proc // at operations and chores
	deafUntil time.Duration    // wake-ups are lost
	lives     int
}

// The queue's habits (internal/engine/queue).
const (
	lookLimit  = 30 * time.Second
	rescueEach = 20 * time.Second
	sweepEach  = time.Minute
)

// boot starts the controller after a moment.
func (w *World) boot(delay time.Duration) {
	w.after(delay, func() {
		if w.controller.up {
			return
		}
		c := &w.controller
		*c = controller{up: true, root: &limit{w: w}, looks: map[string]*proc{}, lives: c.lives + 1, deafUntil: c.deafUntil}
		c.engine = w.newEngine()
		w.say("sluice   starts (life %d)", c.lives)
		c.threads = append(c.threads, w.spawn(0, w.rescue), w.spawn(15*time.Second, w.sweep))
	})
}

func (w *World) newEngine() *engine.Engine {
	f := &engine.Fleet{Spec: w.spec, Hosts: hostPort{w}, Machines: cloudPort{w}}
	if w.spec.HasGitLab {
		f.GitLab = gitlabPort{w: w}
	}
	if w.spec.Individual() {
		f.Entries = entriesPort{gitlabPort{w: w}}
		f.GitLab = entriesPort{gitlabPort{w: w}}
	}
	if w.spec.HasWriteToken {
		f.Jobs = jobsPort{w}
	}
	if w.spec.HasRunnerToken {
		f.Registrar = registrarPort{w}
	}
	return engine.New(engine.Options{
		Fleets: map[string]*engine.Fleet{fleetName: f}, Store: admitting{w.store, w}, Clock: w, Observer: observer{w},
		Waker: waker{w}, Log: slog.New(slog.DiscardHandler), Owner: owner,
	})
}

// bury ends every thread of a controller that was killed.
func (w *World) bury() {
	c := &w.controller
	if w.dying != "" {
		w.say("sluice   IS KILLED at %s", w.dying)
	}
	w.dying, c.up = "", false
	for _, p := range c.threads {
		if p.alarm != nil {
			p.alarm.off = true
		}
		p.over = true
		p.stop()
	}
	c.threads, c.looks = nil, nil
}

// kill kills the controller where it stands.
func (w *World) kill(where string) {
	if !w.controller.up {
		return
	}
	w.dying = where
	if w.running != nil {
		panic(killed{})
	}
	w.bury()
}

// shutDown ends the controller the polite way: every context ends, and what
// runs may still write.
func (w *World) shutDown() {
	c := &w.controller
	if !c.up {
		return
	}
	w.say("sluice   is told to stop")
	c.root.canceled = true
	for _, p := range c.threads {
		if p.ctx != nil || p.idle {
			p.rouse(0)
		}
	}
	w.after(2*time.Second, w.bury)
}

// rescue finds what nobody looks at.
func (w *World) rescue(p *proc) {
	for {
		c := &w.controller
		ops, _ := w.store.Unfinished(context.Background())
		for i := range ops {
			w.lookAt(ops[i].ID, false)
		}
		chores, _ := w.store.UnfinishedChores(context.Background())
		for i := range chores {
			w.lookAt(chores[i].ID, true)
		}
		p.rest(rescueEach)
		if c.root.canceled {
			return
		}
	}
}

// sweep keeps drained VMs drained.
func (w *World) sweep(p *proc) {
	c := &w.controller
	for !c.root.canceled {
		ctx, cancel := c.root.WithTimeout(lookLimit)
		_ = c.engine.Sweep(ctx) // the next one tries again
		cancel()
		p.rest(sweepEach)
	}
}

// lookAt has somebody look at an operation or chore, if nobody does.
func (w *World) lookAt(id string, chore bool) {
	c := &w.controller
	if !c.up || c.root.canceled || c.looks[id] != nil {
		return
	}
	look := c.engine.Look
	if chore {
		look = c.engine.LookChore
	}
	p := w.spawn(5*time.Millisecond, func(p *proc) { w.looks(p, id, look) })
	c.looks[id] = p
	c.threads = append(c.threads, p)
}

func (w *World) looks(p *proc, id string, look func(context.Context, string) (time.Duration, bool, error)) {
	c := &w.controller
	for !c.root.canceled {
		ctx, cancel := c.root.WithTimeout(lookLimit)
		wait, done, err := look(ctx, id)
		cancel()
		switch {
		case done:
			delete(c.looks, id)
			return
		case err != nil:
			wait = time.Second
		}
		p.rest(max(wait, 10*time.Millisecond))
	}
}

// waker is the queue's ear.
type waker struct{ w *World }

// Wake implements engine.Waker and control.Waker.
func (k waker) Wake(_ context.Context, operation string) error {
	k.w.wake(operation, false)
	return nil
}

// WakeChore implements engine.Waker.
func (k waker) WakeChore(_ context.Context, chore string) error {
	k.w.wake(chore, true)
	return nil
}

func (w *World) wake(id string, chore bool) {
	c := &w.controller
	if !c.up || w.now < c.deafUntil {
		return
	}
	if !chore {
		c.engine.Interrupt(id)
		for _, p := range c.threads {
			if p != w.running && p.ctx != nil && !p.over && p.ctx.Err() != nil {
				p.rouse(0)
			}
		}
	}
	if p := c.looks[id]; p != nil {
		p.poke()
		return
	}
	w.lookAt(id, chore)
}

// observer writes the ledger's dates: when operations began and ended.
type observer struct{ w *World }

// OperationMoved implements engine.Observer.
func (o observer) OperationMoved(before, after *fleet.Operation) {
	if before.Phase == after.Phase {
		return
	}
	o.w.ledger.moved(o.w, after)
}

// JobsOrphaned implements engine.Observer.
func (observer) JobsOrphaned(string, fleet.RecoveryResult, int) {}

// JobsRetried implements engine.Observer.
func (observer) JobsRetried(string, bool, int) {}

// JobsCut implements engine.Observer.
func (observer) JobsCut(string, int) {}

// Reconciled implements engine.Observer.
func (observer) Reconciled(time.Time) {}

// admitting makes an admission one transaction: nothing happens between its
// count and its commit.
type admitting struct {
	*enginetest.Store
	w *World
}

// Admit implements engine.Store.
func (s admitting) Admit(ctx context.Context, op *fleet.Operation, next fleet.Phase, budget fleet.Budget, at time.Time) (bool, string, error) {
	s.w.atomic++
	defer func() { s.w.atomic-- }()
	ok, why, err := s.Store.Admit(ctx, op, next, budget, at)
	if ok {
		s.w.ledger.admitted(s.w, op)
	}
	return ok, why, err
}

// commitPoint is passed before and after each commit: a moment of a disk, and a
// place to die.
func (w *World) commitPoint(name string) {
	w.point(name, -1)
	if w.running != nil && w.atomic == 0 && name == "commit:before" {
		w.running.sleep(w.between(-1, time.Millisecond, 6*time.Millisecond))
	}
}

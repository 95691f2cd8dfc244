package cli

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// following is what a command follows.
type following struct {
	ops            []client.Operation
	after          int64 // events up to here are old
	leave          bool  // Ctrl-C leaves the operations as they are
	linger         time.Duration
	drainedNothing bool      // nothing follows that would be worth to stay for
	firstFails     bool      // the first failure ends it
	until          time.Time // it ends then at the latest; zero = when all have ended
	watching       bool      // somebody else works on them
}

// follow prints what happens to operations until all have ended, and yields
// the exit status as an error. Alone it stays for their chores too.
func (p *program) follow(ctx context.Context, s *session, f following) error {
	w := p.watch(s, f)
	defer w.hush()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	interrupts := w.interrupts(ctx)
	if err := w.untilEnded(ctx, interrupts); err != nil {
		return err
	}
	if !p.json() {
		w.summary()
	}
	if s.alone() && !f.drainedNothing {
		if err := w.untilFollowedUp(ctx, interrupts); err != nil {
			return err
		}
	}
	if p.json() {
		if err := p.printJSON(client.Operations{Operations: w.ops}); err != nil {
			return err
		}
	}
	if status := ending(w.ops, w.canceled); status != ExitDone {
		return &exit{status: status}
	}
	return nil
}

// watcher follows operations.
type watcher struct {
	*program
	*session
	following
	printed  map[string]string // by operation: what it was last said to wait for
	said     map[string]string // by operation: the last event's text
	moved    map[string]bool   // operations that something was told of since they were read
	news     *news             // nil = nothing is heard yet
	canceled bool              // Ctrl-C gave intake back
	pressed  int
}

func (p *program) watch(s *session, f following) *watcher {
	w := &watcher{
		program: p, session: s, following: f,
		printed: map[string]string{}, said: map[string]string{}, moved: map[string]bool{},
	}
	w.allMoved()
	return w
}

// allMoved has every operation read anew.
func (w *watcher) allMoved() {
	for i := range w.ops {
		w.moved[w.ops[i].Id] = true
	}
}

// untilEnded looks until every operation has ended.
func (w *watcher) untilEnded(ctx context.Context, interrupts <-chan struct{}) error {
	if err := w.events(ctx); err != nil && !w.bears(err) {
		return err
	}
	for {
		if err := w.look(ctx); err != nil && !w.bears(err) {
			return err
		}
		if w.ended() {
			return nil
		}
		if err := w.await(ctx, interrupts); err != nil {
			return err
		}
	}
}

// bears says whether a failure of a single look is no reason to end: a server
// may start anew, and the following of its events has the patience for it.
func (w *watcher) bears(err error) bool {
	if w.here() {
		return false
	}
	switch fleet.CodeOf(err) {
	case fleet.CodeUnavailable, fleet.CodeRateLimited, fleet.CodeInternal:
		return true
	default:
		return false
	}
}

// here says whether what is followed is in this process.
func (w *watcher) here() bool { return w.alone() || w.idle != nil }

// await waits for news, or obeys an interrupt.
func (w *watcher) await(ctx context.Context, interrupts <-chan struct{}) error {
	interrupted, err := w.pause(ctx, interrupts)
	if err != nil || !interrupted {
		return err
	}
	w.allMoved()
	return w.interrupted(ctx)
}

// look reads the operations that have moved, prints what was written until
// then, and then what they wait for, unless that is old already.
func (w *watcher) look(ctx context.Context) error {
	for {
		var fresh []int
		for i := range w.ops {
			if w.moved[w.ops[i].Id] && !w.ops[i].Finished {
				fresh = append(fresh, i)
			}
		}
		for _, i := range fresh {
			if err := w.reread(ctx, &w.ops[i]); err != nil {
				return err
			}
		}
		if err := w.events(ctx); err != nil {
			return err
		}
		again := false
		for _, i := range fresh {
			if op := &w.ops[i]; !op.Finished && w.moved[op.Id] {
				again = true
			} else if !op.Finished {
				w.waiting(op)
			}
		}
		if !again {
			return nil
		}
	}
}

func (w *watcher) reread(ctx context.Context, op *client.Operation) error {
	now, err := w.Operation(ctx, op.Id)
	if err != nil {
		return err
	}
	attached := op.Attached
	*op = *now
	op.Attached = attached
	delete(w.moved, op.Id)
	return nil
}

// events prints what the journal has on the operations by now.
func (w *watcher) events(ctx context.Context) error {
	for {
		params := client.ListEventsParams{After: &w.after, Limit: new(int64(1000))}
		if ids := w.ids(); len(ids) <= client.MostNamed {
			params.Operation = &ids
		}
		news, err := w.Events(ctx, params)
		if err != nil {
			if fleet.CodeOf(err) == fleet.CodeCanceled {
				return nil
			}
			return err
		}
		for i := range news.Events {
			w.tell(&news.Events[i])
		}
		w.after = news.Next
		if len(news.Events) < 1000 {
			return nil
		}
	}
}

// tell prints an event of the operations that is new.
func (w *watcher) tell(e *client.Event) {
	if e.Id <= w.after || !w.mine(e) {
		return
	}
	w.after = e.Id
	w.moved[*e.Operation] = true
	w.event(e)
}

func (w *watcher) ids() []string {
	ids := make([]string, len(w.ops))
	for i := range w.ops {
		ids[i] = w.ops[i].Id
	}
	return ids
}

func (w *watcher) mine(e *client.Event) bool {
	for i := range w.ops {
		if e.Operation != nil && *e.Operation == w.ops[i].Id {
			return true
		}
	}
	return false
}

// ended says whether there is nothing to wait for: every operation has ended,
// or what has not waits for a person, be it behind one that is held.
func (w *watcher) ended() bool {
	if !w.until.IsZero() && w.Now().After(w.until) {
		return true
	}
	all, held, moving := true, false, false
	for i := range w.ops {
		op := &w.ops[i]
		if w.firstFails && op.Phase == client.OperationPhaseFailed {
			return true
		}
		all = all && op.Finished
		held = held || deref(op.Held)
		moving = moving || !op.Finished && !deref(op.Held) && op.Phase != client.OperationPhaseQueued
	}
	return all || held && !moving
}

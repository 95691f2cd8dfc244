package app

import (
	"context"
	"sync"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/engine/queue"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

// own is the set of operations that a command alone works on: those that it
// asked for, canceled or resumed. Unfinished operations of others stand still.
type own struct {
	lock *store.EngineLock
	mu   sync.Mutex
	ids  map[string]bool
}

func newOwn(lock *store.EngineLock) *own { return &own{lock: lock, ids: map[string]bool{}} }

func (o *own) has(operation string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ids[operation]
}

func (o *own) adopt(operation string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ids[operation] = true
}

// adoptChores takes on what an earlier command left to do after operations
// that have ended: looking for orphans, removing managers.
func (o *own) adoptChores(ctx context.Context, s *store.Store) error {
	chores, err := s.UnfinishedChores(ctx)
	if err != nil {
		return err
	}
	unfinished, err := s.Unfinished(ctx)
	if err != nil {
		return err
	}
	open := map[string]bool{}
	for i := range unfinished {
		open[unfinished[i].ID] = true
	}
	for i := range chores {
		if !open[chores[i].Operation] {
			o.adopt(chores[i].Operation)
		}
	}
	return nil
}

// waker wakes what control accepted. Alone, that makes it this process's own.
type waker struct {
	own   *own // nil = everything is
	queue *queue.Queue
	// interrupt ends a wait on the operation's host, so that the change is seen
	// at once; nil without an engine.
	interrupt func(operation string)
}

var _ control.Waker = waker{}

// Wake implements control.Waker.
func (w waker) Wake(ctx context.Context, operation string) error {
	if w.own != nil {
		w.own.adopt(operation)
		if err := w.own.lock.WorksOn(operation); err != nil {
			return err
		}
	}
	if w.queue == nil {
		return nil
	}
	err := w.queue.Wake(ctx, operation)
	if w.interrupt != nil {
		w.interrupt(operation)
	}
	return err
}

// WakeDelivery implements hooks.Waker.
func (w waker) WakeDelivery(ctx context.Context, delivery string) error {
	return w.queue.WakeDelivery(ctx, delivery)
}

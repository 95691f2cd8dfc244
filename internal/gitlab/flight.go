package gitlab

import (
	"context"
	"errors"
	"sync"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// flights lets concurrent askers share one request (design.md section 4.3).
// An asker wants an answer whose request began at or after a time; one that is
// under way or has just ended serves, if it began late enough.
type flights[T any] struct {
	now   func() time.Time
	fresh time.Duration

	mu  sync.Mutex
	byK map[string]*flight[T]
}

type flight[T any] struct {
	began   time.Time
	ended   time.Time // zero while under way
	waiting int
	cancel  context.CancelFunc
	done    chan struct{}
	val     T
	err     error
}

// get returns the value for key and when its request began. The request
// outlives the asker who started it as long as another one waits.
func (f *flights[T]) get(ctx context.Context, key string, after time.Time, fetch func(context.Context) (T, error)) (T, time.Time, error) {
	fl := f.join(ctx, key, after, fetch)
	select {
	case <-fl.done:
		return fl.val, fl.began, fl.err
	case <-ctx.Done():
		f.leave(fl)
		return *new(T), fl.began, givenUp(ctx.Err())
	}
}

// givenUp says that the asker, not GitLab, ended the wait.
func givenUp(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fleet.Errorf(fleet.CodeUnavailable, "GitLab did not answer in the time there was: %w", err)
	}
	return fleet.Errorf(fleet.CodeCanceled, "the question to GitLab was given up: %w", err)
}

func (f *flights[T]) join(ctx context.Context, key string, after time.Time, fetch func(context.Context) (T, error)) *flight[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	f.forget(now)
	if fl := f.byK[key]; fl != nil && !fl.began.Before(after) {
		fl.waiting++
		return fl
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // fly calls it, and leave
	fl := &flight[T]{began: now, waiting: 1, cancel: cancel, done: make(chan struct{})}
	if f.byK == nil {
		f.byK = map[string]*flight[T]{}
	}
	f.byK[key] = fl
	go f.fly(own, key, fl, fetch)
	return fl
}

func (f *flights[T]) fly(ctx context.Context, key string, fl *flight[T], fetch func(context.Context) (T, error)) {
	fl.val, fl.err = fetch(ctx)
	fl.cancel()
	f.mu.Lock()
	fl.ended = f.now()
	if fl.err != nil && f.byK[key] == fl {
		delete(f.byK, key) // a failure serves nobody who comes later
	}
	f.mu.Unlock()
	close(fl.done)
}

// leave gives the request up when nobody waits for it any more.
func (f *flights[T]) leave(fl *flight[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl.waiting--
	if fl.waiting > 0 || !fl.ended.IsZero() {
		return
	}
	fl.cancel()
	for key, other := range f.byK {
		if other == fl {
			delete(f.byK, key)
		}
	}
}

// forget drops answers that are too old to serve. The lock is held.
func (f *flights[T]) forget(now time.Time) {
	for key, fl := range f.byK {
		if !fl.ended.IsZero() && now.Sub(fl.ended) >= f.fresh {
			delete(f.byK, key)
		}
	}
}

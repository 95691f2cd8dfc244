package engine

import (
	"context"
	"sync"
)

// holds are the waits on hosts that go on right now. They are a convenience of
// this process: without them a change is seen when the hold ends by itself.
type holds struct {
	mu  sync.Mutex
	end map[string]context.CancelFunc
}

// Interrupt ends an operation's wait on its host, so that a change to the
// operation (a cancel, a new deadline) is seen at once. No wait: no effect.
func (e *Engine) Interrupt(operation string) {
	e.holds.mu.Lock()
	defer e.holds.mu.Unlock()
	if end := e.holds.end[operation]; end != nil {
		end()
	}
}

// begin registers a hold; done ends it.
func (h *holds) begin(ctx context.Context, operation string) (held context.Context, done func()) {
	held, cancel := context.WithCancel(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end == nil {
		h.end = map[string]context.CancelFunc{}
	}
	h.end[operation] = cancel
	return held, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.end, operation)
		cancel()
	}
}

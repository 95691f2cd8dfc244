package engine

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Attempt is how long one look at an operation may take in all. The queue's
// own limit must be longer (facts/durable-engine.md).
const Attempt = 28 * time.Second

// Options are what an Engine is made of.
type Options struct {
	Fleets   map[string]*Fleet
	Store    Store
	Clock    Clock
	Observer Observer
	Waker    Waker // wakes chores, and queued operations when the budget frees
	Log      *slog.Logger
	Owner    string // of our drop-ins: this store's id
	// Together runs reads that do not depend on each other and returns when all
	// have ended; nil = one after another, as a simulation needs it.
	Together func(...func())
}

// Engine brings operations and chores forward. It has no state of its own that
// counts: that is in the store.
type Engine struct {
	Options
	holds holds
}

// New makes an Engine.
func New(o Options) *Engine { return &Engine{Options: o} }

// together runs independent reads.
func (e *Engine) together(reads ...func()) {
	if e.Together != nil {
		e.Together(reads...)
		return
	}
	for _, read := range reads {
		read()
	}
}

// now is the engine's only clock reading: UTC, without the monotonic part, so
// that a time reads back from the store as it was written.
func (e *Engine) now() time.Time { return e.Clock.Now().Round(0).UTC() }

// fleet yields a configured fleet. CodeNotFound if the configuration lost it
// while an operation on it was unfinished.
func (e *Engine) fleet(name string) (*Fleet, error) {
	f, ok := e.Fleets[name]
	if !ok {
		return nil, fleet.Errorf(fleet.CodeNotFound, "fleet %q is not configured any more", name).
			WithHint("put it back into the configuration; its unfinished operations wait for it")
	}
	return f, nil
}

// fleetNames lists the configured fleets in a stable order.
func (e *Engine) fleetNames() []string { return slices.Sorted(maps.Keys(e.Fleets)) }

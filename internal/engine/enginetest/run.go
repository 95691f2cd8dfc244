package enginetest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Ask stores a queued operation with the fleet's policy.
func (w *World) Ask(kind fleet.Kind, vm string, change ...func(*fleet.Request)) string {
	id := fmt.Sprintf("op-%d", len(w.Store.order)+1)
	r := fleet.Request{Policy: w.Spec.Drain, By: fleet.Actor{Name: "tester"}}
	for _, c := range change {
		c(&r)
	}
	w.Store.Insert(fleet.Operation{
		ID: id, Fleet: Fleet, VM: vm, Kind: kind, Phase: fleet.PhaseQueued, Request: r,
		CreatedAt: w.now, UpdatedAt: w.now, PhaseSince: w.now,
	})
	return id
}

// Op yields an operation as stored.
func (w *World) Op(id string) *fleet.Operation {
	op, err := w.Store.Operation(context.Background(), id)
	if err != nil {
		panic(err)
	}
	return op
}

// Run looks at everything unfinished until nothing is, or for the given time.
// A crash is survived by a fresh engine over the same store and world.
func (w *World) Run(limit time.Duration) {
	end := w.now.Add(limit)
	for w.now.Before(end) {
		var pause time.Duration
		var idle bool
		if died := Survive(func() { pause, idle = w.round() }); died != "" {
			w.journal("killed at %s", died)
			pause = tick
		}
		if idle {
			return
		}
		w.Advance(max(pause, tick))
	}
}

// round looks once at each operation and chore, and yields the shortest wait.
func (w *World) round() (pause time.Duration, idle bool) {
	ctx, e := context.Background(), w.Engine()
	if w.OwnTime {
		ctx = ownTime{ctx, w, time.Time{}}
	}
	pause, idle = time.Minute, true
	ops, _ := w.Store.Unfinished(ctx)
	for i := range ops {
		wait, done, err := e.Look(ctx, ops[i].ID)
		if err != nil {
			panic(err)
		}
		if !done {
			idle, pause = false, min(pause, wait)
		}
	}
	chores, _ := w.Store.UnfinishedChores(ctx)
	for i := range chores {
		wait, done, err := e.LookChore(ctx, chores[i].ID)
		if err != nil {
			panic(err)
		}
		if !done {
			idle, pause = false, min(pause, wait)
		}
	}
	return pause, idle
}

// Story renders the event log and the world's journal, for a failing test.
func (w *World) Story() string {
	var b strings.Builder
	for _, f := range w.Store.Facts {
		fmt.Fprintf(&b, "%s %s %s [%s] %s\n", f.At.Format("15:04:05.000"), f.Operation, f.VM, f.Kind, f.Text)
	}
	b.WriteString("--\n" + strings.Join(w.Journal, "\n") + "\n")
	return b.String()
}

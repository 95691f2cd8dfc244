package fleet

import (
	"testing"

	"pgregory.net/rapid"
)

// walk is an operation that is pushed about at random, as crashes, people,
// late answers and reboots do.
type walk struct {
	at       Position
	deleted  int // times that the old VM was seen gone
	created  int
	called   bool // a delete may have reached the provider
	released bool // the way back was reopened by a definite refusal
}

// move offers an event and checks what must hold after any move.
func (w *walk) move(t *rapid.T, event Event) {
	before := w.at
	next, err := Transition(w.at, event)
	if err != nil {
		return
	}
	w.at.Phase = next
	switch event {
	case EventDeleted:
		w.deleted++
	case EventCreated:
		w.created++
	}
	switch {
	case before.Phase.Finished():
		t.Fatalf("%+v: %s woke a finished operation", before, event)
	case w.deleted > 1 || w.created > 1:
		t.Fatalf("%+v: %d deletes, %d creates of one operation", w.at, w.deleted, w.created)
	case w.called && !w.released && (next == PhaseRestoring || next == PhaseCanceled) && w.at.Kind.Deletes():
		t.Fatalf("%+v: %s led back after the delete may have been obeyed", before, event)
	case next == PhaseSucceeded && w.at.Kind.Deletes() && w.deleted != 1:
		t.Fatalf("%+v: succeeded, and the old VM was never seen gone", before)
	case next == PhaseSucceeded && w.at.Kind.Creates() && w.created != 1:
		t.Fatalf("%+v: succeeded without a new VM", before)
	case next == PhaseFailed && w.deleted == 1 && w.created == 0 && w.at.Kind == KindRecreate:
		t.Fatalf("%+v: gave up between delete and create", before)
	}
}

// Cases T41, T47, T62: whatever happens in whatever order, one VM in, one out.
func TestRandomWalksEndWithOneVMInAndOneOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &walk{at: Position{Kind: rapid.SampledFrom(Kinds()).Draw(t, "kind"), Phase: PhaseQueued}}
		t.Repeat(map[string]func(*rapid.T){
			"event": func(t *rapid.T) { w.move(t, rapid.SampledFrom(Events()).Draw(t, "event")) },
			"work is done": func(t *rapid.T) {
				if w.at.Phase == PhaseDeleting && !w.at.Intent {
					return // absence is only looked for once the intent is committed
				}
				w.move(t, done[w.at.Phase])
			},
			"intake is stopped": func(*rapid.T) {
				w.at.Stopping = w.at.Stopping || w.at.Phase == PhaseDraining
			},
			"the delete is committed and called": func(*rapid.T) {
				if w.at.Phase == PhaseDeleting {
					w.at.Intent, w.called, w.released = true, true, false
				}
			},
			"the provider refuses for certain": func(*rapid.T) {
				if w.at.Phase == PhaseDeleting && w.at.Intent {
					w.at.Intent, w.released = false, true
				}
			},
		})
		finish(t, w)
	})
}

// finish does what a patient engine does: it ends every operation.
func finish(t *rapid.T, w *walk) {
	for range len(Phases()) {
		if w.at.Phase.Finished() {
			return
		}
		if w.at.Phase == PhaseDeleting {
			w.at.Intent, w.called = true, true
		}
		if w.at.Phase == PhaseRestoring && w.at.Kind != KindUndrain {
			w.move(t, EventFail)
			continue
		}
		w.move(t, done[w.at.Phase])
	}
	if !w.at.Phase.Finished() {
		t.Fatalf("%+v: does not end", w.at)
	}
}

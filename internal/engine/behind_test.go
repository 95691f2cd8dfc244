package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func takeOver(r *fleet.Request) { r.TakeOver = true }

// A journal from a backup knows lower order numbers than its hosts.
func TestAJournalThatIsBehindItsHostCatchesUpOnlyWhenToldTo(t *testing.T) {
	for name, kind := range map[string]fleet.Kind{"recreate": fleet.KindRecreate, "drain": fleet.KindDrain, "undrain": fleet.KindUndrain} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a")
			if kind == fleet.KindUndrain {
				w.Ask(fleet.KindDrain, "a")
				w.Run(time.Hour)
			}
			w.VM("a").Number = 40
			refused := w.Ask(kind, "a")
			w.Run(5 * time.Minute)
			if op := w.Op(refused); op.Phase == fleet.PhaseSucceeded {
				t.Fatalf("%s against order 40\n%s", op.Phase, w.Story())
			} else if op.Phase.Finished() {
				refused = w.Ask(kind, "a", takeOver)
			} else { // an undrain waits for its host, for hours
				op.Request.TakeOver = true
				if err := w.Store.UpdateOperation(t.Context(), op, nil, nil, nil); err != nil {
					t.Fatal(err)
				}
			}
			w.Run(time.Hour)
			if op := w.Op(refused); op.Phase != fleet.PhaseSucceeded || !strings.Contains(w.Story(), "the host has obeyed order 40") {
				t.Errorf("%s: %s\n%s", op.Phase, op.ErrMessage, w.Story())
			}
		})
	}
}

// An order that a newer one of the same journal has overtaken stays refused.
func TestAnOvertakenOrderIsNotGivenAnewUnderTakeOver(t *testing.T) {
	w := enginetest.New("a")
	id := w.Ask(fleet.KindDrain, "a", takeOver)
	w.Run(time.Hour)
	number := w.VM("a").Number
	w.Ask(fleet.KindUndrain, "a", takeOver)
	w.Run(time.Hour)
	if w.VM("a").Number <= number || w.Op(id).Phase != fleet.PhaseSucceeded || strings.Contains(w.Story(), "the host has obeyed") {
		t.Error(w.Story())
	}
}

// Under --take-over a delete that
// skips the drain ends its jobs cleanly, also with a journal behind its host.
func TestASkippedDrainOfAJournalBehindItsHostEndsItsJobsUnderTakeOver(t *testing.T) {
	for _, behind := range []bool{false, true} {
		w := enginetest.New("a")
		w.Job("a", 42, time.Hour)
		if behind {
			w.VM("a").Number = 40
		}
		id := w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.TakeOver, r.NoDrain = true, true })
		w.Run(3 * time.Hour)
		story := w.Story()
		if op := w.Op(id); op.Phase != fleet.PhaseSucceeded || strings.Contains(story, "could not be stopped") || !strings.Contains(story, "told to end its jobs (SIGTERM)") || !slices.Equal(w.Cut, []int64{42}) {
			t.Errorf("behind %v: %s %v\n%s", behind, op.Phase, w.Cut, story)
		}
	}
}

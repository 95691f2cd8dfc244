package engine_test

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// succeed lets an operation take over from one that is restoring, as control
// stores it (internal/control, inherit).
func succeed(t *testing.T, w *enginetest.World, from string, kind fleet.Kind) string {
	t.Helper()
	old := w.Op(from)
	id := w.Ask(kind, "a")
	op := w.Op(id)
	op.Order, op.Old, op.OldAddr, op.OldKeys, op.WasDown = old.Order, old.Old, old.OldAddr, old.OldKeys, old.WasDown
	old.Phase, old.FinishedAt = fleet.PhaseFailed, w.Now()
	for _, o := range []*fleet.Operation{old, op} {
		if err := w.Store.UpdateOperation(t.Context(), o, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	return id
}

// restoringA yields a recreate of a that gives intake back, not yet begun.
func restoringA(t *testing.T) (w *enginetest.World, id string) {
	t.Helper()
	w = enginetest.New("a")
	w.Refuse["check"] = []error{fleet.Errorf(fleet.CodeImageMissing, "image x was deleted")}
	w.Refuse["start"] = make([]error, 0)
	for range 20 {
		w.Refuse["start"] = append(w.Refuse["start"], fleet.Errorf(fleet.CodeUnavailable, "not now"))
	}
	id = w.Ask(fleet.KindRecreate, "a")
	w.Run(5 * time.Second)
	if op := w.Op(id); op.Phase != fleet.PhaseRestoring {
		t.Fatalf("%s", op.Phase)
	}
	w.Refuse["start"] = nil
	return w, id
}

// design.md section 4.1: a later recreate takes a restore over. If that one
// ends without a delete, intake is given back all the same.
func TestWhatTookARestoreOverGivesIntakeBackWhereverItEnds(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *enginetest.World, string){
		"canceled in queued": func(t *testing.T, w *enginetest.World, id string) { cancel(t, w, id) },
		"refused in preflight": func(_ *testing.T, w *enginetest.World, _ string) {
			w.Refuse["prepare"] = []error{fleet.Errorf(fleet.CodeImageMissing, "no such image").WithHint("build it")}
		},
		"failed in the drain": func(_ *testing.T, w *enginetest.World, _ string) {
			w.Refuse["check"] = []error{fleet.Errorf(fleet.CodeImageMissing, "no such image").WithHint("build it")}
		},
		"canceled in preflight": func(t *testing.T, w *enginetest.World, id string) {
			w.Fences["inspect"] = func() { cancel(t, w, id) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, first := restoringA(t)
			id := succeed(t, w, first, fleet.KindRecreate)
			end(t, w, id)
			w.Run(time.Hour)
			if op := w.Op(id); !op.Phase.Finished() || op.Phase == fleet.PhaseSucceeded || !w.VM("a").Serving() {
				t.Errorf("%s: %s, serving %t\n%s", op.Phase, op.ErrMessage, w.VM("a").Serving(), w.Story())
			}
		})
	}
}

func TestAnUndrainThatTookOverCanBeCanceledBeforeItBegins(t *testing.T) {
	w, first := restoringA(t)
	id := succeed(t, w, first, fleet.KindUndrain)
	cancel(t, w, id)
	w.Run(time.Hour)
	if op := w.Op(id); !op.Phase.Finished() || !w.VM("a").Serving() {
		t.Errorf("%s: %s\n%s", op.Phase, op.ErrMessage, w.Story())
	}
}

// The host refuses the successor's own stop; what the earlier one stopped is
// given back all the same.
func TestARefusedStopOfASuccessorGivesIntakeBack(t *testing.T) {
	w, first := restoringA(t)
	id := succeed(t, w, first, fleet.KindRecreate)
	w.VM("a").DropIn.Effective = false
	w.Refuse["stop"] = []error{fleet.Errorf(fleet.CodeConflict, "the order file names no number").WithHint("remove it")}
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "names no number")
	if !w.VM("a").Serving() {
		t.Errorf("intake stays stopped\n%s", w.Story())
	}
}

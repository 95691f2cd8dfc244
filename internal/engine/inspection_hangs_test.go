package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// skippedUninspected are deletes of a without a drain whose host answers each look
// and hangs in every inspection.
func skippedUninspected() map[string]func(*enginetest.World) string {
	hangs := func(w *enginetest.World) { w.Hang = map[string]bool{"inspect": true} }
	ask := func(w *enginetest.World) string {
		return w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.NoDrain = true })
	}
	scenes := map[string]func(*enginetest.World) string{
		"from the start": func(w *enginetest.World) string {
			hangs(w)
			return ask(w)
		},
		"out of reach in preflight": func(w *enginetest.World) string {
			w.VM("a").Cutoff = true
			hangs(w)
			id := ask(w)
			once(w, "commit:after", func() bool { return w.Op(id).Phase == fleet.PhaseDraining }, func() { w.VM("a").Cutoff = false })
			return id
		},
	}
	for name, moment := range unseen() {
		scenes["boots "+name] = func(w *enginetest.World) string {
			hangs(w)
			id, _ := bootsAt(w, moment)
			return id
		}
	}
	return scenes
}

// Promise 9: the look for what even a waiver does not cover must not use up the
// step, each time anew.
func TestASkippedDrainGoesOnThoughTheInspectionHangs(t *testing.T) {
	for name, scene := range skippedUninspected() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := enginetest.New("a")
				w.Bubble = time.Now
				id := scene(w)
				lookWhile(t, w, id, fleet.PhaseQueued, 10)
				lookWhile(t, w, id, fleet.PhasePreflight, 300)
				for range 2 {
					lookWhile(t, w, id, fleet.PhaseDraining, 100)
					lookWhile(t, w, id, fleet.PhaseDeleting, 100)
				}
				if op := w.Op(id); op.Delete.CalledAt.IsZero() {
					t.Errorf("at %s it is %s and waits for %q: no delete was called\n%s", w.Now(), op.Phase, op.Waiting, w.Story())
				}
			})
		})
	}
}

// bootsAndHangs is a delete of a, which is off in preflight and boots as the drain
// begins: it answers each look, and hangs in every inspection.
func bootsAndHangs(w *enginetest.World, policy fleet.Unreachable) (id string) {
	vm := w.VM("a")
	vm.Off = true
	id = w.Ask(fleet.KindDelete, "a", func(r *fleet.Request) { r.Policy.Unreachable, r.Policy.ReachDeadline = policy, 10*time.Minute })
	once(w, "commit:after", func() bool { return w.Op(id).Phase == fleet.PhaseDraining }, func() {
		vm.Off = false
		w.Reboot("a")
		w.Hang = map[string]bool{"inspect": true}
	})
	return id
}

// A host that preflight could not inspect is not stopped uninspected. Where its
// inspection hangs it is waited for as long as a host may be out of reach; then the
// policy for such a host decides.
func TestAHostWhoseInspectionHangsIsTakenForOutOfReachAfterTheReachDeadline(t *testing.T) {
	for policy, want := range map[fleet.Unreachable]fleet.Phase{
		fleet.UnreachableProceed: fleet.PhaseDeleting,
		fleet.UnreachableFail:    fleet.PhaseFailed,
	} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := enginetest.New("a")
				w.Bubble = time.Now
				began, id := w.Now(), bootsAndHangs(w, policy)
				w.Fences["stop"] = func() {
					if w.Op(id).Drain.Verdict == "" {
						t.Errorf("it is stopped uninspected\n%s", w.Story())
					}
				}
				for _, phase := range []fleet.Phase{fleet.PhaseQueued, fleet.PhasePreflight, fleet.PhaseDraining} {
					lookWhile(t, w, id, phase, 1000)
				}
				if op := w.Op(id); op.Phase != want || want == fleet.PhaseDeleting && op.Drain.Verdict != fleet.VerdictUnreachable {
					t.Errorf("%s with %q, want %s\n%s", op.Phase, op.Drain.Verdict, want, w.Story())
				}
				if waited := w.Now().Sub(began); waited < 10*time.Minute || waited > 11*time.Minute {
					t.Errorf("it waited %s\n%s", waited, w.Story())
				}
			})
		})
	}
}

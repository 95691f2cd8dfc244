package engine_test

import (
	"slices"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// anytime are things that others do to a VM, whenever they like. A runner that
// they start needs a moment, longer than a proof may be old, to get a job.
func anytime() map[string]func(*testing.T, *enginetest.World, string) {
	const job, length, moment = 43, 2 * time.Minute, fleet.ProofAge + time.Second
	return map[string]func(*testing.T, *enginetest.World, string){
		"reboot": func(_ *testing.T, w *enginetest.World, _ string) {
			w.Reboot("a")
			w.Advance(moment)
			w.Job("a", job, length)
		},
		"a person's start": func(_ *testing.T, w *enginetest.World, _ string) {
			if vm := w.VM("a"); vm.Unit.MainPID == 0 {
				vm.StartQueued = true
				w.Advance(moment)
				w.Job("a", job, length)
			}
		},
		"half a minute out of reach": func(_ *testing.T, w *enginetest.World, _ string) {
			vm := w.VM("a")
			vm.Cutoff = true
			back := w.Now().Add(30 * time.Second)
			w.Points.At = func(string) { vm.Cutoff = w.Now().Before(back) }
		},
		"cancel": func(t *testing.T, w *enginetest.World, id string) {
			op := w.Op(id)
			if op.Delete.IntentAt.IsZero() && !op.Phase.Finished() && op.Phase != fleet.PhaseRestoring {
				cancel(t, w, id)
			}
		},
	}
}

// cases.md T1, T14, T15.
// Promise 1, whatever happens whenever: a job that begins on the old VM before
// the delete was called is not cut, and the VM is replaced or serves as before.
func TestWhateverHappensAtAnyInstantCutsNoJob(t *testing.T) {
	for name, happens := range anytime() {
		t.Run(name, func(t *testing.T) {
			whole, _, _ := scenarios()[0].world()
			whole.Run(2 * time.Hour)
			for n := 1; n <= len(whole.Points.Passed); n += stride(7) {
				w, id, old := scenarios()[0].world()
				point := ""
				w.Points.At = func(p string) {
					if len(w.Points.Passed) != n {
						return
					}
					point, w.Points.At = p, nil
					if vm := w.VM("a"); vm != nil && vm.ID == old && vm.Gone.IsZero() {
						happens(t, w, id)
					}
				}
				w.Run(3 * time.Hour)
				op, vm := w.Op(id), w.VM("a")
				called := slices.Contains(w.Points.Passed[:n], "delete:before")
				switch {
				case !op.Phase.Finished() || vm == nil || !vm.Serving():
				case slices.Contains(w.Cut, 43) && !called:
				case op.Phase == fleet.PhaseSucceeded && vm.ID == old:
				default:
					continue
				}
				t.Fatalf("%s at %d %s: %s, cut %v\n%s", name, n, point, op.Phase, w.Cut, w.Story())
			}
		})
	}
}

// An undrain takes over at any instant before the delete is committed, in the
// middle of the other operation's acts too: the VM serves in the end.
func TestAnUndrainThatTakesOverAtAnyInstantOpensIntake(t *testing.T) {
	for _, kind := range []fleet.Kind{fleet.KindRecreate, fleet.KindDrain} {
		world := func() (*enginetest.World, string) {
			w := enginetest.New("a")
			w.Job("a", 42, 90*time.Second)
			return w, w.Ask(kind, "a")
		}
		whole, _ := world()
		whole.Run(2 * time.Hour)
		for n := 1; n <= len(whole.Points.Passed); n += stride(7) {
			w, id := world()
			undrain, point := "", ""
			w.Points.At = func(p string) {
				op := w.Op(id)
				if len(w.Points.Passed) != n {
					return
				}
				w.Points.At = nil
				if op.Phase.Finished() || !op.Delete.IntentAt.IsZero() || op.Phase == fleet.PhaseRestoring {
					return
				}
				point, undrain = p, succeed(t, w, id, fleet.KindUndrain)
			}
			w.Run(3 * time.Hour) // a round does not see what is asked for in it
			w.Run(3 * time.Hour)
			if undrain == "" {
				continue
			}
			if vm := w.VM("a"); w.Op(undrain).Phase != fleet.PhaseSucceeded || vm == nil || !vm.Serving() || len(w.Cut) > 0 || len(w.VMs) != 1 {
				t.Fatalf("%s at %d %s: %s, cut %v\n%s", kind, n, point, w.Op(undrain).Phase, w.Cut, w.Story())
			}
		}
	}
}

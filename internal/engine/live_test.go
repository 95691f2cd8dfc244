package engine_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func extend(t *testing.T, w *enginetest.World, id string, by time.Duration) error {
	t.Helper()
	return change(t, w, id, func(op *fleet.Operation) error { return op.Extend(fleet.Extension{By: by}, w.Now()) })
}

func skipDrain(t *testing.T, w *enginetest.World, id string) error {
	t.Helper()
	return change(t, w, id, func(op *fleet.Operation) error {
		_, err := op.SkipDrain("ada", w.Now())
		return err
	})
}

// live are changes of a drain under way, with what must be true in the end if
// the change was accepted, and if it was refused. The scenario is a recreate of a
// VM whose job lasts 100 s under a cap of one minute, with proceed.
func live() map[string]struct {
	change   func(*testing.T, *enginetest.World, string) error
	accepted func(w *enginetest.World, op *fleet.Operation) string
} {
	cutAndTold := func(w *enginetest.World, op *fleet.Operation) string {
		if op.Phase != fleet.PhaseSucceeded || !slices.Equal(w.Cut, []int64{42}) || len(op.CutJobs) != 1 {
			return "the job is cut and told of, and the VM replaced"
		}
		return ""
	}
	return map[string]struct {
		change   func(*testing.T, *enginetest.World, string) error
		accepted func(w *enginetest.World, op *fleet.Operation) string
	}{
		"extend": {
			func(t *testing.T, w *enginetest.World, id string) error { return extend(t, w, id, 2*time.Minute) },
			func(w *enginetest.World, op *fleet.Operation) string {
				if op.Phase != fleet.PhaseSucceeded || len(w.Cut) > 0 || len(op.CutJobs) > 0 {
					return "the job ends by itself inside the extended cap, and the VM is replaced"
				}
				return ""
			},
		},
		"wait": {
			func(t *testing.T, w *enginetest.World, id string) error {
				return change(t, w, id, func(op *fleet.Operation) error {
					p := op.Request.Policy
					p.OnOverrun = fleet.OverrunWait
					return op.SetPolicy(p, w.Now())
				})
			},
			func(w *enginetest.World, op *fleet.Operation) string {
				if op.Phase != fleet.PhaseSucceeded || len(w.Cut) > 0 {
					return "the job ends by itself before the hard cap, and the VM is replaced"
				}
				return ""
			},
		},
		"abort": {
			func(t *testing.T, w *enginetest.World, id string) error {
				return change(t, w, id, func(op *fleet.Operation) error {
					p := op.Request.Policy
					p.OnOverrun = fleet.OverrunAbort
					return op.SetPolicy(p, w.Now())
				})
			},
			func(w *enginetest.World, op *fleet.Operation) string {
				if vm := w.VM("a"); op.Phase != fleet.PhaseFailed || len(w.Cut) > 0 || vm == nil || !vm.Serving() || len(w.VMs) != 1 {
					return "the operation fails, the job is not cut, and the VM serves as before"
				}
				return ""
			},
		},
		"skip-drain": {func(t *testing.T, w *enginetest.World, id string) error { return skipDrain(t, w, id) }, cutAndTold},
	}
}

// liveWorld runs the scenario with a change at its nth point, and dies after
// more points if die > 0. It yields whether the change was accepted.
func liveWorld(t *testing.T, n, die int, change func(*testing.T, *enginetest.World, string) error) (w *enginetest.World, id string, refused error) {
	t.Helper()
	w = enginetest.New("a")
	w.Job("a", 42, 100*time.Second)
	id = w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy.Cap = time.Minute })
	w.Points.At = func(string) {
		if len(w.Points.Passed) != n {
			return
		}
		w.Points.At = nil
		if w.Op(id).Phase.Finished() {
			refused = fleet.Errorf(fleet.CodeConflict, "it has ended")
			return
		}
		refused = change(t, w, id)
		if die > 0 {
			w.Points.Die = len(w.Points.Passed) + die
		}
	}
	w.Run(3 * time.Hour)
	w.Run(3 * time.Hour)
	return w, id, refused
}

// Promises 1, 3 and 8: a change at any instant, in the middle of the engine's
// own acts and commits, with a crash soon after or none, wins or is refused. It is
// never accepted and lost.
func TestAChangeAtAnyInstantWinsOrIsRefusedAndIsNeverLost(t *testing.T) {
	for name, c := range live() {
		t.Run(name, func(t *testing.T) {
			whole, _, _ := liveWorld(t, 0, 0, c.change)
			points, won, lost := len(whole.Points.Passed), 0, 0
			for n := 1; n <= points; n += stride(7) {
				for _, die := range []int{0, 1 + n%8} {
					w, id, refused := liveWorld(t, n, die, c.change)
					op, broken := w.Op(id), ""
					switch {
					case refused == nil:
						won++
						broken = c.accepted(w, op)
					case fleet.CodeOf(refused) != fleet.CodeConflict:
						broken = "a refusal is a conflict"
					default:
						lost++
						if op.Phase != fleet.PhaseSucceeded || !slices.Equal(w.Cut, []int64{42}) || len(op.CutJobs) != 1 {
							broken = "what was refused changes nothing"
						}
					}
					if broken != "" {
						t.Fatalf("at %d (%s), dying %d later, refused %v: not true that %s: %s, cut %v\n%s",
							n, w.Points.Passed[n-1], die, refused, broken, op.Phase, w.Cut, w.Story())
					}
				}
			}
			if won == 0 || lost == 0 {
				t.Errorf("%d accepted, %d refused", won, lost)
			}
			t.Logf("%d accepted, %d refused, at %d points", won, lost, points)
		})
	}
}

// design.md section 4.1: cancel and abort go through restoring, and end when it
// was seen that the runner serves; wherever they come, wherever we die after that.
func TestACancelAtAnyInstantWithACrashAfterItGivesIntakeBack(t *testing.T) {
	cancelIt := func(t *testing.T, w *enginetest.World, id string) error {
		op := w.Op(id)
		if !op.Delete.IntentAt.IsZero() || op.Phase == fleet.PhaseRestoring {
			return fleet.Errorf(fleet.CodeConflict, "no way back")
		}
		cancel(t, w, id)
		return nil
	}
	whole, _, _ := liveWorld(t, 0, 0, cancelIt)
	for n := 1; n <= len(whole.Points.Passed); n += stride(7) {
		for _, die := range []int{1 + n%5, 6 + n%11} {
			w, id, refused := liveWorld(t, n, die, cancelIt)
			op, vm := w.Op(id), w.VM("a")
			switch {
			case refused != nil && op.Phase == fleet.PhaseSucceeded && vm != nil && vm.Serving():
				continue
			case refused == nil && op.Phase == fleet.PhaseCanceled && vm != nil && vm.Serving() && len(w.VMs) == 1 && len(w.Cut) <= len(op.CutJobs):
				continue
			}
			t.Fatalf("at %d (%s), dying %d later, refused %v: %s, cut %v\n%s", n, w.Points.Passed[n-1], die, refused, op.Phase, w.Cut, w.Story())
		}
	}
}

// overrunning is a drain that waits on, half an hour after its cap.
func overrunning(t *testing.T) (w *enginetest.World, id string) {
	t.Helper()
	w = enginetest.New("a")
	w.Job("a", 42, 3*time.Hour)
	id = w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy.OnOverrun, r.Policy.HardCap = fleet.OverrunWait, time.Hour })
	w.Run(40 * time.Minute)
	if op := w.Op(id); op.Phase != fleet.PhaseDraining || !op.Drain.Overran {
		t.Fatalf("%s\n%s", op.Phase, w.Story())
	}
	return w, id
}

func TestProceedOnADrainThatWaitsPastItsCapActsAtOnce(t *testing.T) {
	w, id := overrunning(t)
	p := w.Op(id).Request.Policy
	p.OnOverrun = fleet.OverrunProceed
	setPolicy(t, w, id, p)
	w.Run(20 * time.Second)
	if op := w.Op(id); op.Phase == fleet.PhaseDraining || op.Drain.Verdict != fleet.VerdictOverrun || len(op.CutJobs) != 1 {
		t.Errorf("%s %s, cut %v\n%s", op.Phase, op.Drain.Verdict, op.CutJobs, w.Story())
	}
}

func TestAbortOnADrainThatWaitsPastItsCapGivesIntakeBackAndSaysSo(t *testing.T) {
	w, id := overrunning(t)
	p := w.Op(id).Request.Policy
	p.OnOverrun = fleet.OverrunAbort
	setPolicy(t, w, id, p)
	w.Run(20 * time.Second)
	if op := w.Op(id); op.Phase != fleet.PhaseRestoring || !strings.Contains(w.Story(), "the drain is given up: the cap") {
		t.Errorf("%s\n%s", op.Phase, w.Story())
	}
	w.Run(4 * time.Hour)
	if op := w.Op(id); op.Phase != fleet.PhaseFailed || len(w.Cut) > 0 || !w.VM("a").Serving() {
		t.Errorf("%s, cut %v\n%s", op.Phase, w.Cut, w.Story())
	}
}

// An extension past the cap moves the hard cap too, takes the overrun back, and
// warns again when the new cap passes.
func TestAnExtensionPastTheCapMovesTheHardCapAndTheNextOverrunWarnsAgain(t *testing.T) {
	w, id := overrunning(t)
	was := w.Op(id).Drain.HardCap
	if err := extend(t, w, id, 30*time.Minute); err != nil {
		t.Fatal(err)
	}
	w.Run(20 * time.Second)
	if d := w.Op(id).Drain; d.Overran || !d.HardCap.Equal(was.Add(30*time.Minute)) {
		t.Errorf("overran %t, hard cap %s, before %s", d.Overran, d.HardCap, was)
	}
	w.Run(40 * time.Minute) // past the old hard cap
	if op := w.Op(id); op.Phase != fleet.PhaseDraining || !op.Drain.Overran || strings.Count(w.Story(), "overrun: ") != 2 {
		t.Errorf("%s\n%s", op.Phase, w.Story())
	}
	w.Run(20 * time.Minute)
	if op := w.Op(id); op.Drain.Verdict != fleet.VerdictOverrun {
		t.Errorf("at the new hard cap it is %s\n%s", op.Phase, w.Story())
	}
}

// A verdict that is stored is not taken back: jobs have been told to end. The
// refusal says what is still possible, and that works.
func TestAnExtensionAfterTheVerdictIsRefusedAndACancelStillGivesIntakeBack(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 42, time.Hour)
	id := w.Ask(fleet.KindRecreate, "a")
	for range 40 {
		w.Refuse["check"] = append(w.Refuse["check"], fleet.Errorf(fleet.CodeUnavailable, "503"))
	}
	w.Run(11 * time.Minute)
	if op := w.Op(id); op.Phase != fleet.PhaseDeleting || op.Drain.Verdict != fleet.VerdictOverrun || !op.Delete.IntentAt.IsZero() {
		t.Fatalf("%s %s\n%s", op.Phase, op.Drain.Verdict, w.Story())
	}
	for name, err := range map[string]error{"extend": extend(t, w, id, time.Hour), "skip-drain": skipDrain(t, w, id)} {
		if fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "without a proof (overrun") || !strings.Contains(fleet.HintOf(err), "op cancel") {
			t.Errorf("%s: %v, hint %q", name, err, fleet.HintOf(err))
		}
	}
	cancel(t, w, id)
	w.Run(time.Hour)
	if op := w.Op(id); op.Phase != fleet.PhaseCanceled || !w.VM("a").Serving() || w.Calls["delete"] > 0 {
		t.Errorf("%s\n%s", op.Phase, w.Story())
	}
}

// A drain is skipped wherever it stands; the job that this cuts is told of, and
// the waiver says who let it.
func TestASkippedDrainNamesItsJobAndWhoSkippedIt(t *testing.T) {
	for name, after := range map[string]time.Duration{"in the queue": 0, "in mid-drain": time.Minute, "past the cap": 15 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a")
			old := w.VM("a").ID
			w.Job("a", 42, 3*time.Hour)
			id := w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy.OnOverrun = fleet.OverrunWait })
			w.Run(after)
			if err := skipDrain(t, w, id); err != nil {
				t.Fatal(err)
			}
			w.Run(10 * time.Minute)
			op := w.Op(id)
			if vm := w.VM("a"); op.Phase != fleet.PhaseSucceeded || vm == nil || vm.ID == old {
				t.Fatalf("%s\n%s", op.Phase, w.Story())
			}
			if waiver := op.Drain.Waiver; waiver == nil || waiver.Verdict != fleet.VerdictSkipped || waiver.By != "ada" || len(op.CutJobs) != 1 {
				t.Errorf("waiver %+v, cut jobs %v\n%s", op.Drain.Waiver, op.CutJobs, w.Story())
			}
		})
	}
}

// Promise 2: nor does a skip let a VM go whose shutdown ends the fleet's token.
func TestASkipInTheQueueRefusesAHostThatUnregistersTheToken(t *testing.T) {
	w := enginetest.New("a")
	w.VM("a").Unregisters = true
	id := w.Ask(fleet.KindRecreate, "a")
	if err := skipDrain(t, w, id); err != nil {
		t.Fatal(err)
	}
	w.Run(time.Hour)
	ended(t, w, id, fleet.PhaseFailed, "unregister")
}

// What is asked for ends a backoff and a wait on the host: nobody waits ten
// seconds for a change that a person has made.
func TestAChangeIsSeenAtOnceThoughTheDrainWaitsOnItsHost(t *testing.T) {
	for name, c := range live() {
		synctest.Test(t, func(t *testing.T) {
			w := enginetest.New("a")
			id := w.Ask(fleet.KindRecreate, "a")
			e, hosts, done := held(t, w, id)
			began, before := time.Now(), hosts.looks.Load()+hosts.glances.Load()
			if err := c.change(t, w, id); err != nil {
				t.Fatal(name, err)
			}
			e.Interrupt(id)
			synctest.Wait()
			if after := hosts.looks.Load() + hosts.glances.Load(); after == before || !time.Now().Equal(began) {
				t.Errorf("%s: %d looks, %d before, after %s", name, after, before, time.Since(began))
			}
			<-done
		})
	}
}

// A change that comes between the load of a row and the hold, when there is
// nothing to interrupt yet, is seen all the same.
func TestAChangeJustBeforeTheHoldIsSeenBeforeIt(t *testing.T) {
	w := enginetest.New("a")
	w.Job("a", 42, 20*time.Minute)
	id := w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Minute)
	waits := 0
	w.Fences["look"] = func() { // the row is loaded
		waits = w.Calls["await"]
		if err := skipDrain(t, w, id); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.Engine().Look(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if op := w.Op(id); w.Calls["await"] != waits || op.Drain.EndedAt.IsZero() {
		t.Errorf("%d waits, ended at %s\n%s", w.Calls["await"]-waits, op.Drain.EndedAt, w.Story())
	}
}

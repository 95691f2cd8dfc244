package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// lookWhile looks at the operation as the queue does, until it has left the
// phase.
func lookWhile(t *testing.T, w *enginetest.World, id string, phase fleet.Phase, looks int) {
	t.Helper()
	for range looks {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		wait, done, err := w.Engine().Look(ctx, id)
		cancel()
		if err != nil {
			t.Logf("look: %v", err)
			wait = time.Second
		}
		if done || w.Op(id).Phase != phase {
			return
		}
		w.Advance(max(wait, time.Millisecond))
	}
}

// cases.md T30: a drain does not wait for ever for a host that is gone; one
// that answers no command is as good as gone.
func TestAHostThatHangsIsOutOfReachAndNotWaitedForForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := enginetest.New("a")
		w.Bubble = time.Now
		id := w.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy.Unreachable = fleet.UnreachableProceed })
		w.Job("a", 1, 24*time.Hour)
		w.Run(time.Minute)
		w.Hang = map[string]bool{"look": true, "glance": true}
		lookWhile(t, w, id, fleet.PhaseDraining, 500)
		op := w.Op(id)
		if op.Drain.Verdict != fleet.VerdictUnreachable {
			t.Errorf("%s, verdict %q, waiting for %q, unreachable since %s\n%s", op.Phase, op.Drain.Verdict, op.Waiting, op.Drain.UnreachableSince, w.Story())
		}
	})
}

func TestANewVMThatHangsFailsAtTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := enginetest.New("a")
		w.Bubble = time.Now
		id := w.Ask(fleet.KindRecreate, "a")
		w.Fences["create"] = func() { w.Hang = map[string]bool{"glance": true} }
		w.Run(30 * time.Second)
		lookWhile(t, w, id, fleet.PhaseVerifying, 200)
		ended(t, w, id, fleet.PhaseFailed, "did not serve within")
	})
}

func TestAHostThatHangsBeforeTheDeleteIsDrainedAnewAndGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := enginetest.New("a")
		w.Bubble = time.Now
		w.Job("a", 1, time.Minute)
		id := w.Ask(fleet.KindRecreate, "a")
		w.Fences["check"] = func() {
			w.Advance(2 * time.Second) // the proof is not fresh any more
			w.Hang = map[string]bool{"look": true, "glance": true}
		}
		w.Run(59 * time.Second)
		for _, phase := range []fleet.Phase{fleet.PhaseDraining, fleet.PhaseDeleting, fleet.PhaseDraining} {
			lookWhile(t, w, id, phase, 200)
		}
		if op := w.Op(id); op.Phase != fleet.PhaseRestoring || w.Calls["delete"] != 0 {
			t.Fatalf("%s, %d deletes\n%s", op.Phase, w.Calls["delete"], w.Story())
		}
		w.Hang = nil
		w.Run(time.Hour)
		ended(t, w, id, fleet.PhaseFailed, "out of reach")
		if !w.VM("a").Serving() {
			t.Errorf("intake was not given back\n%s", w.Story())
		}
	})
}

func TestAHostThatHangsInPreflightIsRefusedUntouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := enginetest.New("a")
		w.Bubble = time.Now
		id := w.Ask(fleet.KindRecreate, "a")
		w.Hang = map[string]bool{"inspect": true}
		lookWhile(t, w, id, fleet.PhaseQueued, 1)
		lookWhile(t, w, id, fleet.PhasePreflight, 500)
		ended(t, w, id, fleet.PhaseFailed, "could not be reached")
		if !w.VM("a").Serving() {
			t.Errorf("it was touched\n%s", w.Story())
		}
	})
}

func TestAChoreThatUsedUpItsTimeIsStoredAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := enginetest.New("a")
		w.Bubble = time.Now
		w.Ask(fleet.KindDrain, "a")
		w.Run(time.Minute)
		open, err := w.Store.UnfinishedChores(t.Context())
		if err != nil || len(open) != 1 {
			t.Fatalf("%d chores, %v\n%s", len(open), err, w.Story())
		}
		w.Advance(time.Hour)
		w.Fences["read"] = func() { <-time.After(26 * time.Second) }
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, _, err := w.Engine().LookChore(ctx, open[0].ID); err != nil {
			t.Fatalf("nothing was stored: %v", err)
		}
		if c, err := w.Store.Chore(t.Context(), open[0].ID); err != nil || c.Revision <= open[0].Revision {
			t.Errorf("revision %d, before %d, %v", c.Revision, open[0].Revision, err)
		}
	})
}

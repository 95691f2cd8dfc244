package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// holding are hosts that hold a wait as the real ones do: until its limit or its
// end. The bubble's clock counts.
type holding struct {
	engine.Hosts
	world        *enginetest.World
	waits, looks atomic.Int32
	glances      atomic.Int32
}

func (h *holding) Glance(ctx context.Context, t engine.Target) (*fleet.HostReading, error) {
	h.glances.Add(1)
	return h.Hosts.Glance(ctx, t)
}

func (h *holding) Look(ctx context.Context, t engine.Target) (*fleet.HostReading, error) {
	h.looks.Add(1)
	return h.Hosts.Look(ctx, t)
}

func (h *holding) AwaitExit(ctx context.Context, _ engine.Target, _ int, limit time.Duration) (*fleet.HostReading, error) {
	h.waits.Add(1)
	select {
	case <-ctx.Done():
		return nil, fleet.Errorf(fleet.CodeUnavailable, "the wait was ended: %w", ctx.Err())
	case <-time.After(limit):
		h.world.Advance(limit)
		return nil, nil
	}
}

// held has an engine hold a drain on its host, and yields the end of that look.
func held(t *testing.T, w *enginetest.World, id string) (e *engine.Engine, hosts *holding, ended chan time.Time) {
	t.Helper()
	w.Job("a", 1, 24*time.Hour)
	w.Run(time.Minute)
	e = w.Engine()
	hosts = &holding{world: w, Hosts: e.Fleets[enginetest.Fleet].Hosts}
	e.Fleets[enginetest.Fleet].Hosts = hosts
	ended = make(chan time.Time, 1)
	go func() {
		if _, _, err := e.Look(t.Context(), id); err != nil {
			t.Errorf("the look: %v", err)
		}
		ended <- time.Now()
	}()
	synctest.Wait()
	if hosts.waits.Load() != 1 || w.Op(id).Phase != fleet.PhaseDraining {
		t.Fatalf("%d waits, %s", hosts.waits.Load(), w.Op(id).Phase)
	}
	return e, hosts, ended
}

// A hint that a job has ended is no evidence: the host is read anew, at once, and
// then waited for again.
func TestAnInterruptEndsTheWaitOfItsOperationAndTheHostIsReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := enginetest.New("a")
		id := w.Ask(fleet.KindRecreate, "a")
		e, hosts, ended := held(t, w, id)
		began, reads := time.Now(), hosts.looks.Load()
		e.Interrupt("another")
		if synctest.Wait(); hosts.waits.Load() != 1 {
			t.Error("the wait ended for another operation's sake")
		}
		for n := int32(1); n <= 2; n++ {
			e.Interrupt(id)
			if synctest.Wait(); hosts.waits.Load() != 1+n || hosts.looks.Load() != reads+n {
				t.Errorf("after %d interrupts: %d waits, the host was read %d times", n, hosts.waits.Load(), hosts.looks.Load()-reads)
			}
		}
		if !time.Now().Equal(began) {
			t.Errorf("it took %s", time.Since(began))
		}
		<-ended
		e.Interrupt(id) // nobody waits: nothing happens
		if op := w.Op(id); op.Phase != fleet.PhaseDraining || len(w.Cut) != 0 {
			t.Errorf("%s, cut %v", op.Phase, w.Cut)
		}
	})
}

func TestACancelIsSeenAtOnceThoughTheDrainWaitsOnItsHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := enginetest.New("a")
		id := w.Ask(fleet.KindRecreate, "a")
		e, _, ended := held(t, w, id)
		cancel(t, w, id)
		e.Interrupt(id)
		synctest.Wait()
		if op := w.Op(id); op.Phase != fleet.PhaseRestoring || len(ended) != 0 {
			t.Errorf("%s\n%s", op.Phase, w.Story())
		}
		<-ended
	})
}

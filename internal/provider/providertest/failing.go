package providertest

import (
	"context"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

var failing = []contract{
	{"a failed create keeps its kind and makes nothing, and the next attempt works (T93)", failuresKeepTheirKind},
	{"an act during an outage is no definite refusal, and goes on after it (T21)", outageIsNoRefusal},
	{"no create or delete starts while another command for the VM is at work", oneActAtATime},
}

func failuresKeepTheirKind(t *testing.T, s Setup) {
	world := able[Failer](t, s)
	for attempt, code := range world.FailureKinds() {
		order := creation(t, s, "vm-1", operation(1), attempt+1)
		world.FailCreate(t, code)
		_, err := finish(t, func(ctx context.Context) (engine.Progress, error) { return s.Machines.Create(ctx, order) })
		wantCode(t, "create", err, code)
		if list := describe(t, s, "vm-1"); len(list) != 0 {
			t.Fatalf("the create that failed with %s left %s", code, ids(list))
		}
	}
	made := mustCreate(t, s, creation(t, s, "vm-1", operation(1), 100))
	wantOne(t, s, "vm-1", made.ID)
}

func outageIsNoRefusal(t *testing.T, s Setup) {
	world := able[Blinder](t, s)
	id := s.World.Appear(t, "vm-1", nil)
	order := deletion(s, "vm-1", operation(1), 1, id)
	world.Blind(t, true)
	progress, err := s.Machines.Delete(t.Context(), order)
	if progress.Done {
		t.Fatal("a delete in an outage claims to be done")
	}
	if err != nil && !fleet.Retryable(fleet.CodeOf(err)) {
		t.Fatalf("an outage is reported as %v", err)
	}
	world.Blind(t, false)
	mustDelete(t, s, order)
	if s.World.Exists(t, id) {
		t.Errorf("the world still has %s", id)
	}
}

func oneActAtATime(t *testing.T, s Setup) {
	world := able[Holder](t, s)
	old := s.World.Appear(t, "vm-1", nil)
	world.HoldActs(t, true)
	first := deletion(s, "vm-1", operation(1), 1, old)
	if progress, err := s.Machines.Delete(t.Context(), first); err != nil || progress.Done {
		t.Fatalf("a delete in mid-work answers %+v, %v", progress, err)
	}
	_, err := s.Machines.Create(t.Context(), creation(t, s, "vm-1", operation(2), 1))
	wantCode(t, "create beside a delete", err, fleet.CodeConflict)
	world.HoldActs(t, false)
	mustDelete(t, s, first)
	made := mustCreate(t, s, creation(t, s, "vm-1", operation(2), 1))
	wantOne(t, s, "vm-1", made.ID)
}

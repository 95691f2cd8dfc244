package providertest

import (
	"context"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

var creating = []contract{
	{"create makes one instance, of the prepared image, that carries the operation's label (T64)", createLabels},
	{"create repeated with its token makes nothing more (T42, T45)", createIsIdempotent},
	{"a new attempt finds what an attempt with a lost answer has made (T43)", lateSuccessIsSeen},
	{"create does not take a name that another instance has (T62)", takenNameIsConflict},
	{"create in mid-work is looked at, not started again (T42)", createIsLookedAt},
}

func createLabels(t *testing.T, s Setup) {
	order := creation(t, s, "vm-1", operation(1), 1)
	made := mustCreate(t, s, order)
	wantOne(t, s, "vm-1", made.ID)
	got := describe(t, s, "vm-1")[0]
	if got.Labels[fleet.LabelOperation] != order.Operation {
		t.Errorf("labels %v, want %s=%s", got.Labels, fleet.LabelOperation, order.Operation)
	}
	if !s.HidesImage && got.Image != s.Exact {
		t.Errorf("made from %q, want %q", got.Image, s.Exact)
	}
	if !s.World.Exists(t, made.ID) {
		t.Errorf("the world knows no instance %s", made.ID)
	}
}

func createIsIdempotent(t *testing.T, s Setup) {
	order := creation(t, s, "vm-1", operation(1), 1)
	first := mustCreate(t, s, order)
	for range 3 {
		if again := mustCreate(t, s, order); again.ID != first.ID {
			t.Fatalf("the repeat names %s, want %s", again.ID, first.ID)
		}
	}
	wantOne(t, s, "vm-1", first.ID)
}

func lateSuccessIsSeen(t *testing.T, s Setup) {
	world := able[Loser](t, s)
	world.LoseCreate(t)
	first := creation(t, s, "vm-1", operation(1), 1)
	_, err := finish(t, func(ctx context.Context) (engine.Progress, error) { return s.Machines.Create(ctx, first) })
	if !fleet.Retryable(fleet.CodeOf(err)) {
		t.Fatalf("a lost answer is reported as %v, want a kind that may work later", err)
	}
	late := world.DeliverLate(t)
	got := describe(t, s, "vm-1")
	if len(got) != 1 || got[0].ID != late || got[0].Labels[fleet.LabelOperation] != first.Operation {
		t.Fatalf("the late instance %s is described as %+v", late, got)
	}
	second := creation(t, s, "vm-1", operation(1), 2)
	if made := mustCreate(t, s, second); made.ID != late {
		t.Fatalf("the second attempt made %s beside %s", made.ID, late)
	}
	wantOne(t, s, "vm-1", late)
}

func takenNameIsConflict(t *testing.T, s Setup) {
	id := s.World.Appear(t, "vm-1", map[string]string{fleet.LabelOperation: operation(7)})
	order := creation(t, s, "vm-1", operation(1), 1)
	_, err := finish(t, func(ctx context.Context) (engine.Progress, error) { return s.Machines.Create(ctx, order) })
	wantCode(t, "create of a taken name", err, fleet.CodeConflict)
	wantOne(t, s, "vm-1", id)
}

func createIsLookedAt(t *testing.T, s Setup) {
	world := able[Holder](t, s)
	world.HoldActs(t, true)
	order := creation(t, s, "vm-1", operation(1), 1)
	for range 3 {
		progress, err := s.Machines.Create(t.Context(), order)
		if err != nil || progress.Done {
			t.Fatalf("a create in mid-work answers %+v, %v", progress, err)
		}
		if progress.Detail == "" {
			t.Error("nothing says how far it has come")
		}
	}
	world.HoldActs(t, false)
	made := mustCreate(t, s, order)
	wantOne(t, s, "vm-1", made.ID)
}

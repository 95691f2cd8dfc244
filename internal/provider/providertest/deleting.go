package providertest

import (
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

var deleting = []contract{
	{"a delete is done when describe no longer shows the instance (T3)", deleteIsObserved},
	{"a delete that was accepted and not carried out is not done (T3)", acceptedIsNotDone},
	{"a delete of one incarnation leaves another of the same name alone", deleteSparesTwin},
	{"a delete repeated after the new VM exists is a no-op", repeatedDeleteIsNoOp},
	{"a delete of what is not there is done", notFoundIsDone},
	{"a delete by name alone is refused (T7)", deleteNeedsID},
	{"remains names every dependent until it is gone (T90)", remainsNames},
}

func deleteIsObserved(t *testing.T, s Setup) {
	id := s.World.Appear(t, "vm-1", nil)
	mustDelete(t, s, deletion(s, "vm-1", operation(1), 1, id))
	if list := describe(t, s, "vm-1"); len(list) != 0 {
		t.Errorf("described after the delete: %s", ids(list))
	}
	if s.World.Exists(t, id) {
		t.Errorf("the world still has %s", id)
	}
}

func acceptedIsNotDone(t *testing.T, s Setup) {
	world := able[Lingerer](t, s)
	id := s.World.Appear(t, "vm-1", nil)
	order := deletion(s, "vm-1", operation(1), 1, id)
	world.LingerDeletes(t, true)
	for range 3 {
		if progress, err := s.Machines.Delete(t.Context(), order); err != nil || progress.Done {
			t.Fatalf("while the instance is there it answers %+v, %v; want not done", progress, err)
		}
	}
	wantRemains(t, s, id, true)
	world.LingerDeletes(t, false)
	mustDelete(t, s, order)
	wantRemains(t, s, id, false)
}

func deleteSparesTwin(t *testing.T, s Setup) {
	needTwins(t, s)
	old, twin := s.World.Appear(t, "vm-1", nil), s.World.Appear(t, "vm-1", nil)
	mustDelete(t, s, deletion(s, "vm-1", operation(1), 1, old))
	wantOne(t, s, "vm-1", twin)
	if !s.World.Exists(t, twin) || s.World.Exists(t, old) {
		t.Errorf("deleting %s: twin %s exists: %t, old exists: %t", old, twin, s.World.Exists(t, twin), s.World.Exists(t, old))
	}
}

func repeatedDeleteIsNoOp(t *testing.T, s Setup) {
	old := s.World.Appear(t, "vm-1", nil)
	order := deletion(s, "vm-1", operation(1), 1, old)
	mustDelete(t, s, order)
	made := mustCreate(t, s, creation(t, s, "vm-1", operation(1), 1))
	mustDelete(t, s, order)
	mustDelete(t, s, deletion(s, "vm-1", operation(1), 2, old))
	wantOne(t, s, "vm-1", made.ID)
}

func notFoundIsDone(t *testing.T, s Setup) {
	mine := s.World.Appear(t, "vm-1", nil)
	mustDelete(t, s, deletion(s, "vm-1", operation(1), 1, mine))
	mustDelete(t, s, deletion(s, "vm-1", operation(2), 1, mine))
	mustDelete(t, s, deletion(s, "vm-2", operation(3), 1, mine))
}

func deleteNeedsID(t *testing.T, s Setup) {
	id := s.World.Appear(t, "vm-1", nil)
	_, err := s.Machines.Delete(t.Context(), deletion(s, "vm-1", operation(1), 1, ""))
	wantCode(t, "delete without an instance id", err, fleet.CodeInvalid)
	wantOne(t, s, "vm-1", id)
}

func remainsNames(t *testing.T, s Setup) {
	id := mustCreate(t, s, creation(t, s, "vm-1", operation(1), 1)).ID
	order := deletion(s, "vm-1", operation(2), 1, id)
	wantRemains(t, s, order.Instance, true)
	if !s.Dependents {
		mustDelete(t, s, order)
		wantRemains(t, s, id, false)
		return
	}
	world := able[Keeper](t, s)
	world.KeepDependents(t, true)
	mustDelete(t, s, order)
	wantRemains(t, s, id, true)
	world.KeepDependents(t, false)
	world.DropDependents(t)
	wantRemains(t, s, id, false)
}

func wantRemains(t *testing.T, s Setup, instance string, some bool) {
	t.Helper()
	left, err := s.Machines.Remains(t.Context(), deletion(s, "vm-1", operation(2), 1, instance))
	if err != nil {
		t.Fatal(err)
	}
	if (len(left) > 0) != some {
		t.Fatalf("what remains of %s is %q, want something: %t", instance, left, some)
	}
}

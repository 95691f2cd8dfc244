package providertest

import (
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

var reading = []contract{
	{"absent is an empty list without an error", absentIsEmpty},
	{"an instance is described with id, name and presence", describedWhole},
	{"two instances of one name are both listed and described (T62)", twinsAreSeen},
	{"describe answers about the name asked for only", describesOne},
	{"unknown is not absent: an outage is an error and never an empty list (T17)", unknownIsNotAbsent},
	{"an instance is not ready before its cloud says so", readyWhenReady},
}

func absentIsEmpty(t *testing.T, s Setup) {
	if list := describe(t, s, "vm-1"); len(list) != 0 {
		t.Fatalf("an empty world describes %s", ids(list))
	}
	list, err := s.Machines.List(t.Context())
	if err != nil || len(list) != 0 {
		t.Fatalf("an empty world lists [%s], error %v", ids(list), err)
	}
}

func describedWhole(t *testing.T, s Setup) {
	id := s.World.Appear(t, "vm-1", map[string]string{fleet.LabelOperation: operation(1)})
	wantOne(t, s, "vm-1", id)
	got := describe(t, s, "vm-1")[0]
	if got.VM != "vm-1" || got.Presence != fleet.PresenceRunning {
		t.Errorf("described as VM %q, presence %q; want vm-1, running", got.VM, got.Presence)
	}
	if got.Labels[fleet.LabelOperation] != operation(1) {
		t.Errorf("its labels are %v, want %s=%s", got.Labels, fleet.LabelOperation, operation(1))
	}
}

func twinsAreSeen(t *testing.T, s Setup) {
	needTwins(t, s)
	a, b := s.World.Appear(t, "vm-1", nil), s.World.Appear(t, "vm-1", nil)
	list, err := s.Machines.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, found := range map[string]string{"describe": ids(describe(t, s, "vm-1")), "list": ids(list)} {
		if !strings.Contains(found, a) || !strings.Contains(found, b) {
			t.Errorf("%s shows [%s], want %s and %s", what, found, a, b)
		}
	}
}

func describesOne(t *testing.T, s Setup) {
	s.World.Appear(t, "vm-1", nil)
	other := s.World.Appear(t, "vm-11", nil)
	wantOne(t, s, "vm-11", other)
	for _, instance := range describe(t, s, "vm-1") {
		if instance.VM != "vm-1" {
			t.Errorf("asked about vm-1, it answered about %s", instance.VM)
		}
	}
}

func unknownIsNotAbsent(t *testing.T, s Setup) {
	world := able[Blinder](t, s)
	id := s.World.Appear(t, "vm-1", nil)
	world.Blind(t, true)
	if list, err := s.Machines.Describe(t.Context(), "vm-1"); err == nil {
		t.Errorf("describe in an outage answers [%s] without an error", ids(list))
	}
	if list, err := s.Machines.List(t.Context()); err == nil {
		t.Errorf("list in an outage answers [%s] without an error", ids(list))
	}
	left, err := s.Machines.Remains(t.Context(), deletion(s, "vm-1", operation(1), 1, id))
	if err == nil && len(left) == 0 {
		t.Error("remains in an outage confirms absence")
	}
	world.Blind(t, false)
	wantOne(t, s, "vm-1", id)
}

func readyWhenReady(t *testing.T, s Setup) {
	world := able[Slow](t, s)
	world.HoldReady(t, true)
	mustCreate(t, s, creation(t, s, "vm-1", operation(1), 1))
	if got := describe(t, s, "vm-1"); len(got) != 1 || got[0].Ready {
		t.Fatalf("while it boots it is described as %+v", got)
	}
	world.HoldReady(t, false)
	await(t, "the instance to be ready", func() bool {
		list := describe(t, s, "vm-1")
		return len(list) == 1 && list[0].Ready && list[0].Address != ""
	})
}
